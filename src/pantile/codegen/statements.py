"""Writes statements as blocks of instructions."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from ..errors import InternalError
from ..expr.linear import linear
from ..expr.nodes import Const, Op
from ..expr.visit import Key, key
from ..ir.nodes import Alloc, Block, Evaluate, For, If, Launch, Let, Prefetch, Produce, Stmt, Store
from ..ir.visit import walk
from ..target.gpu import LONGEST_ACCESS
from ..target.kinds import Kind, Memory
from .blocks import int_of, shared_memory, write_thread_loop
from .checks import bind_alloc_limits
from .context import Context
from .function import SHORT, readable
from .instructions import write_evaluate
from .lanes import Neighbours
from .memory import buffer_pointer, write_prefetch, write_store
from .min_max_pairs import Exchanges
from .opaque_rows import LoopRows, Row, bind_cut, hidden, row_starts
from .parallel import SCRATCH, write_launch
from .strided_loads import Groups
from .types import memory_type

OUT_OF_MEMORY = -1
_FEW_TERMS = 2  # terms of a buffer's offset in scratch memory that LLVM may see


def write_statement(ctx: Context, s: Stmt) -> None:
    """Write a statement and everything inside it."""
    ctx.begin_statement()
    writer = _WRITERS.get(type(s))
    if writer is None:
        raise InternalError(f"no code for {type(s).__name__}: lowering should have removed it")
    writer(ctx, s)


def write_run(ctx: Context, s: Stmt) -> None:
    """Write a body that is always executed as a whole, so that its loads can be shared."""
    outer = ctx.groups, ctx.neighbours, ctx.exchanges
    ctx.groups, ctx.neighbours, ctx.exchanges = Groups(s), Neighbours(s), Exchanges(s)
    write_statement(ctx, s)
    ctx.groups, ctx.neighbours, ctx.exchanges = outer


def _block(ctx: Context, s: Block) -> None:
    for part in s.stmts:
        write_statement(ctx, part)


def _produce(ctx: Context, s: Produce) -> None:
    write_statement(ctx, s.body)


def _let(ctx: Context, s: Let) -> None:
    ctx.places.let(s.name, s.value)
    bind_cut(ctx.fn, s.name, s.value, ctx.value(s.value))
    write_statement(ctx, s.body)


def _if(ctx: Context, s: If) -> None:
    fn = ctx.fn
    then, after = fn.new_label("then"), fn.new_label("after")
    otherwise = after if s.otherwise is None else fn.new_label("else")
    fn.branch_if(ctx.value(s.condition), then, otherwise)
    _branch_body(ctx, then, s.then, after)
    if s.otherwise is not None:
        _branch_body(ctx, otherwise, s.otherwise, after)
    fn.start(after)


def _branch_body(ctx: Context, label: str, body: Stmt, after: str) -> None:
    ctx.fn.start(label)
    with ctx.fn.scope():
        write_run(ctx, body)
    ctx.fn.branch(after)


# Loops


def _for(ctx: Context, s: For) -> None:
    if s.kind is Kind.THREAD and ctx.threads:
        write_thread_loop(ctx, s, write_run)
        return
    if s.kind is not Kind.SERIAL:
        raise InternalError(f"loop {s.var} is {s.kind.value}: lowering should have removed it")
    if isinstance(s.extent, Const) and s.extent.value == 1:
        _single_iteration(ctx, s)
    elif not (isinstance(s.extent, Const) and s.extent.value <= 0):
        _serial_for(ctx, s)


def _single_iteration(ctx: Context, s: For) -> None:
    ctx.places.let(s.var, s.min)
    ctx.fn.bind(s.var, ctx.value(s.min))
    write_statement(ctx, s.body)


def _serial_for(ctx: Context, s: For) -> None:
    """Write a serial loop: a guard for at least one iteration, then a body whose variable counts up to the end."""
    fn, index = ctx.fn, ctx.module.index
    low, extent = ctx.value(s.min), ctx.value(s.extent)
    end = extent if low == "0" else ctx.value(ctx.keep(Op(s.min.dtype, 1, "add", (s.min, s.extent))))
    body, after = fn.new_label("loop"), fn.new_label("done")
    if not isinstance(s.extent, Const):
        first = fn.new_label("first")
        fn.branch_if(fn.value(f"icmp sgt {index} {extent}, 0"), first, after)
        fn.start(first)
    variable = fn.fresh(readable(s.var))
    ctx.places.loop(s.var, s.min)
    with fn.scope():
        around, ctx.rows = ctx.rows, _rows(ctx, s)
        fn.branch(body)
        before = fn.label
        fn.start(body)
        phi = len(fn.lines)
        fn.lines.append("")  # patched once the body's last block is known
        fn.bind(s.var, variable)
        write_run(ctx, s.body)
        ctx.rows = around
    following = fn.effect_value(f"add nsw {index} {variable}, 1")
    again = fn.effect_value(f"icmp slt {index} {following}, {end}")
    fn.lines[phi] = f"  {variable} = phi {index} [ {low}, %{before} ], [ {following}, %{fn.label} ]"
    known = int(s.extent.value) if isinstance(s.extent, Const) else None
    fn.repeat(f"br i1 {again}, label %{body}, label %{after}", known)
    fn.start(after)


def _rows(ctx: Context, s: For) -> LoopRows:
    """Compute pointers to the beginnings of the rows of an innermost loop."""
    if ctx.module.debug or ctx.threads or any(isinstance(i, For) for i in walk(s.body)):
        return LoopRows()
    fn, rows = ctx.fn, dict[tuple[str, Key], Row]()
    for b in row_starts(s):
        pointer, element = fn.resolve(buffer_pointer(b.buffer), "ptr"), memory_type(ctx.module.dtypes[b.buffer])
        if pointer in fn.stack and isinstance(s.extent, Const) and int(s.extent.value) <= SHORT:
            continue  # once the loop is unrolled, LLVM may keep these buffers in registers
        begin = fn.value(f"getelementptr {element}, ptr {pointer}, i64 {ctx.value(ctx.keep(b.begin))}")
        rows[b.buffer, key(b.index)] = Row(hidden(fn, begin, "ptr"), b.rest)
    return LoopRows(rows)


# Memory


def _alloc(ctx: Context, s: Alloc) -> None:
    ctx.fn.forget_loads(s.buffer)
    size = ctx.value(s.size)
    if ctx.module.debug:
        bind_alloc_limits(ctx, s.buffer, size)
    _PLACES[s.memory](ctx, s, size)


def _alloc_stack(ctx: Context, s: Alloc, size: str) -> None:
    ctx.fn.bind(buffer_pointer(s.buffer), ctx.fn.alloca(f"[{size} x {memory_type(s.dtype)}]", s.buffer))
    if ctx.threads:
        ctx.places.alignments[s.buffer] = LONGEST_ACCESS
    write_statement(ctx, s.body)


def _alloc_shared(ctx: Context, s: Alloc, size: str) -> None:
    offset = 0 if s.offset is None else int_of(s.offset)
    ctx.fn.bind(buffer_pointer(s.buffer), shared_memory(ctx, offset, s.apart))
    ctx.places.alignments[s.buffer] = gcd(LONGEST_ACCESS, offset)
    write_statement(ctx, s.body)


def _alloc_scratch(ctx: Context, s: Alloc, size: str) -> None:
    arena = ctx.fn.resolve(SCRATCH, "ptr")
    offset = "0" if s.offset is None else ctx.value(s.offset)
    pointer = ctx.fn.value(f"getelementptr inbounds i8, ptr {arena}, i64 {offset}")
    if s.offset is not None and len(linear(s.offset).terms) > _FEW_TERMS:
        # Otherwise, LLVM's strength reduction would see the sizes of all previous buffers in every address.
        pointer = hidden(ctx.fn, pointer, "ptr")
    ctx.fn.bind(buffer_pointer(s.buffer), pointer)
    write_statement(ctx, s.body)


def _alloc_heap(ctx: Context, s: Alloc, size: str) -> None:
    fn = ctx.fn
    needed = fn.value(f"mul nsw i64 {size}, {s.dtype.bytes}")
    # The runtime returns null for a request of 0 bytes, which would be mistaken for out of memory.
    at_least = fn.value(f"call i64 @llvm.smax.i64(i64 {needed}, i64 {s.dtype.bytes})")
    pointer = fn.effect_value(f"call ptr @pantile_scratch_push(i64 {at_least})")
    fn.fail_if(fn.effect_value(f"icmp eq ptr {pointer}, null"), str(OUT_OF_MEMORY))
    fn.bind(buffer_pointer(s.buffer), pointer)
    with fn.on_heap(pointer):
        write_statement(ctx, s.body)


def _alloc_unplanned(ctx: Context, s: Alloc, size: str) -> None:
    raise InternalError(f"{s.buffer} has no place in memory yet")


_PLACES: dict[Memory, Callable[[Context, Alloc, str], None]] = {
    Memory.STACK: _alloc_stack,
    Memory.REGISTER: _alloc_stack,
    Memory.SCRATCH: _alloc_scratch,
    Memory.HEAP: _alloc_heap,
    Memory.SHARED: _alloc_shared,
    Memory.AUTO: _alloc_unplanned,
}
_WRITERS: dict[type[Stmt], Callable[[Context, Any], None]] = {
    For: _for,
    Let: _let,
    Block: _block,
    If: _if,
    Store: write_store,
    Produce: _produce,
    Alloc: _alloc,
    Prefetch: write_prefetch,
    Launch: write_launch,
    Evaluate: write_evaluate,
}
