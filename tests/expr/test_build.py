"""Folding never changes a value: random integer expressions, folded and not, against plain Python integers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.expr.build import binary, broadcast, cast, expr, select, unary
from pantile.expr.nodes import Broadcast, Cast, Const, Expr, Op, Var, const, op, var
from pantile.expr.types import ALL, BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8, UINT64, DType
from pantile.expr.visit import children, masked_load, rebuild, same, substitute, transform, variables

INTEGERS = tuple(t for t in ALL if t.is_int)
NAMES = ("a", "b", "c")
COMPARE: dict[str, Callable[[int, int], bool]] = {n: getattr(operator, n) for n in ("eq", "ne", "lt", "le", "gt", "ge")}

unhurried = settings(deadline=None)  # a loaded machine is no bug


# The meaning, in unbounded integers


def wrap(value: int, t: DType) -> int:
    """The value that `value` has in `t`."""
    if t.is_bool:
        return int(value != 0)
    return (value - t.min) % (1 << t.bits) + t.min


def shift_left(a: int, b: int, t: DType) -> int:
    return a << b if 0 <= b < t.bits else 0


def shift_right(a: int, b: int, t: DType) -> int:
    return a >> b if 0 <= b < t.bits else -(a < 0)


MEANING: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda a, b, t: a + b,
    "sub": lambda a, b, t: a - b,
    "mul": lambda a, b, t: a * b,
    "floordiv": lambda a, b, t: a // b if b else 0,
    "mod": lambda a, b, t: a % b if b else 0,
    "min": lambda a, b, t: min(a, b),
    "max": lambda a, b, t: max(a, b),
    "and": lambda a, b, t: a & b,
    "or": lambda a, b, t: a | b,
    "xor": lambda a, b, t: a ^ b,
    "shl": shift_left,
    "shr": shift_right,
}


def evaluate(e: Expr, values: dict[str, int]) -> int:
    """The value of every lane of `e`, where a name has the same value in every type (wrapped into it)."""
    if isinstance(e, Const):
        return int(e.value)
    if isinstance(e, Var):
        return wrap(values[e.name], e.dtype)
    operands = [evaluate(c, values) for c in children(e)]
    if isinstance(e, (Cast, Broadcast)):
        assert not e.dtype.is_float
        return wrap(operands[0], e.dtype)
    assert isinstance(e, Op)
    return _evaluate_op(e, operands)


def _evaluate_op(e: Op, operands: list[int]) -> int:
    if e.op == "select":
        return operands[1] if operands[0] else operands[2]
    if e.op in COMPARE:
        return int(COMPARE[e.op](*operands))
    if len(operands) == 1:
        a = operands[0]
        return wrap({"neg": -a, "abs": abs(a), "not": 1 - a if e.dtype.is_bool else ~a}[e.op], e.dtype)
    return wrap(MEANING[e.op](*operands, e.dtype), e.dtype)


# Random expressions, made of bare nodes


def numbers(t: DType) -> st.SearchStrategy[int]:
    """Integers of a type, often those at which folding does something."""
    if t.is_bool:
        return st.integers(0, 1)
    special = [
        v for v in (0, 1, -1, 2, 7, t.bits - 1, t.bits, t.min, t.min + 1, t.max, t.max - 1) if t.min <= v <= t.max
    ]
    return st.sampled_from(special) | st.integers(t.min, t.max)


@st.composite
def expressions(draw: st.DrawFn, t: DType, depth: int) -> Expr:
    """Bare nodes of type `t`: nothing folded, every operand of the right type."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        leaf: Expr = draw(
            numbers(t).map(lambda v: const(v, t)) | st.sampled_from([Var(t, 1, f"{n}_{t}") for n in NAMES])
        )
        return leaf

    def operand(of: DType = t) -> Expr:
        e: Expr = draw(expressions(of, depth - 1))
        return e

    kind = draw(st.sampled_from(["binary", "binary", "binary", "same", "unary", "cast", "select", "compare"]))
    if kind == "cast":
        return Cast(t, 1, operand(draw(st.sampled_from((*INTEGERS, BOOL)))))
    if kind == "select":
        return op("select", operand(BOOL), operand(), operand())
    if kind == "unary":
        return op("not" if t.is_bool else draw(st.sampled_from(["neg", "not", "abs"])), operand())
    if t.is_bool and kind == "compare":
        of = draw(st.sampled_from((*INTEGERS, BOOL)))
        return op(draw(st.sampled_from(sorted(COMPARE))), operand(of), operand(of))
    name = draw(st.sampled_from(["and", "or", "xor", "min", "max"] if t.is_bool else sorted(MEANING)))
    a = operand()
    return op(name, a, a if kind == "same" else operand())


