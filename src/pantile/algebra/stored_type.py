"""In what type an intermediate stage is stored, and what may be said of its values where they are read."""

from __future__ import annotations

from ..analysis.interval import interval
from ..expr.build import cast
from ..expr.nodes import Expr, Load, const, op
from ..expr.types import INT16, UINT16, DType

Range = tuple[int, int]


def integers(value: Expr) -> Range | None:
    """The values that an integer expression may have, where those that it is made of do not wrap."""
    found = interval(value, {})
    return (found.low, found.high) if isinstance(found.low, int) and isinstance(found.high, int) else None


def stored_type(own: DType, values: Range | None) -> DType:
    """16 bits where integers of a larger type need no more."""
    if values is None or not own.is_int or own.bits <= 16:
        return own
    return next((t for t in (UINT16, INT16) if t.min <= values[0] and values[1] <= t.max), own)


def as_type(own: DType, read: Load, values: Range | None) -> Expr:
    """What is stored in fewer bits, in its own type again, with the range that says how many a sum of it needs."""
    if values is None or read.dtype is own:
        return read
    return cast(own, op("within", read, const(values[0], read.dtype), const(values[1], read.dtype)))
