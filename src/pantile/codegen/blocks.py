"""Kernels of blocks of threads, as functions that a GPU runs once for each thread of each block.

    define ptx_kernel void @name(ptr byval([n x i8]) align 8 %frame) "nvvm.reqntid"="256"

All values that a kernel captures are in one block of bytes, its frame (`entry.py`), which is copied to the GPU with the
launch. The iterations of a thread loop are distributed cyclically over threads. If each thread has few of them, the
loop is unrolled, with constant distances from the thread's first iteration; only in the last copy may some threads be
inactive.

Loads, stores and arithmetic are written as for CPUs, with generic pointers; LLVM infers their address spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import InternalError
from ..expr.nodes import Const, Expr, Var
from ..ir.nodes import Alloc, For, Kernel, Stmt
from ..ir.visit import walk
from ..target.gpu import LONGEST_ACCESS, MOST_BLOCKS, MOST_SHARED, REGISTERS, WARP_SIZE
from ..target.kinds import Memory
from .context import Context, Module
from .entry import KernelFrame, global_pointer
from .function import Function, readable
from .memory import buffer_pointer
from .rounding import bfloat_from_bits

SHARED = "@shared"
SHARED_MEMORY = f"{SHARED} = external addrspace(3) global [0 x i8], align {LONGEST_ACCESS}\n"
_THREAD = "#thread"
_SHARED = "#shared"
_COPIES = 8  # maximum number of copies of the body of a thread loop
_OF_A_THREAD = 128  # registers per thread if several blocks should be resident


def begin_block(module: Module, kernel: Kernel, symbol: str, lows: Mapping[str, int]) -> Function:
    """Begin a kernel's function and bind its variable and captures; `lows` has lower bounds of scalars."""
    frame = KernelFrame(kernel)
    takes = f"ptr byval([{frame.size} x i8]) align 8 %frame"
    attributes = f'"nvvm.reqntid"="{kernel.threads}"'
    if (blocks := _blocks_at_once(kernel)) > 1:
        attributes += f' "nvvm.minctasm"="{blocks}"'
    head = f"define ptx_kernel void @{symbol}({takes}) nounwind {attributes}"
    fn = Function(head, frame, "%frame")
    fn.has_bfloats = module.target.native_bfloat
    for b in kernel.buffers:
        pointer = fn.resolve(global_pointer(b.name), "ptr addrspace(1)")
        fn.bind(buffer_pointer(b.name), fn.value(f"addrspacecast ptr addrspace(1) {pointer} to ptr"))
    for v in kernel.scalars:
        if v.dtype.kind == "bfloat":
            fn.bind(v.name, bfloat_from_bits(fn, fn.resolve(v.name, "i16"), 1))
        elif lows.get(v.name, -1) >= 0:
            fn.resolve(v.name, module.index)
            fn.entry[-1] += f", !range !{{{module.index} 0, {module.index} {v.dtype.min}}}"  # up to the maximum
    index = _number(module, fn, "ctaid", MOST_BLOCKS)
    if isinstance(kernel.min, Var):
        index = fn.value(f"add nsw {module.index} {index}, {fn.resolve(kernel.min.name, module.index)}")
    fn.bind(kernel.var, index)
    fn.bind(_THREAD, _number(module, fn, "tid", kernel.threads))
    return fn