any_expression = st.sampled_from((*INTEGERS, BOOL)).flatmap(lambda t: expressions(t, 4))
any_values = st.fixed_dictionaries({f"{n}_{t}": numbers(t) for n in NAMES for t in (*INTEGERS, BOOL)})


def folded(e: Expr) -> Expr:
    """Every node made again by `build`."""
    operands = children(e)
    return rebuild(e, tuple(folded(c) for c in operands)) if operands else e


@unhurried
@given(any_expression, any_values)
def test_folding_keeps_value_and_type(e: Expr, values: dict[str, int]) -> None:
    result = folded(e)
    assert (result.dtype, result.lanes) == (e.dtype, e.lanes)
    assert evaluate(result, values) == evaluate(e, values)


@unhurried
@given(any_expression, any_values, st.sets(st.sampled_from(NAMES)))
def test_substituting_numbers_keeps_the_value(e: Expr, values: dict[str, int], chosen: set[str]) -> None:
    known = {n: v for n, v in variables(e).items() if n[0] in chosen}
    result = substitute(e, {n: const(values[n], v.dtype) for n, v in known.items()})
    assert not variables(result).keys() & known.keys()
    assert evaluate(result, values) == evaluate(e, values)


@unhurried
@given(any_expression, any_values, st.data())
def test_substituting_expressions_composes(e: Expr, values: dict[str, int], data: st.DataObject) -> None:
    new = {n: data.draw(expressions(v.dtype, 2)) for n, v in variables(e).items()}
    composed = values | {n: evaluate(x, values) for n, x in new.items()}
    assert evaluate(substitute(e, new), values) == evaluate(e, composed)


def test_substitution_is_simultaneous_even_where_a_node_folds_away() -> None:
    x, y = Var(INT32, 1, "x"), Var(INT32, 1, "y")
    assert substitute(op("mul", x, Var(INT32, 1, "one")), {"x": y, "y": x, "one": const(1, INT32)}) is y


@unhurried
@given(any_expression, any_values)
def test_vector_operands_keep_the_value_in_every_lane(e: Expr, values: dict[str, int]) -> None:
    found = variables(e)
    result = substitute(e, {n: broadcast(v, 4) for n, v in found.items()})
    assert result.lanes in ((4,) if folded(e) is not e and variables(result) else (1, 4))
    assert evaluate(result, values) == evaluate(e, values)


@unhurried
@given(any_expression)
def test_folding_twice_is_folding_once(e: Expr) -> None:
    once = folded(e)
    assert same(folded(once), once)


@unhurried
@given(any_expression)
def test_transform_shares_what_it_does_not_change(e: Expr) -> None:
    assert transform(e, lambda node: None) is e
    assert substitute(e, {"absent": const(0, INT32)}) is e


@unhurried
@given(st.sampled_from(sorted(COMPARE)), st.sampled_from(INTEGERS), any_values, st.booleans(), st.data())
def test_python_integers_compare_exactly_whatever_the_type(
    name: str, t: DType, values: dict[str, int], number_first: bool, data: st.DataObject
) -> None:
    x = Var(t, 1, f"a_{t}")
    number = data.draw(st.sampled_from([t.min - 1, t.min, t.max, t.max + 1]) | st.integers(-(2**70), 2**70))
    left, right = (number, values[x.name]) if number_first else (values[x.name], number)
    e = binary(name, number, x) if number_first else binary(name, x, number)
    assert bool(evaluate(e, values)) == COMPARE[name](left, right)


# Constants fold to what they are at run time


