"""The ends of float intervals: Python numbers, NumPy arrays, or expressions of the float's type that code evaluates.

    cast("int32", floor((y + 0.5)/p)),  y in [lo, hi]   ->   [int32(floor((float32(lo) + 0.5)/p)), likewise for hi]

Rounding is monotonic, so arithmetic on the ends, in the type and with the operations of the values, bounds all values.
If code may round a value differently than its ends, the ends are moved outwards: by a few units in the last place in
code, and by more of them in numbers, so that the intervals in the check of a call contain those in code. NaN becomes 0
as an integer, and is unordered: calls in which an end that code computes would be NaN are rejected
(`bounds.ends_are_numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import truediv
from typing import Any

import numpy as np

from ..expr import build
from ..expr.nodes import Const, Expr, Op
from ..expr.types import FLOAT32, FLOAT64, INDEX, UINT64, DType

End = Any  # int | float | np.ndarray | Expr | None
COMPUTED = (FLOAT32, FLOAT64)  # the types in which code computes ends; 16-bit floats would overflow too early
_ULPS_IN_CODE = 3  # covers two roundings of the value, two of its end, and one of moving it, each half a unit
_ULPS = 6  # twice as far, to cover additional roundings in code
_PYTHON: dict[str, Callable[[float], float]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
}
_NUMPY: dict[str, Callable[..., Any]] = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}


def is_number(x: End) -> bool:
    """Whether an end is a Python number other than NaN."""
    return isinstance(x, (int, float)) and not (isinstance(x, float) and math.isnan(x))


def is_finite(x: End) -> bool:
    """Whether an end is known, and not known to be infinite or NaN."""
    return x is not None and not (isinstance(x, float) and not math.isfinite(x))


def rounded(end: End, t: DType) -> End:
    """Round an integer or float to the type; None if the result is not known."""
    if isinstance(end, Const):
        end = end.value
    if isinstance(end, Expr):
        return build.cast(t, end) if t in COMPUTED else None
    if isinstance(end, np.ndarray):
        return None if t.kind == "bfloat" else end.astype(t.numpy).astype(np.float64)
    return build.round_to(end, t) if is_number(end) else None


def outwards(low: End, high: End, t: DType) -> tuple[End, End]:
    """Move ends outwards, so that they bound their values however these are rounded."""
    return _widen(low, t, min, np.minimum, build.minimum), _widen(high, t, max, np.maximum, build.maximum)


def _widen(
    end: End, t: DType, python: Callable[..., End], numpy: Callable[..., End], symbolic: Callable[..., End]
) -> End:
    if end is None:
        return None
    by = t.epsilon * (_ULPS_IN_CODE if isinstance(end, Expr) else _ULPS)
    choose = symbolic if isinstance(end, Expr) else numpy if isinstance(end, np.ndarray) else python
    return choose(end * (1 - by), end * (1 + by))


def may_be_rounded_otherwise(e: Op) -> bool:
    """Whether compiled code may round a result differently. Unless code is strict, a product in a sum may be fused and
    so not rounded, and a quotient by a constant may become a product with the reciprocal. Factors and divisors that are
    powers of two are always exact."""
    if e.op == "mul":
        return not any(map(_is_power_of_two, e.args))
    return e.op in ("div", "floordiv") and not _is_power_of_two(e.args[1])


def _is_power_of_two(e: Expr) -> bool:
    return isinstance(e, Const) and math.frexp(e.value)[0] in (0.5, -0.5)


def whole(name: str, end: End) -> End:
    """An end of the floor, ceil, round or trunc of values, given their end."""
    if isinstance(end, Expr):
        return build.unary(name, end)
    if isinstance(end, np.ndarray):
        return _NUMPY[name](end)
    return _PYTHON[name](end) if is_number(end) and math.isfinite(end) else end


def truncated(end: End, to: DType) -> End:
    """An end of values that are cast to an integer type and saturate at its range, given their end; None if it is not
    known."""
    if isinstance(end, Expr):
        return None if to is UINT64 else build.cast(INDEX, build.cast(to, end))
    if isinstance(end, np.ndarray):
        return np.clip(np.trunc(end), float(to.min), float(min(to.max, 1 << 62))).astype(np.int64)
    if not is_number(end):
        return None
    return to.min if end <= to.min else to.max if end >= to.max else int(end)


def corners(f: Callable[[End, End], End], a: Sequence[End], b: Sequence[End]) -> tuple[End, End]:
    """The ends of f(x, y), a product or quotient, for x and y between the given ends; None if they are not known."""
    given = [x for x in (*a, *b) if not isinstance(x, (Expr, np.ndarray))]
    if not all(map(is_finite, given)) or f is truediv and not any(isinstance(x, Expr) for x in b) and not _one_sign(b):
        return None, None
    known = next((x for x in (*a, *b) if isinstance(x, Expr)), None)
    if known is not None:
        a, b = ([build.expr(x, known.dtype) for x in ends] for ends in (a, b))
    values = [f(x, y) for x in a for y in b]
    if known is not None:
        return reduce(build.minimum, values), reduce(build.maximum, values)
    least, most = (np.minimum, np.maximum) if any(isinstance(v, np.ndarray) for v in values) else (min, max)
    return reduce(least, values), reduce(most, values)


def _one_sign(ends: Sequence[End]) -> bool:
    """Whether no value between these numbers is 0. Compiled code runs only if this holds."""
    return bool(np.all([np.asarray(x) > 0 for x in ends]) or np.all([np.asarray(x) < 0 for x in ends]))
