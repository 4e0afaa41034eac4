"""Random integer arithmetic of all types, with constants at the ends of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import strategies as st

from pantile.expr.build import binary, cast, select, unary
from pantile.expr.nodes import Expr, const, op
from pantile.expr.types import INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DType

Exprs = st.SearchStrategy[Expr]
TYPES = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
_BINARY = ("add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr")
_SHIFTED = ("mul_shift", "rounding_mul_shift")
_FIXED = ("halving_add", "rounding_halving_add", "saturating_add", "saturating_sub", *_SHIFTED)
_COMPARED = ("le", "lt", "ge", "gt", "eq", "ne")


def extremes(t: DType) -> st.SearchStrategy[int]:
    """Numbers of a type: its ends, those of smaller types, powers of two, small ones."""
    near = st.integers(0, t.bits).map(lambda k: 1 << k)
    ends = st.builds(lambda n, sign, by: sign * n + by, near, st.sampled_from([1, -1]), st.integers(-2, 2))
    wanted = st.sampled_from([t.min, t.max, t.min + 1, t.max - 1]) | ends | st.integers(-4, 12)
    return wanted.filter(lambda n: t.min <= n <= t.max)


def some_extreme(rng: Random, t: DType) -> int:
    """One such number, without Hypothesis: data need not shrink."""
    n = rng.choice([1, -1]) * (1 << rng.randrange(t.bits)) + rng.randint(-2, 2)
    found = rng.choice([t.min, t.max, t.min + 1, t.max - 1, n, n, rng.randint(-4, 12), rng.randint(t.min, t.max)])
    return min(max(found, t.min), t.max)


@st.composite
def integers(draw: st.DrawFn, leaf: Callable[[st.DrawFn, DType], Expr | None], t: DType, depth: int) -> Expr:
    """An expression of type `t`. `leaf`: something that is no constant, where there is any of a type."""
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        found = leaf(draw, t) if draw(st.integers(0, 3)) else None
        return const(draw(extremes(t)), t) if found is None else found

    def part(of: DType = t) -> Expr:
        return draw(integers(leaf, of, depth - 1))

    kind = draw(st.sampled_from(["binary"] * 5 + ["cast"] * 3 + ["unary", "select", "fixed", "clamp", "constant"]))
    if kind == "cast":
        return cast(t, part(draw(st.sampled_from(TYPES))))
    if kind == "unary":
        return unary(draw(st.sampled_from(["neg", "abs", "not"])), part())
    if kind == "select":
        of = draw(st.sampled_from(TYPES))
        return select(binary(draw(st.sampled_from(_COMPARED)), part(of), part(of)), part(), part())
    if kind == "fixed":
        name = draw(st.sampled_from(_FIXED if t.is_signed else (*_FIXED, "absd")))
        shift = (const(draw(st.integers(0, t.bits)), t),) if name in _SHIFTED else ()
        return op(name, part(), part(), *shift)
    if kind == "clamp":
        low, high = sorted((draw(extremes(t)), draw(extremes(t))))
        return binary("max", binary("min", part(), const(high, t)), const(low, t))
    other = const(draw(extremes(t)), t) if kind == "constant" else part()
    return binary(draw(st.sampled_from(_BINARY)), part(), other)
