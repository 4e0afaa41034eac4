"""Random index expressions, and their plain meaning at a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pantile.expr.build import binary, cast, select, unary
from pantile.expr.nodes import Cast, Const, Expr, Load, Op, Var, const
from pantile.expr.types import INDEX, INT16, INT32

from ..long import LONG

Point = Mapping[str, int]
Exprs = st.SearchStrategy[Expr]


def clamp(value: Expr, low: Expr, high: Expr) -> Expr:
    """value limited to [low, high]; low where the two cross."""
    return binary("max", binary("min", value, high), low)


def cases(n: int) -> settings:
    """So many examples, the same in every run; PANTILE_FUZZ=long searches anew and longer."""
    return settings(
        max_examples=30 * n if LONG else n,
        derandomize=not LONG,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


RULES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "abs": abs,
    "shr": lambda a, b: a >> b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: not a,
    "le": lambda a, b: a <= b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def value(e: Expr, at: Point) -> int:
    """The value of an expression of variables, in integers without limits."""
    if isinstance(e, Const):
        return int(e.value) if e.dtype.is_int else bool(e.value)
    if isinstance(e, Var):
        return at[e.name]
    if isinstance(e, Cast):
        return value(e.value, at)
    assert isinstance(e, Op), e
    if e.op == "select":
        return value(e.args[1 if value(e.args[0], at) else 2], at)
    return int(RULES[e.op](*(value(a, at) for a in e.args)))


def reads(e: Expr, at: Point) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What evaluating an expression at a point reads: a select reads its condition and the branch it takes."""
    if isinstance(e, Load):
        yield e.buffer, tuple(value(i, at) for i in e.indices)
    elif isinstance(e, Op) and e.op == "select":
        yield from reads(e.args[0], at)
        yield from reads(e.args[1 if value(e.args[0], at) else 2], at)
    elif isinstance(e, (Op, Cast)):
        for c in e.args if isinstance(e, Op) else (e.value,):
            yield from reads(c, at)


def points(box: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, int]]:
    """All points of a box of (low, high)."""
    if not box:
        yield {}
        return
    (name, (low, high)), rest = next(iter(box.items())), dict(list(box.items())[1:])
    for v in range(low, high + 1):
        for others in points(rest):
            yield {name: v, **others}


@st.composite
def boxes(draw: st.DrawFn, names: str, size: int = 4) -> dict[str, tuple[int, int]]:
    """A small range for every name."""
    lows = {n: draw(st.integers(-9, 9)) for n in names}
    return {n: (low, low + draw(st.integers(0, size - 1))) for n, low in lows.items()}


def indices(variables: list[Var], depth: int = 3) -> Exprs:
    """Sums, products, quotients, remainders, clamps, shifts and selects of the variables."""
    t = variables[0].dtype
    constants = st.integers(-6, 6).map(lambda c: const(c, t))
    leaf: Exprs = st.sampled_from(variables) | constants
    if depth == 0:
        return leaf
    inner = indices(variables, depth - 1)
    small = st.integers(-4, 4).map(lambda c: const(c, t))
    positive = st.integers(1, 5).map(lambda c: const(c, t))
    bits = st.integers(0, 3).map(lambda c: const(c, t))
    return st.one_of(
        leaf,
        st.builds(binary, st.sampled_from(["add", "sub", "min", "max"]), inner, inner),
        st.builds(binary, st.sampled_from(["mul", "floordiv", "mod"]), inner, small),
        st.builds(binary, st.sampled_from(["floordiv", "mod"]), inner, positive),
        st.builds(binary, st.sampled_from(["mul", "floordiv", "mod"]), inner, inner),
        st.builds(binary, st.just("shr"), inner, bits),
        st.builds(binary, st.just("and"), inner, st.integers(0, 9).map(lambda c: const(c, t))),
        st.builds(unary, st.sampled_from(["neg", "abs"]), inner),
        st.builds(clamp, inner, constants, constants),
        st.builds(select, conditions(inner), inner, inner),
    )


def conditions(inner: Exprs) -> Exprs:
    """Comparisons of what `inner` gives, and combinations of two."""
    one = st.builds(binary, st.sampled_from(["le", "lt", "ge", "gt", "eq", "ne"]), inner, inner)
    return st.one_of(
        one, st.builds(binary, st.sampled_from(["and", "or"]), one, one), st.builds(unary, st.just("not"), one)
    )


@st.composite
def affine(draw: st.DrawFn, variables: list[Var], least_divisor: int = -4) -> Expr:
    """floor((a*v + b*w + ... + c) / d), every variable once, perhaps clamped: what intervals are exact for."""
    total: Expr = const(draw(st.integers(-9, 9)), variables[0].dtype)
    for v in draw(st.permutations(variables)):
        total = binary(draw(st.sampled_from(["add", "sub"])), total, v * draw(st.integers(-4, 4)))
    divided = binary("floordiv", total, const(draw(st.integers(least_divisor, 4).filter(bool)), total.dtype))
    if draw(st.booleans()):
        return divided
    low = draw(st.integers(-5, 5))
    return clamp(divided, const(low, total.dtype), const(low + draw(st.integers(0, 9)), total.dtype))


@st.composite
def float_indices(draw: st.DrawFn, variables: list[Var], scale: Expr, depth: int = 2) -> Expr:
    """Integers of floats of the variables: sums, products, quotients by numbers and by `scale`, clamps and floors."""
    e = cast(scale.dtype, draw(affine(variables)))
    number = st.sampled_from([0.5, 1.5, 0.1, -0.75, 3.0, -1.3, 100.7])
    for _ in range(draw(st.integers(1, 2 * depth))):
        name = draw(st.sampled_from(["add", "sub", "mul", "div", "min", "max", "floor", "ceil", "round", "abs", "neg"]))
        if name in ("floor", "ceil", "round", "abs", "neg"):
            e = unary(name, e)
        else:
            other = draw(st.just(scale) | number | st.sampled_from(variables).map(lambda v: cast(scale.dtype, v)))
            if name == "div" and isinstance(other, Cast):
                other = scale
            e = binary(name, e, other)
    return cast(INDEX, cast(draw(st.sampled_from([INT32, INT16])), e))
