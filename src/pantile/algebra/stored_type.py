"""The type in which an intermediate stage is stored, and the range of its values where they are read."""

from __future__ import annotations

from ..analysis.interval import interval
from ..expr.build import cast
from ..expr.nodes import Expr, Load, const, op
from ..expr.types import INT16, UINT16, DType

Range = tuple[int, int]


def integers(value: Expr) -> Range | None:
    """The range of an integer expression, if it is known."""
    r = interval(value, {})
    return (r.low, r.high) if isinstance(r.low, int) and isinstance(r.high, int) else None


def stored_type(own: DType, values: Range | None) -> DType:
    """The type to store values in: one of 16 bits if all integers of a larger type fit it."""
    if values is None or not own.is_int or own.bits <= 16:
        return own
    return next((t for t in (UINT16, INT16) if t.min <= values[0] and values[1] <= t.max), own)


def as_type(own: DType, read: Load, values: Range | None) -> Expr:
    """A load of values that are stored in fewer bits, converted to their own type, with a promise of their range, from
    which the bits that sums need are derived."""
    if values is None or read.dtype is own:
        return read
    return cast(own, op("within", read, const(values[0], read.dtype), const(values[1], read.dtype)))