def _blocks_at_once(kernel: Kernel) -> int:
    """The number of blocks that should be resident on a multiprocessor, which limits the registers of their threads.

    If the threads of a block wait for each other in each iteration, those of another block can compute in the meantime.
    By default, the assembler uses too many registers for that, because it keeps addresses that it could recompute.
    """
    allocations = [s for s in walk(kernel.body) if isinstance(s, Alloc)]
    if all(s.slots == 1 for s in allocations):
        return 1
    held = max([int_of(s.size) * s.dtype.bytes // 4 for s in allocations if s.memory is Memory.REGISTER], default=0)
    blocks = REGISTERS // (_OF_A_THREAD * kernel.threads) if held <= _OF_A_THREAD * 3 // 4 else 1
    return min(blocks, MOST_SHARED // max(1, kernel.shared))


def _number(module: Module, fn: Function, register: str, end: int) -> str:
    """The value of a special register, in range 0 to `end` (exclusive), as an index."""
    number = fn.value(f"call range(i32 0, {end}) i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
    return number if module.index == "i32" else fn.value(f"zext i32 {number} to {module.index}")


def shared_memory(ctx: Context, byte: int, apart: int = 0) -> str:
    """A pointer to a byte of the block's shared memory; for each warp, it is `apart` bytes further."""
    fn = ctx.fn
    if _SHARED not in fn.names:
        start = fn.fresh("shared")
        fn.entry.append(f"  {start} = addrspacecast ptr addrspace(3) {SHARED} to ptr")
        fn.bind(_SHARED, start)
    start = fn.names[_SHARED]
    if byte:
        start = fn.value(f"getelementptr inbounds i8, ptr {start}, i32 {byte}")
    if not apart:
        return start
    index = ctx.module.index
    warp = fn.value(f"udiv {index} {fn.names[_THREAD]}, {WARP_SIZE}")
    far = fn.value(f"mul nuw nsw {index} {warp}, {apart}")
    return fn.value(f"getelementptr inbounds i8, ptr {start}, {index} {far}")


# Loops


def write_thread_loop(ctx: Context, s: For, write: Callable[[Context, Stmt], None]) -> None:
    """Write a thread loop. For p in 0..600 with 256 threads, thread t runs t, t + 256 and, if t < 88, t + 512."""
    whole, rest = divmod(int_of(s.extent), ctx.threads)
    ctx.places.loop(s.var, s.min)
    if whole > _COPIES:
        _loop(ctx, s, whole, write)
    else:
        for k in range(whole):
            _bind(ctx, s, str(k * ctx.threads))
            write(ctx, s.body)
    if rest:
        fn = ctx.fn
        some, after = fn.new_label("some"), fn.new_label("after")
        fn.branch_if(fn.value(f"icmp ult {ctx.module.index} {fn.names[_THREAD]}, {rest}"), some, after)
        fn.start(some)
        with fn.scope():
            _bind(ctx, s, str(whole * ctx.threads))
            write(ctx, s.body)
        fn.branch(after)
        fn.start(after)


def _loop(ctx: Context, s: For, whole: int, write: Callable[[Context, Stmt], None]) -> None:
    """Write a loop that all threads execute for the same number of iterations."""
    fn, index = ctx.fn, ctx.module.index
    body, after = fn.new_label("threads"), fn.new_label("done")
    distance = fn.fresh(readable(s.var))
    with fn.scope():
        fn.branch(body)
        before = fn.label
        fn.start(body)
        phi = len(fn.lines)
        fn.lines.append("")  # patched once the body's last block is known
        _bind(ctx, s, distance)
        write(ctx, s.body)
    following = fn.effect_value(f"add nuw nsw {index} {distance}, {ctx.threads}")
    again = fn.effect_value(f"icmp ult {index} {following}, {whole * ctx.threads}")
    fn.lines[phi] = f"  {distance} = phi {index} [ 0, %{before} ], [ {following}, %{fn.label} ]"
    fn.repeat(f"br i1 {again}, label %{body}, label %{after}", whole)
    fn.start(after)


def _bind(ctx: Context, s: For, distance: str) -> None:
    fn, thread = ctx.fn, ctx.fn.names[_THREAD]
    here = thread if distance == "0" else fn.value(f"add nuw nsw {ctx.module.index} {thread}, {distance}")
    fn.bind(s.var, here)


def int_of(e: Expr) -> int:
    """The value of an expression that lowering has made constant."""
    if not isinstance(e, Const):
        raise InternalError(f"{e} is not constant in a kernel of blocks")
    return int(e.value)
