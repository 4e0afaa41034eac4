"""sin, cos, tan, asin, acos and atan2 of float32 and float64."""

from __future__ import annotations

import math

from ...expr.build import bits, cast, maximum, minimum, select, unary
from ...expr.nodes import Expr
from ...expr.types import FLOAT64
from . import coefficients as table
from .parts import flip_sign, fma, format_of, poly, sign_of


def sin(x: Expr) -> Expr:
    """Compute sin(r + n*pi) = (-1)**n sin(r)."""
    r, n = _reduce(x, math.pi)
    return select(x == 0.0, x, _alternate(r, n))  # keeps the sign of zero


def cos(x: Expr) -> Expr:
    """Compute cos(r + (n - 1/2)*pi) = (-1)**n sin(r)."""
    return _alternate(*_reduce(x, math.pi, offset=0.5))


def _alternate(r: Expr, n: Expr) -> Expr:
    """Compute (-1)**n sin(r) for |r| <= pi/2."""
    fmt = format_of(r)
    u = r * r
    sine = fma(r * u, poly(u, fmt.of(table.SIN)), r)
    # Rounding may exceed 1, and so may the polynomial if the argument is too large to reduce.
    sine = maximum(minimum(sine, 1.0), -1.0)
    return flip_sign(sine, n << (fmt.uint.bits - 1))


def tan(x: Expr) -> Expr:
    """Compute tan(r + n*pi/2), which is tan(r) for even n and -1/tan(r) for odd n."""
    r, n = _reduce(x, math.pi / 2)
    u = minimum(r * r, 1.0)  # so that an argument too large to reduce does not yield NaN
    tangent = fma(r * u, poly(u, format_of(x).of(table.TAN)), r)
    return select(x == 0.0, x, select((n & 1) != 0, -1.0 / tangent, tangent))


def _reduce(x: Expr, period: float, offset: float = 0.0) -> tuple[Expr, Expr]:
    """Return r = x - (n - offset) * period with |r| <= period / 2, and n in the low bits of an unsigned integer.

    The computation is in float64, with two parts of pi for float32 and three for float64. It is accurate as long as n
    is exact (|x| < 1e12 or so).
    """
    fmt, wide = format_of(x), cast(FLOAT64, x)
    rounder = format_of(wide).rounder
    total = fma(wide, 1 / period, offset) + rounder if offset else fma(wide, 1 / period, rounder)
    n = total - rounder
    n = n - offset if offset else n
    for part in table.PI["float64"][: 2 if fmt.bias == 127 else 3]:
        wide = fma(n, -part * (period / math.pi), wide)
    return cast(x.dtype, wide), cast(fmt.uint, bits("uint64", total))


def asin(x: Expr) -> Expr:
    """Compute asin(|x|) directly up to 1/2, and otherwise as pi/2 - 2 asin(q) with q = sqrt((1 - |x|) / 2)."""
    angle, far = _arc(x)
    high, low = format_of(x).of(table.HALF_PI)
    return flip_sign(select(far, fma(angle, -2.0, high) + low, angle), sign_of(x))


def acos(x: Expr) -> Expr:
    """Compute pi/2 - asin(x) for |x| up to 1/2, and otherwise 2 asin(q) or, for negative x, pi - 2 asin(q)."""
    fmt = format_of(x)
    angle, far = _arc(x)
    # The angle is subtracted from pi/2 if |x| <= 1/2, and from pi if x < -1/2; if x > 1/2, it is added to 0.
    high, low = (
        select(far, select(x < 0.0, fmt.number(2 * part, 1), fmt.number(0.0, 1)), fmt.number(part, 1))
        for part in fmt.of(table.HALF_PI)
    )
    turn = flip_sign(select(far, fmt.number(2.0, 1), fmt.number(-1.0, 1)), sign_of(x))
    return fma(angle, turn, high) + low


def _arc(x: Expr) -> tuple[Expr, Expr]:
    """Return asin(|x|) or, for |x| > 1/2, asin(sqrt((1 - |x|) / 2)), which is NaN for |x| > 1; and whether |x| > 1/2.

    The caller applies the sign of x.
    """
    size = abs(x)
    far = size > 0.5
    u = select(far, fma(size, -0.5, 0.5), size * size)
    q = select(far, unary("sqrt", u), size)
    return fma(q * u, poly(u, format_of(x).of(table.ASIN)), q), far


def atan2(y: Expr, x: Expr) -> Expr:
    """Compute atan(q) of the quotient q <= 1 of |x| and |y|, and mirror it into the octant of (x, y)."""
    fmt = format_of(x)
    across, up = abs(x), abs(y)
    small, large = minimum(across, up), maximum(across, up)
    q = small / maximum(large, fmt.least)  # 0/0 is 0 here
    q = select(small == math.inf, fmt.number(1.0, 1), q)
    u = q * q
    angle = fma(q * u, poly(u, fmt.of(table.ATAN)), q)
    steep, left = up > across, sign_of(x)
    base = select(steep, fmt.number(math.pi / 2, 1), select(left != 0, fmt.number(math.pi, 1), fmt.number(0.0, 1)))
    mirror = select(steep, left ^ fmt.sign, left)
    return flip_sign(base + flip_sign(angle, mirror), sign_of(y))
