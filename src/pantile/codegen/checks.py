"""Debug builds: every lane of every access is checked against its buffer before memory is touched.

A failure writes the report that the kernel's last argument points to and leaves with code 1:
slot 0: 1 load, 2 store; 1: the buffer's number; 2: the index; 3 and 4: the lowest and highest index allowed.
"""

from __future__ import annotations

from ..expr.nodes import Expr
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
    """What an array's extents and strides let its flat index reach."""
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
    """An array without elements allows no index: its highest lies below its lowest."""
    below = ctx.fn.value(f"sub i64 {low}, 1")
    for axis in range(b.ndim):
        empty = ctx.fn.value(f"icmp slt i64 {ctx.fn.resolve(b.extent(axis), 'i64')}, 1")
        high = ctx.fn.value(f"select i1 {empty}, i64 {below}, i64 {high}")
    return high


def bind_alloc_limits(ctx: Context, buffer: str, size: str) -> None:
    """0 .. size-1."""
    ctx.fn.bind(low_limit(buffer), "0")
    ctx.fn.bind(high_limit(buffer), ctx.fn.value(f"sub i64 {size}, 1"))


def check_access(ctx: Context, kind: str, buffer: str, index: Expr, mask: Expr | None) -> None:
    """In a debug build, leave with a report if any lane that is accessed is outside its buffer."""
    if not ctx.module.debug:
        return
    fn, lanes = ctx.fn, index.lanes
    low, high = fn.resolve(low_limit(buffer), "i64"), fn.resolve(high_limit(buffer), "i64")
    t, bools = integer_type(64, lanes), integer_type(1, lanes)
    # Frozen: LLVM would look for the cheapest way to step each of what is made of it along with the loop.
    where = fn.value(f"freeze {t} {ctx.value(index)}")
    below = fn.value(f"icmp slt {t} {where}, {spread(fn, low, 'i64', lanes)}")
    above = fn.value(f"icmp sgt {t} {where}, {spread(fn, high, 'i64', lanes)}")
    bad = fn.value(f"or {bools} {below}, {above}")
    if mask is not None:
        bad = fn.value(f"and {bools} {bad}, {ctx.value(mask)}")
    if lanes > 1:
        where, bad = _one_bad_lane(ctx, where, bad, lanes)
    _leave_with_report(ctx, bad, [str(_KINDS[kind]), str(ctx.module.ordinals[buffer]), where, low, high])


def _one_bad_lane(ctx: Context, where: str, bad: str, lanes: int) -> tuple[str, str]:
    """The largest index out of bounds, and whether there is one."""
    fn, t, bools = ctx.fn, integer_type(64, lanes), integer_type(1, lanes)
    smallest = spread(fn, str(-(1 << 63)), "i64", lanes)
    chosen = fn.value(f"select {bools} {bad}, {t} {where}, {t} {smallest}")
    worst = fn.value(f"call i64 @llvm.vector.reduce.smax.v{lanes}i64({t} {chosen})")
    return worst, fn.value(f"call i1 @llvm.vector.reduce.or.v{lanes}i1({bools} {bad})")


def _leave_with_report(ctx: Context, condition: str, slots: list[str]) -> None:
    fn = ctx.fn
    report = fn.resolve(REPORT, "ptr")
    failed, passed = fn.new_label("failed"), fn.new_label("passed")
    fn.branch_if(condition, failed, passed)
    fn.start(failed)
    for slot, value in enumerate(slots):
        place = fn.effect_value(f"getelementptr inbounds i64, ptr {report}, i64 {slot}")
        fn.effect(f"store i64 {value}, ptr {place}, align 8")
    fn.leave(str(OUT_OF_BOUNDS))
    fn.start(passed)
