"""Checks of debug builds: every lane of every access is checked against the bounds of its buffer before the access.

A failed check writes the report that the kernel's last argument points to, and returns code 1 from the function:
slot 0: 1 load, 2 store; 1: the buffer's number; 2: the index; 3 and 4: the lowest and highest index allowed.
"""

from __future__ import annotations

from collections.abc import Callable

from ..expr.nodes import Const, Expr, Ramp
from ..ir.nodes import BufferArg
from .context import Context
from .types import integer_type
from .vectors import spread

REPORT = "#report"
OUT_OF_BOUNDS = 1
_KINDS = {"load": 1, "store": 2}


def low_limit(buffer: str) -> str:
    """The name of a buffer's lowest valid index."""
    return f"#low {buffer}"


def high_limit(buffer: str) -> str:
    """The name of a buffer's highest valid index."""
    return f"#high {buffer}"


def bind_argument_limits(ctx: Context, b: BufferArg) -> None:
    """Bind the lowest and highest flat index that an array's extents and strides allow."""
    low = high = "0"
    for axis in range(b.ndim):
        extent = ctx.fn.resolve(b.extent(axis), "i64")
        known = b.known_strides[axis]
        stride = ctx.fn.resolve(b.stride(axis), "i64") if known is None else str(known)
        last = ctx.fn.value(f"add nsw i64 {extent}, -1")
        last = ctx.fn.value(f"call i64 @llvm.smax.i64(i64 {last}, i64 0)")
        reach = ctx.fn.value(f"mul i64 {last}, {stride}")
        low = _sum(ctx, low, ctx.fn.value(f"call i64 @llvm.smin.i64(i64 {reach}, i64 0)"))
        high = _sum(ctx, high, ctx.fn.value(f"call i64 @llvm.smax.i64(i64 {reach}, i64 0)"))
    ctx.fn.bind(low_limit(b.name), low)
    ctx.fn.bind(high_limit(b.name), _unless_empty(ctx, b, high, low))


def _sum(ctx: Context, a: str, b: str) -> str:
    return b if a == "0" else ctx.fn.value(f"add i64 {a}, {b}")


def _unless_empty(ctx: Context, b: BufferArg, high: str, low: str) -> str:
    """The highest valid index. For an array without elements it is one below the lowest, so that no index is valid."""
    below = ctx.fn.value(f"sub i64 {low}, 1")
    for axis in range(b.ndim):
        empty = ctx.fn.value(f"icmp slt i64 {ctx.fn.resolve(b.extent(axis), 'i64')}, 1")
        high = ctx.fn.value(f"select i1 {empty}, i64 {below}, i64 {high}")
    return high


def bind_alloc_limits(ctx: Context, buffer: str, size: str) -> None:
    """Bind the limits of an allocation: 0 .. size-1."""
    ctx.fn.bind(low_limit(buffer), "0")
    ctx.fn.bind(high_limit(buffer), ctx.fn.value(f"sub i64 {size}, 1"))


def check_access(ctx: Context, kind: str, buffer: str, index: Expr, mask: Expr | None) -> None:
    """In a debug build, write a report and return if any active lane is outside its buffer."""
    if not ctx.module.debug:
        return
    limits = ctx.fn.resolve(low_limit(buffer), "i64"), ctx.fn.resolve(high_limit(buffer), "i64")
    if mask is None and isinstance(index, Ramp) and isinstance(index.stride, Const):
        bad, worst = _ends(ctx, index.base, (index.lanes - 1) * int(index.stride.value), *limits)
    else:
        bad, worst = _lanes(ctx, index, mask, *limits)
    _leave_with_report(ctx, bad, [str(_KINDS[kind]), str(ctx.module.ordinals[buffer])], worst, limits)


# Indices are frozen, so that LLVM's strength reduction does not analyze each expression derived from them.


def _ends(ctx: Context, first: Expr, span: int, low: str, high: str) -> tuple[str, Callable[[], str]]:
    """Whether either end of a ramp, and hence any lane, is out of bounds; and a writer of the failing end."""
    fn = ctx.fn
    a = fn.value(f"freeze i64 {ctx.value(first)}")
    b = fn.value(f"add i64 {a}, {span}")
    least, greatest = (a, b) if span >= 0 else (b, a)
    below = fn.value(f"icmp slt i64 {least}, {low}")
    above = fn.value(f"icmp sgt i64 {greatest}, {high}")
    bad = fn.value(f"or i1 {below}, {above}")
    return bad, lambda: fn.effect_value(f"select i1 {above}, i64 {greatest}, i64 {least}")


def _lanes(ctx: Context, index: Expr, mask: Expr | None, low: str, high: str) -> tuple[str, Callable[[], str]]:
    """Whether any lane is out of bounds; and a writer of the largest failing index."""
    fn, lanes = ctx.fn, index.lanes
    t, bools = integer_type(64, lanes), integer_type(1, lanes)
    where = fn.value(f"freeze {t} {ctx.value(index)}")
    below = fn.value(f"icmp slt {t} {where}, {spread(fn, low, 'i64', lanes)}")
    above = fn.value(f"icmp sgt {t} {where}, {spread(fn, high, 'i64', lanes)}")
    bad = fn.value(f"or {bools} {below}, {above}")
    if mask is not None:
        bad = fn.value(f"and {bools} {bad}, {ctx.value(mask)}")
    if lanes == 1:
        return bad, lambda: where

    def largest() -> str:
        chosen = fn.effect_value(f"select {bools} {bad}, {t} {where}, {t} splat (i64 {-(1 << 63)})")
        return fn.effect_value(f"call i64 @llvm.vector.reduce.smax.v{lanes}i64({t} {chosen})")

    return fn.value(f"call i1 @llvm.vector.reduce.or.v{lanes}i1({bools} {bad})"), largest


def _leave_with_report(
    ctx: Context, condition: str, access: list[str], worst: Callable[[], str], limits: tuple[str, str]
) -> None:
    fn = ctx.fn
    report = fn.resolve(REPORT, "ptr")
    failed, passed = fn.new_label("failed"), fn.new_label("passed")
    fn.branch_if(condition, failed, passed)
    fn.start(failed)
    slots = ", ".join(f"i64 {value}" for value in (*access, worst(), *limits))
    fn.effect(f"call void @pantile_report(ptr {report}, {slots})")
    fn.leave(str(OUT_OF_BOUNDS))
    fn.start(passed)


def _reporting() -> str:
    """The function that writes a report. Its closing brace is not on a line of its own, so that `parts` copies it to
    each part."""
    slots = range(5)
    stores = [
        f"  %place{k} = getelementptr inbounds i64, ptr %report, i64 {k}\n  store i64 %slot{k}, ptr %place{k}, align 8"
        for k in slots
    ]
    head = f"define internal void @pantile_report(ptr %report, {', '.join(f'i64 %slot{k}' for k in slots)})"
    return "\n".join([f"{head} cold noinline nounwind {{", *stores, "  ret void }", ""])


REPORTING = _reporting()
