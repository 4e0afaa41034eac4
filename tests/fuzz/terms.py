"""Typed pieces of source text, with bounds on the difference between compiled code and the reference.

A `Term` is the text of an expression with its type, a bound on its magnitude, and a bound on the absolute difference
that compiled code may show. Integers never differ. Floats come in two regimes:

    wild   strict pipelines without transcendentals: any bits (NaN, infinities), and no difference at all
    tame   values of bounded magnitude; every rounding that the compiler may change adds to the difference

A term whose difference is not zero never feeds a discontinuous operation (comparisons, conversions to integers,
floor, argmin, conditions, indices).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pantile.expr.types import DType

# Magnitudes are kept below this by scaling, so that products of a few terms stay finite.
_CAP = {"float16": 250.0, "bfloat16": 1e4, "float32": 1e4, "float64": 1e4}
_UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-22, "float64": 2.0**-51}
_TINY = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


@dataclass(frozen=True)
class Term:
    """An expression of type `dtype` with magnitude at most `size`, which compiled code computes to within `slack`."""

    text: str
    dtype: DType
    size: float = math.inf
    slack: float = 0.0

    @property
    def exact(self) -> bool:
        return self.slack == 0


def unit(t: DType) -> float:
    """A bound on the relative difference between two roundings."""
    return _UNIT[t.name]


def integer(text: str, dtype: DType) -> Term:
    """An integer or condition, bounded by its type."""
    return Term(text, dtype, float(max(dtype.max, -dtype.min)))


@dataclass(frozen=True)
class Regime:
    """The treatment of floats in one pipeline."""

    tame: bool
    strict: bool

    def combined(self, text: str, t: DType, size: float, slack: float, ieee: bool = True) -> Term:
        """The result of one float operation; `ieee` says whether a strict compiler must round it exactly."""
        if not self.tame:
            return Term(text, t)
        if slack or not (self.strict and ieee):
            slack += unit(t) * size * (1 if ieee else 16) + _TINY[t.name]
        return self.scaled(Term(text, t, size, slack))

    def scaled(self, term: Term) -> Term:
        """Scale a term down so that products and sums stay finite."""
        if not (self.tame and term.dtype.is_float) or term.size <= _CAP[term.dtype.name]:
            return term
        cap = _CAP[term.dtype.name]
        factor = 2.0 ** -math.ceil(math.log2(term.size / cap) + 2)
        slack = term.slack * factor + (_TINY[term.dtype.name] if term.slack else 0)
        return Term(f"({term.text} * {factor!r})", term.dtype, term.size * factor, slack)

    def converted(self, text: str, t: DType, source: Term) -> Term:
        """A conversion to the float type `t`."""
        if not self.tame:
            return Term(text, t)
        slack = source.slack + unit(t) * source.size if source.slack else 0.0
        return self.scaled(Term(text, t, source.size * (1 + unit(t)), slack))

    def fits(self, source: Term, t: DType) -> bool:
        """Whether a conversion to the float type `t` cannot overflow."""
        return not self.tame or source.size <= (256.0 if t.name == "float16" else 1e30)
