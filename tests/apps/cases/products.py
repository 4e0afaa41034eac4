"""Products of matrices, whole ones and triangles, in double precision."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..case import Array, Case, Shapes

ALPHA, BETA = 1.5, 1.2


def wide(*arrays: Array) -> list[Array]:
    return [a.astype(np.float64) for a in arrays]


def gemm(a: Array, b: Array, c: Array) -> Array:
    a, b, c = wide(a, b, c)
    return ALPHA * a @ b + BETA * c


def mm2(a: Array, b: Array, c: Array, d: Array) -> Array:
    a, b, c, d = wide(a, b, c, d)
    return ALPHA * a @ b @ c + BETA * d


def mm3(a: Array, b: Array, c: Array, d: Array) -> Array:
    a, b, c, d = wide(a, b, c, d)
    return (a @ b) @ (c @ d)


def doitgen(a: Array, c: Array) -> Array:
    return np.einsum("rik,kj->rij", *wide(a, c), optimize=True)


def trmm(a: Array, b: Array) -> Array:
    """The diagonal counts as ones."""
    a, b = wide(a, b)
    return ALPHA * (np.triu(a.T, 1) @ b + b)


def syrk(a: Array, c: Array) -> Array:
    a, c = wide(a, c)
    return _triangle(ALPHA * a @ a.T + BETA * c, c)


def syr2k(a: Array, b: Array, c: Array) -> Array:
    a, b, c = wide(a, b, c)
    return _triangle(ALPHA * (a @ b.T + b @ a.T) + BETA * c, c)


def _triangle(below: Array, above: Array) -> Array:
    return np.tril(below) + np.triu(above, 1)


def chain(*extents: int) -> Shapes:
    """Matrices whose product is of the first by the last extent, and one of that shape."""
    sides = [*pairwise(extents), (extents[0], extents[-1])]
    return dict(zip("abcd", sides, strict=False))


TINY, PRIMES, THIN, LARGE = (1, 1, 1), (7, 5, 3), (3, 67, 19), (133, 521, 149)
LONGER = ((1, 1, 1, 1), (7, 5, 3, 11), (2, 37, 5, 41), (131, 83, 97, 151))
LONGEST = ((1, 1, 1, 1, 1), (7, 5, 3, 11, 2), (2, 37, 5, 41, 19), (131, 83, 97, 151, 70))
TRIANGLES = ((1, 1), (7, 5), (67, 19))
CASES = {
    "gemm": Case(gemm, odd=tuple(chain(*e) for e in (TINY, PRIMES, THIN)), large=chain(*LARGE)),
    "mm2": Case(mm2, odd=tuple(chain(*e) for e in LONGER[:3]), large=chain(*LONGER[3])),
    "mm3": Case(mm3, odd=tuple(chain(*e) for e in LONGEST[:3]), large=chain(*LONGEST[3])),
    "doitgen": Case(
        doitgen,
        odd=tuple({"a": (r, i, k), "c": (k, j)} for r, i, k, j in ((1, 1, 1, 1), (3, 5, 7, 2), (2, 19, 3, 67))),
        large={"a": (3, 83, 71), "c": (71, 67)},
    ),
    "trmm": Case(
        trmm,
        odd=tuple({"a": (n, n), "b": (n, m)} for n, m in TRIANGLES),
        large={"a": (531, 531), "b": (531, 83)},
    ),
    "syrk": Case(
        syrk,
        odd=tuple({"a": (n, k), "c": (n, n)} for n, k in TRIANGLES),
        large={"a": (149, 521), "c": (149, 149)},
    ),
    "syr2k": Case(
        syr2k,
        odd=tuple({"a": (n, k), "b": (n, k), "c": (n, n)} for n, k in TRIANGLES),
        large={"a": (149, 521), "b": (149, 521), "c": (149, 149)},
    ),
}