@unhurried
@given(
    st.sampled_from(INTEGERS).flatmap(lambda t: st.tuples(st.just(t), numbers(t))), st.sampled_from([FLOAT32, FLOAT64])
)
def test_integer_to_float_rounds_once(typed: tuple[DType, int], to: DType) -> None:
    t, value = typed
    result = cast(to, const(value, t))
    assert isinstance(result, Const)
    assert result.value == np.asarray(value, t.numpy).astype(to.numpy)


@unhurried
@given(st.floats(width=64), st.sampled_from(INTEGERS))
def test_float_to_integer_truncates_and_saturates(value: float, t: DType) -> None:
    exact = 0 if math.isnan(value) else math.trunc(min(max(value, -(2.0**80)), 2.0**80))
    result = cast(t, const(value, FLOAT64))
    assert isinstance(result, Const)
    assert result.value == min(max(exact, t.min), t.max)


@pytest.mark.parametrize("t", [FLOAT16, FLOAT32])
def test_literals_are_those_of_their_type_when_folded(t: DType) -> None:
    rounded = float(t.numpy.type(0.1))
    widened = cast(FLOAT64, const(0.1, t))
    assert isinstance(widened, Const)
    assert widened.value == rounded
    equal = binary("eq", const(0.1, t), const(rounded, t))
    assert isinstance(equal, Const)
    assert equal.value is True


def test_bfloat16_literals_are_left_to_run_time() -> None:
    x = const(0.1, BFLOAT16)
    assert isinstance(cast(FLOAT32, x), Cast)
    assert isinstance(binary("eq", x, x), Op)
    assert isinstance(binary("add", x, x), Op)


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31)])
def test_offsets_of_an_index_are_not_joined_beyond_their_type(number: int) -> None:
    """Index arithmetic is wider than int32, so a wrapped constant would be another index."""
    x = Var(INT32, 1, "x")
    step = 1 if number > 0 else -1
    joined = binary("add", binary("add", x, number), step)
    assert isinstance(joined, Op)
    assert isinstance(joined.args[0], Op)
    apart = binary("sub", x, const(-(2**31), INT32))
    assert isinstance(apart, Op)
    assert apart.op == "sub"


def test_float_floor_division_by_one_is_not_the_identity() -> None:
    assert isinstance(binary("floordiv", Var(FLOAT32, 1, "x"), 1.0), Op)


@pytest.mark.parametrize("value", [2**60 + 2**36 + 1, 2**63 - 2**38 - 1])
def test_large_integers_become_float32_without_a_stop_at_float64(value: int) -> None:
    result = cast(FLOAT32, const(value, INT64))
    assert isinstance(result, Const)
    assert result.value == float(np.int64(value).astype(np.float32))
    assert result.value != float(np.float32(float(value)))


# What the user may not write


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: binary("add", Var(UINT8, 1, "x"), 256), r"256 does not fit uint8, the type it is combined with"),
        (
            lambda: binary("add", Var(INT64, 1, "x"), Var(UINT64, 1, "y")),
            r"int64 and uint64 have no common integer type",
        ),
        (lambda: binary("add", Var(BOOL, 1, "p"), Var(BOOL, 1, "q")), r"add of two conditions"),
        (
            lambda: binary("and", Var(FLOAT32, 1, "x"), Var(FLOAT32, 1, "y")),
            r"need integers or conditions, not float32",
        ),
        (lambda: unary("not", Var(FLOAT32, 1, "x")), r"~ needs an integer or a condition"),
        (lambda: unary("neg", Var(BOOL, 1, "p")), r"cannot be negated with -"),
        (lambda: select(Var(INT8, 1, "x"), 1, 2), r"write a comparison such as x != 0"),
        (lambda: expr("text"), r"'text' \(str\) cannot be used in an expression"),
    ],
)
def test_mistakes_are_named(wrong: Callable[[], Expr], text: str) -> None:
    with pytest.raises(UserError, match=text):
        wrong()


def test_every_lane_loads_from_one_place() -> None:
    """A mask that holds in all lanes: one load, in each of them."""
    e = masked_load(FLOAT32, 4, "a", (var("x"),), const(True, BOOL, 4))
    assert isinstance(e, Broadcast) and e.lanes == 4 and e.value.lanes == 1
    assert substitute(e, {"x": var("y")}).lanes == 4
