"""exp, log, pow, cbrt, tanh and erf of float32 and float64."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...expr.build import bits, maximum, minimum, select, unary
from ...expr.nodes import Const, Expr, Number
from . import coefficients as table
from .parts import (
    Format,
    add_product,
    flip_sign,
    fma,
    format_of,
    nearest_integer,
    poly,
    power_of_two,
    scale,
    sign_of,
    two_product,
    two_sum,
)

_LOG2_E = 1 / math.log(2)


def exp(x: Expr) -> Expr:
    """Compute e**x = 2**n * e**r with |r| <= ln(2) / 2."""
    fmt = format_of(x)
    # Beyond these limits, results are 0 or infinity. The clamp keeps n small and lets NaN pass.
    x = maximum(minimum(x, 89.0 if fmt.bias == 127 else 710.0), -104.0 if fmt.bias == 127 else -746.0)
    r, n = _reduce_exp(x)
    return scale(fma(r, poly(r, (1.0, *fmt.of(table.EXP))), 1.0), n)


def _reduce_exp(x: Expr) -> tuple[Expr, Expr]:
    """Return r = x - n * ln(2), and n in the low bits of an integer."""
    high, low = format_of(x).of(table.LN2)
    n, n_bits = nearest_integer(x, _LOG2_E)
    return fma(n, -low, fma(n, -high, x)), n_bits


def tanh(x: Expr) -> Expr:
    """Compute q / (q + 2) with q = e**(2|x|) - 1, which stays accurate relative to its size near zero."""
    fmt = format_of(x)
    limit = minimum(abs(x), 10.0 if fmt.bias == 127 else 20.0)  # tanh already rounds to 1 below this limit
    r, n = _reduce_exp(limit + limit)
    power = power_of_two(n, fmt)
    q = fma(fma(r * r, poly(r, fmt.of(table.EXP)), r), power, power - 1.0)
    return flip_sign(_divide_by_next(q), sign_of(x))


def _divide_by_next(q: Expr) -> Expr:
    """Compute q / (q + 2), corrected for the rounding errors of the sum and the quotient."""
    total = q + 2.0
    total_error = q - (total - 2.0)
    inverse = 1.0 / total
    quotient = q * inverse
    remainder = fma(-quotient, total_error, fma(-quotient, total, q))
    return fma(remainder, inverse, quotient)


def erf(x: Expr) -> Expr:
    """For t = |x|, compute t + t P(t*t) if t < 1, and otherwise 1 - e**(t Q(t)), where e**(t Q(t)) is 1 - erf(t)."""
    fmt = format_of(x)
    size = abs(x)
    near = fma(size, poly(size * size, fmt.of(table.ERF)), size)
    t = minimum(size, 4.0 if fmt.bias == 127 else 6.0)  # erf already rounds to 1 below this limit
    r, n = _reduce_exp(t * poly(t, fmt.of(table.LOG_ERFC)))
    rest = fma(r, poly(r, (1.0, *fmt.of(table.EXP))), 1.0)
    far = fma(-rest, power_of_two(n, fmt), 1.0)
    return flip_sign(select(size < 1.0, near, far), sign_of(x))


def log(x: Expr) -> Expr:
    """Compute log(m * 2**e) = log(m) + e * ln(2) with 2/3 <= m < 4/3."""
    fmt = format_of(x)
    m, e = _split(x, 2 / 3)
    f = m - 1.0
    high, low = fmt.of(table.LN2)
    log_m = fma(f * f, poly(f, fmt.of(table.LOG)), f)
    result = fma(e, high, fma(e, low, log_m))
    result = select(x < math.inf, result, x)  # infinity and NaN stay
    return select(x <= 0.0, select(x < 0.0, fmt.number(math.nan, 1), fmt.number(-math.inf, 1)), result)


def _split(x: Expr, least: float) -> tuple[Expr, Expr]:
    """Split x = m * 2**e, both as floats, with least <= m < 2 * least; x is positive and finite, perhaps denormal."""
    fmt = format_of(x)
    small = x < fmt.tiny
    x = select(small, x * 2.0**fmt.mantissa, x)
    # From here on, a float's bits are read as (biased exponent, fraction), shifted so that a new exponent begins at
    # `least`; 2**mantissa + biased exponent is a float whose low bits are that integer.
    start = int(fmt.dtype.numpy.type(least).view(fmt.uint.numpy))
    shifted = bits(fmt.uint, x) + (fmt.one - start)
    m = bits(fmt.dtype, (shifted & fmt.fraction) + start)
    integer = bits(fmt.dtype, (shifted >> fmt.mantissa) | ((fmt.bias + fmt.mantissa) << fmt.mantissa))
    zero = 2.0**fmt.mantissa + fmt.bias
    return m, integer - select(small, fmt.number(zero + fmt.mantissa, 1), fmt.number(zero, 1))


def cbrt(x: Expr) -> Expr:
    """Compute cbrt(m * 2**e) = cbrt(w) * 2**n, where w = m * 2**r and e = 3n + r with r one of -1, 0, 1."""
    fmt = format_of(x)
    size = abs(x)
    m, e = _split(size, 1.0)
    n, n_bits = nearest_integer(e, 1 / 3)
    root = _cube_root(m, fma(n, -3.0, e)) * power_of_two(n_bits, fmt)
    return select((size > 0.0) & (size < math.inf), flip_sign(root, sign_of(x)), x)  # zero, infinity and NaN stay


def _cube_root(m: Expr, r: Expr) -> Expr:
    """The cube root of w = m * 2**r: w z z with a guess z of w**(-1/3), then a Newton step divided by 3 / (z z)."""
    fmt = format_of(m)

    def by_r(minus: float, plus: float) -> Expr:
        one = fmt.number(1.0, 1)
        return select(r < 0.0, fmt.number(minus, 1), select(r > 0.0, fmt.number(plus, 1), one))

    w = m * by_r(0.5, 2.0)
    z = poly(m, fmt.of(table.RCBRT)) * by_r(2 ** (1 / 3), 2 ** (-1 / 3))
    if fmt.bias != 127:
        z = fma(z * fma(-(w * z), z * z, 1.0), 1 / 3, z)
    square = z * z
    y = w * square
    product, error = two_product(y, y)
    rest = fma(-y, error, fma(-y, product, w))
    return fma(rest * square, 1 / 3, y)


def pow(x: Expr, y: Expr) -> Expr:
    """Compute |x|**y = 2**(y * log2|x|) with the product in twice the precision, then signs and special cases."""
    if isinstance(y, Const) and y.value in _PRODUCTS:
        return _PRODUCTS[y.value](x)
    fmt = format_of(x)
    size = abs(x)
    high, low = _log2(size)
    high = select(size < math.inf, high, size)  # infinity and NaN stay
    high = select(size == 0.0, fmt.number(-math.inf, 1), high)
    result = _exp2_of_product(y, high, low)
    result = select((size == 1.0) | (y == 0.0), fmt.number(1.0, 1), result)
    return _power_sign(x, y, result)


# Exponents for which one or two multiplications are as accurate.
_PRODUCTS: dict[Number, Callable[[Expr], Expr]] = {
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
}


def _power_sign(x: Expr, y: Expr, power: Expr) -> Expr:
    """Give an odd power of a negative base its sign, and make a fractional power of one NaN, except that infinity and
    zero have all powers."""
    fmt = format_of(x)
    half, whole = y * 0.5, unary("floor", y)
    odd = (unary("floor", half) != half) & (whole == y)
    sign = select(odd, sign_of(x), Const(fmt.uint, 1, 0))
    undefined = (x < 0.0) & (abs(x) < math.inf) & (whole != y)
    return select(undefined, fmt.number(math.nan, 1), flip_sign(power, sign))


def _exp2_of_product(y: Expr, high: Expr, low: Expr) -> Expr:
    """Compute 2**(y * (high + low))."""
    fmt = format_of(y)
    limit = 160.0 if fmt.bias == 127 else 1100.0
    product = y * high
    clamped = maximum(minimum(product, limit), -limit)
    n, n_bits = nearest_integer(clamped, 1.0)
    r = fma(y, low, fma(y, high, -n))
    r = select(abs(product) > limit, fmt.number(0.0, 1), r)  # beyond the limit, n alone determines the result
    return scale(fma(r, poly(r, fmt.of(table.EXP2)), 1.0), n_bits)


def _log2(x: Expr) -> tuple[Expr, Expr]:
    """log2 of a positive finite number as an unevaluated sum: e + 2 log2(E) * atanh(s), s = (m - 1) / (m + 1)."""
    fmt = format_of(x)
    m, e = _split(x, math.sqrt(0.5))
    s, s_error = _ratio(m)
    factor, factor_error = fmt.of(table.TWO_LOG2_E)
    high, low = add_product(e, s, factor)
    low = fma(s, factor_error, fma(s_error, factor, low))
    return two_sum(*_add_tail(fmt, s, s_error, high, low))


def _ratio(m: Expr) -> tuple[Expr, Expr]:
    """(m - 1) / (m + 1) as an unevaluated sum."""
    f = m - 1.0
    total = m + 1.0
    total_error = m - (total - 1.0)
    inverse = 1.0 / total
    s = f * inverse
    remainder = fma(-s, total_error, fma(-s, total, f))
    return s, remainder * inverse


def _add_tail(fmt: Format, s: Expr, s_error: Expr, high: Expr, low: Expr) -> tuple[Expr, Expr]:
    """Add the terms in s**3 and above. They are a hundredth of the first term, so float32 needs no second word for
    them; float64, with its larger exponents, needs one for the term in s**3."""
    if fmt.bias == 127:
        u = s * s
        cube = fma(u * s_error, 3.0, s * u)
        return high, fma(cube, poly(u, fmt.of(table.LOG2_TAIL)), low)
    u, u_error = two_product(s, s)
    cube, cube_error = two_product(s, u)
    cube_error = fma(s, fma(s + s, s_error, u_error), fma(s_error, u, cube_error))
    factor, factor_error = fmt.of(table.TWO_THIRDS_LOG2_E)
    high, rest = add_product(high, cube, factor)
    rest = fma(cube_error, factor, fma(cube, factor_error, rest))
    return high, rest + fma(cube * u, poly(u, fmt.of(table.LOG2_TAIL)), low)
