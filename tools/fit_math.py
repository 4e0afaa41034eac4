"""Fit the polynomials of `pantile.codegen.math.coefficients` and print that table (needs mpmath).

    python tools/fit_math.py > src/pantile/codegen/math/coefficients.py

Every function is approximated as "known part + remainder * P(x)"; `Fit.target` is P's ideal, `Fit.weight` turns P's
error into the relative error of the whole function. Remez's exchange finds the P that makes the largest one least.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf

mp.prec = 300
Real = Callable[[mpf], mpf]
WIDEN = mpf("1.0001")  # a reduced argument may leave its interval by a rounding
LOG2_E = 1 / mp.log(2)


@dataclass(frozen=True)
class Fit:
    """Approximate `target` on [low, high] by a polynomial, minimizing the largest weight * error."""

    name: str
    target: Real
    weight: Real
    low: mpf
    high: mpf
    terms: dict[str, int]  # format -> number of coefficients


def even(f: Real) -> Real:
    """f(r) as a function of u = r*r."""
    return lambda u: f(mp.sqrt(u))


def atanh_tail(s: mpf) -> mpf:
    """log2((1 + s) / (1 - s)) = 2 log2(e) s + s**3 * this."""
    return LOG2_E * (2 * mp.atanh(s) - 2 * s) / s**3


def log2_ratio(s: mpf) -> mpf:
    """log2((1 + s) / (1 - s))."""
    return 2 * LOG2_E * mp.atanh(s)


HALF_LN2 = mp.log(2) / 2 * WIDEN
S = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * WIDEN
FITS = [
    Fit("EXP", lambda r: (mp.expm1(r) - r) / r**2, lambda r: abs(r**2 / mp.expm1(r)), -HALF_LN2, HALF_LN2,
        {"float32": 5, "float64": 10}),
    Fit("EXP2", lambda r: (mpf(2) ** r - 1) / r, lambda r: abs(r) / mpf(2) ** r, -WIDEN / 2, WIDEN / 2,
        {"float32": 6, "float64": 11}),
    Fit("LOG", lambda f: (mp.log1p(f) - f) / f**2, lambda f: abs(f**2 / mp.log1p(f)), -WIDEN / 3, WIDEN / 3,
        {"float32": 8, "float64": 20}),
    Fit("LOG2_TAIL", even(atanh_tail), even(lambda s: s**3 / log2_ratio(s)), mpf(0), S**2, {"float32": 4}),
    # The first coefficient is (2/3) log2(e), kept exact as a pair; these follow it.
    Fit("LOG2_TAIL", even(lambda s: (atanh_tail(s) - LOG2_E * 2 / 3) / s**2), even(lambda s: s**5 / log2_ratio(s)),
        mpf(0), S**2, {"float64": 7}),
    Fit("SIN", even(lambda r: (mp.sin(r) - r) / r**3), even(lambda r: r**3 / mp.sin(r)), mpf(0),
        (mp.pi / 2 * WIDEN) ** 2, {"float32": 4, "float64": 8}),
    Fit("TAN", even(lambda r: (mp.tan(r) - r) / r**3), even(lambda r: r**3 / mp.tan(r)), mpf(0),
        (mp.pi / 4 * WIDEN) ** 2, {"float32": 6, "float64": 14}),
    Fit("ATAN", even(lambda q: (mp.atan(q) - q) / q**3), even(lambda q: q**3 / mp.atan(q)), mpf(0), WIDEN**2,
        {"float32": 8, "float64": 19}),
    Fit("ASIN", even(lambda q: (mp.asin(q) - q) / q**3), even(lambda q: q**3 / mp.asin(q)), mpf(0),
        (WIDEN / 2) ** 2, {"float32": 5, "float64": 12}),
    # erf(x) = x + x * this below 1; above, 1 - e**(t * this), whose error matters less the smaller the power is.
    Fit("ERF", even(lambda x: mp.erf(x) / x - 1), even(lambda x: x / mp.erf(x)), mpf(0), WIDEN**2,
        {"float32": 7, "float64": 12}),
    Fit("LOG_ERFC", lambda t: mp.log(mp.erfc(t)) / t, lambda t: t * mp.erfc(t) / mp.erf(t), 1 / WIDEN, mpf(4),
        {"float32": 6}),
    Fit("LOG_ERFC", lambda t: mp.log(mp.erfc(t)) / t, lambda t: t * mp.erfc(t) / mp.erf(t), 1 / WIDEN, mpf(6),
        {"float64": 18}),
    # The first guess of one over the cube root, which steps of Newton's improve.
    Fit("RCBRT", lambda m: 1 / mp.cbrt(m), mp.cbrt, 1 / WIDEN, 2 * WIDEN, {"float32": 5, "float64": 6}),
]  # fmt: skip

# Constants as sums of numbers of a format: name, value, how many, formats.
BOTH = ("float32", "float64")
CONSTANTS = [
    ("LN2", mp.log(2), 2, BOTH),
    ("TWO_LOG2_E", 2 * LOG2_E, 2, BOTH),
    ("TWO_THIRDS_LOG2_E", 2 * LOG2_E / 3, 2, ("float64",)),
    ("PI", mp.pi, 3, ("float64",)),
    ("HALF_PI", mp.pi / 2, 2, BOTH),
]
HEADER = '''\
"""Numbers that `tools/fit_math.py` computed: constants in parts, and minimax polynomials with their relative errors.

