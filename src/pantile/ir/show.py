"""Prints loop IR as readable pseudocode.

    produce blur_y:
        parallel for y in 0..h:
            alloc blur_x: uint16[3*w] in scratch
            for x in 0..w:
                blur_x[x] = (img[y, x] + img[y, x + 1])//2

Passes use it to print what they transform, and `pipeline.loops()` shows it to users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..expr.build import binary
from ..expr.nodes import Const, Expr
from ..expr.show import Sharing
from ..expr.show import show as show_expr
from ..expr.types import INDEX
from ..expr.visit import names
from ..target.kinds import CacheOperator, Kind, Memory
from .nodes import (
    Alloc,
    Block,
    BufferArg,
    CapturedBuffer,
    Evaluate,
    For,
    If,
    Kernel,
    Launch,
    Let,
    Manner,
    Prefetch,
    Produce,
    Program,
    Realize,
    Stmt,
    Store,
)

_INDENT = "    "
_SHORT = 1000  # characters; shorter stores name no common subexpressions, since stencils are best read unabridged


def show(s: Stmt) -> str:
    """The text of a statement: one line per simple statement, with indented loops."""
    return "\n".join(_lines(s))


def show_program(p: Program) -> str:
    """The text of a program with its arguments: a single kernel or, once parallel loops are outlined, the host part and
    the kernels."""
    args = [_show_argument(b) for b in p.buffers] + [f"{a.name}: {a.dtype}" for a in p.scalars]
    lines = [f"{'host' if p.kernels else 'kernel'} {p.name}({', '.join(args)}):", *_indented(p.body)]
    for kernel in p.kernels:
        lines += ["", *_show_kernel(kernel)]
    return "\n".join(lines)


def _show_kernel(k: Kernel) -> list[str]:
    captures = [f"{v.name}: {_type(v)}" for v in k.scalars] + [f"{b.name}: {b.dtype}[]{_by(b)}" for b in k.buffers]
    block = f", {k.threads} threads each" if k.threads else ""
    shared = f", {k.shared} bytes shared" if k.shared else ""
    head = f"kernel {k.name}({', '.join(captures)}) for {k.var} from {show_expr(k.min)}{block}{shared}:"
    return [head, *_indented(k.body)]


def _show_argument(b: BufferArg) -> str:
    dims = ", ".join(":" if n is None else "dense" if n == 1 else f"stride {n}" for n in b.known_strides)
    return f"{'out ' if b.writable else ''}{b.name}: {b.dtype}[{dims}]"


def _lines(s: Stmt) -> list[str]:
    return _SHOW[type(s)](s)


def _indented(s: Stmt) -> list[str]:
    return [_INDENT + line for line in _lines(s)]


def _show_for(s: For) -> list[str]:
    kind = "" if s.kind is Kind.SERIAL else f"{s.kind.value} "
    head = f"{kind}for {s.var} in {show_expr(s.min)}..{_end(s.min, s.extent)}:{_block(s)}"
    return [head, *_indented(s.body)]


def _block(s: For) -> str:
    """The properties of a block loop: its threads, memory and caching."""
    if s.kind is not Kind.BLOCK or not s.threads:
        return _scratch(s.scratch)
    shared = "" if s.scratch is None or _is_zero(s.scratch) else f", {show_expr(s.scratch)} bytes shared"
    cached = "".join(f", {buffer} by ld.{operator}" for buffer, operator in s.cached)
    return f"  # {s.threads} threads each{shared}{cached}{', persistent' if s.persistent else ''}"


def _by(b: CapturedBuffer) -> str:
    return "" if b.cached is CacheOperator.ALL else f" by ld.{b.cached}"


def _scratch(each: Expr | None) -> str:
    return "" if each is None else f"  # {show_expr(each)} bytes of scratch each"


def _end(low: Expr, extent: Expr) -> str:
    """The exclusive end of a range, simplified if the range begins at a constant."""
    return show_expr(extent if _is_zero(low) else binary("add", low, extent))


def _is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def _show_let(s: Let) -> list[str]:
    kind = "" if s.value.dtype is INDEX and s.value.lanes == 1 else f": {_type(s.value)}"
    return [f"let {s.name}{kind} = {show_expr(s.value)}", *_lines(s.body)]


def _type(e: Expr) -> str:
    return str(e.dtype) if e.lanes == 1 else f"{e.dtype}x{e.lanes}"


def _show_block(s: Block) -> list[str]:
    return [line for part in s.stmts for line in _lines(part)] or ["pass"]


def _show_if(s: If) -> list[str]:
    lines = [f"if {show_expr(s.condition)}:", *_indented(s.then)]
    return lines if s.otherwise is None else [*lines, "else:", *_indented(s.otherwise)]


def _show_store(s: Store) -> list[str]:
    """The lines of a store, after those of its shared subexpressions."""
    masks = () if s.mask is None else (s.mask,)
    roots = (*s.indices, s.value, *masks)
    shared = Sharing(roots, frozenset[str]().union(*map(names, roots)), short=_SHORT)
    mask = "".join(f" if {shared.text(e)}" for e in masks)
    stream = "" if s.manner is Manner.PLAIN else f"  # {s.manner.value}"
    lets = [f"let {name} = {text}" for name, text in shared.lets]
    return [*lets, f"{s.buffer}[{', '.join(map(shared.text, s.indices))}] = {shared.text(s.value)}{mask}{stream}"]


def _show_realize(s: Realize) -> list[str]:
    box = ", ".join(f"{show_expr(low)}..{_end(low, extent)}" for low, extent in s.box)
    held = "" if s.layout is None else f" {s.layout}"
    return [f"realize {s.buffer}: {s.dtype}[{box}]{_place(s.memory)}{held}", *_lines(s.body)]


def _show_alloc(s: Alloc) -> list[str]:
    at = "" if s.offset is None else f" at byte {show_expr(s.offset)}"
    at += f" + {s.apart} per warp" if s.apart else ""
    return [f"alloc {s.buffer}: {s.dtype}[{show_expr(s.size)}]{_place(s.memory)}{at}", *_lines(s.body)]


def _show_launch(s: Launch) -> list[str]:
    arguments = ", ".join([*map(show_expr, s.scalars), *s.buffers])
    return [f"launch {s.kernel}({arguments}) {show_expr(s.extent)} times{_scratch(s.scratch)}"]


def _place(memory: Memory) -> str:
    return "" if memory is Memory.AUTO else f" in {memory.value}"


_SHOW: dict[type[Stmt], Callable[[Any], list[str]]] = {
    For: _show_for,
    Let: _show_let,
    Block: _show_block,
    If: _show_if,
    Store: _show_store,
    Produce: lambda s: [f"produce {s.stage}:", *_indented(s.body)],
    Realize: _show_realize,
    Alloc: _show_alloc,
    Prefetch: lambda s: [f"prefetch {s.buffer}[{', '.join(map(show_expr, s.indices))}]"],
    Evaluate: lambda s: [show_expr(s.value)],
    Launch: _show_launch,
}