By format: float32, float64. Coefficients stand lowest power first.
"""

from __future__ import annotations

Table = dict[str, tuple[float, ...]]
'''


def polynomial(coefficients: list[mpf], x: mpf) -> mpf:
    """The polynomial's value at x."""
    return mp.polyval(coefficients[::-1], x)


def solve(fit: Fit, points: list[mpf], terms: int) -> list[mpf]:
    """The polynomial whose weighted error is equal and alternating in sign at the points."""
    rows = [[fit.weight(x) * x**k for k in range(terms)] + [mpf((-1) ** i)] for i, x in enumerate(points)]
    right = mp.matrix([fit.weight(x) * fit.target(x) for x in points])
    return list(mp.lu_solve(mp.matrix(rows), right))[:terms]


def exchange(errors: list[tuple[mpf, mpf]], count: int) -> list[mpf]:
    """Where each run of one sign peaks; the smaller end peaks go while there are more than `count`."""
    peaks: list[tuple[mpf, mpf]] = []
    for x, error in errors:
        if peaks and (error > 0) == (peaks[-1][1] > 0):
            if abs(error) > abs(peaks[-1][1]):
                peaks[-1] = (x, error)
        else:
            peaks.append((x, error))
    while len(peaks) > count:
        peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
    return [x for x, _ in peaks]


def chebyshev(fit: Fit, count: int) -> list[mpf]:
    """Chebyshev's points of the interval."""
    middle, radius = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    return [middle - radius * mp.cos(mp.pi * (i + mpf(1) / 2) / count) for i in range(count)]


def remez(fit: Fit, terms: int, rounds: int = 8) -> tuple[list[mpf], mpf]:
    """Minimax coefficients, lowest first, and the largest weighted error."""
    grid = [(x, fit.weight(x), fit.target(x)) for x in chebyshev(fit, 60 * terms)]
    points = chebyshev(fit, terms + 1)
    for _ in range(rounds):
        coefficients = solve(fit, points, terms)
        errors = [(x, w * (t - polynomial(coefficients, x))) for x, w, t in grid]
        new = exchange(errors, terms + 1)
        if len(new) < terms + 1:
            break
        points = new
    return coefficients, max(abs(e) for _, e in errors)


def parts(value: mpf, name: str, count: int) -> list[np.floating]:
    """`value` as an unevaluated sum of `count` numbers of the format, largest first."""
    result = []
    for _ in range(count):
        result.append(rounded(value, name))
        value -= mpf(float(result[-1]))
    return result


def rounded(value: mpf, name: str) -> np.floating:
    """`value` as a number of the format."""
    return np.dtype(name).type(mp.nstr(value, 40))


def show(name: str, numbers: list[np.floating]) -> str:
    """The row of a format in filled lines, with the shortest digits that give each number."""
    text = f'"{name}": ({", ".join(str(n) for n in numbers)}),'
    return textwrap.fill(text, 108, initial_indent="    ", subsequent_indent="        ")


def main() -> None:
    """Print the module of coefficients."""
    tables: dict[str, list[str]] = {}
    for constant, value, count, formats in CONSTANTS:
        for name in formats:
            tables.setdefault(constant, []).append(show(name, parts(value, name, count)))
    for fit in FITS:
        for name, terms in fit.terms.items():
            coefficients, error = remez(fit, terms)
            row = show(name, [rounded(c, name) for c in coefficients])
            text = f"{row}  # 2**{mp.nstr(mp.log(error, 2), 3)}"
            tables.setdefault(fit.name, []).append(text)
    print(HEADER)
    for name, rows in tables.items():
        print("\n".join([f"{name}: Table = {{", *rows, "}  # fmt: skip"]))


if __name__ == "__main__":
    main()
