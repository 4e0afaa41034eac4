"""Every mistake in expressions and reads: one case each."""

from __future__ import annotations

import math

import numpy as np

import pantile as pt
from pantile.lang.build import build

from .cases import HERE, Case, Cases, assert_refused
from .pipelines import FLOATS, IMG, C, R, X, Y, defined

CASES = Cases()
must_fail = CASES.must_fail


# ---- expressions


@must_fail(r"the value of y > x is not known while .* Python 'if', .*; use pt.select\(condition, a, b\)")
def python_if() -> object:
    return 1 if Y > X else 2


@must_fail(r"cannot decide a Python 'if', 'and', 'or' or 'not'; .* the operators & \| ~")
def chained_comparison() -> object:
    return 0 < Y < 5


@must_fail(r"y \+ 1 is a single value and cannot be iterated over or unpacked; a loop over pixels is a pt.RDom")
def unpacking_a_value() -> None:
    _a, _b = Y + 1


@must_fail(r"f\[y, x\] is a single value, so \[0\] cannot follow it; write all indices in one pair of brackets")
def indexing_a_value() -> object:
    return defined()[Y, X][0]


@must_fail(r"a NumPy array of shape \(3,\) cannot be part of an expression; read it at a coordinate: either as pt")
def array_on_the_left() -> object:
    return np.arange(3) + Y


@must_fail(r"a NumPy array of shape \(3,\) cannot be part of an expression")
def array_on_the_right() -> object:
    return Y + np.arange(3)


@must_fail(r"np.multiply takes no out= where an expression is among its arguments")
def array_changed_in_place() -> None:
    array = np.ones(3)
    array *= Y


@must_fail(r"np.hypot does not work on expressions; write pt.sqrt\(a\*a \+ b\*b\)")
def numpy_function_with_a_formula() -> object:
    return np.hypot(Y, X)


@must_fail(r"np.interp does not work on expressions; of NumPy's functions there are absolute, add, .*, trunc, where")
def numpy_function_without_an_equal() -> object:
    return np.interp(FLOATS[Y, X], [0, 1], [2, 3])


@must_fail(r"np.mean does not work on expressions; write pt.mean\(e, over=r\)")
def numpy_reduction() -> object:
    return np.mean(FLOATS[Y, X])


@must_fail(r"np.add.reduce is for arrays; to reduce an expression write pt.sum\(e, over=r\)")
def reduction_by_a_ufunc() -> object:
    return np.add.reduce(FLOATS[Y, X])


@must_fail(r"np.where of an expression needs both values: np.where\(condition, a, b\)")
def where_without_values() -> object:
    return np.where(Y > X)


@must_fail(r"Input 'floats' is a function of coordinates, not a value; read it at a point, like floats\[y, x\]")
def numpy_function_of_an_input() -> object:
    return np.sqrt(FLOATS)


@must_fail(r"Input 'floats' is a function of coordinates, not a value")
def numpy_scalar_times_an_input() -> object:
    return np.float32(2) * FLOATS


@must_fail(r"Input 'img' is a function of coordinates, not a value")
def clip_of_an_input() -> object:
    return np.clip(IMG, 0, 9)


@must_fail(r"an expression is rounded to whole numbers, not to 2 decimals; scale it: pt.round\(100 \* e\) / 100")
def rounding_to_decimals() -> object:
    return round(FLOATS[Y, X], 2)


@must_fail(r"is not known while .*, so it is not a Python number; to convert it write pt.cast\('int32', ...\)")
def int_of_an_expression() -> object:
    return int(Y)


@must_fail(r"so it is not a Python number; to convert it write pt.cast\('float32', ...\)")
def float_of_an_expression() -> object:
    return float(FLOATS[Y, X])


@must_fail(r"floats\[y, x\] is not known .*, so it is not a Python number; .* instead of math's functions use pt's")
def math_of_an_expression() -> object:
    return math.sqrt(FLOATS[Y, X])


@must_fail(r"so it is not a Python number; to read an array there write pt.table\(array\)\[...\], to repeat .* pt.RDom")
def range_of_an_expression() -> object:
    return range(IMG.shape[0])


@must_fail("floats\\[y, x\\] is a single value and has no length; the extents of an Input are its .shape")
def length_of_an_expression() -> object:
    return len(FLOATS[Y, X])


@must_fail(r"a NumPy array cannot be read at r.0; make it a table first: pt.table\(array\)\[r.0\]")
def array_at_a_reduction_variable() -> object:
    return np.ones((3, 3))[R[0], 0]


@must_fail(r"a NumPy array cannot be read at img\[y, x\]; make it a table first: pt.table\(array\)\[img\[y, x\]\]")
def array_at_a_pixel() -> object:
    return np.arange(256)[IMG[Y, X]]


@must_fail(r"r is a whole domain, at which no NumPy array .* pick coordinates: pt.table\(array\)\[r\[0\], r\[1\]\]")
def array_at_a_domain() -> object:
    return np.ones((3, 3))[pt.RDom((0, 3), (0, 3))]


@must_fail(r"pt.sample has no method 'cubic'; write method='bilinear' or method='bicubic'")
def unknown_method_of_sampling() -> object:
    return pt.sample(IMG, Y, X, method="cubic")


@must_fail(r"Input 'img' has 2 dimensions but is sampled at 3 indices; write pt.sample\(img, y, x\)")
def sample_at_too_many_places() -> object:
    return pt.sample(IMG, Y, X, C)


@must_fail(r"pt.sample reads an Input or a Func, not <uint8 img\[y, x\]>; pass it without an index")
def sample_of_a_pixel() -> object:
    return pt.sample(IMG[Y, X], Y, X)  # type: ignore[arg-type]


@must_fail(r"Func 'g' is sampled before it is defined; define it first, like g\[y, x\] = ...")
def sample_of_an_undefined_func() -> object:
    return pt.sample(pt.Func("g"), Y, X)


@must_fail(r"pt.popcount counts the bits of an integer, not of float32; see pt.bits and pt.cast")
def bits_of_a_float() -> object:
    return pt.popcount(FLOATS[Y, X])


@must_fail(r"Func 'f' is read in brackets: write f\[y, x \+ 1\]")
def func_that_is_called() -> object:
    return defined()(Y, X + 1)


@must_fail(r"Func 'f' is read in brackets: write f\[y, x\]$")
def func_that_is_called_with_arrays() -> object:
    return defined()(np.zeros((99, 99)), list(range(99)))


@must_fail(r"Input 'img' is read in brackets: write img\[y, x\]")
def input_that_is_called() -> object:
    return IMG(Y, X)


@must_fail(r"Table 'table' is read at 3 along axis 0, which has the indices 0 .. 2")
def table_at_a_constant_outside() -> object:
    return pt.table(np.ones((3, 4)))[3, X]


@must_fail(r"Table 'table' has 2 dimensions \(from .*\) but is given 1 index; write table\[d0, d1\]")
def table_with_too_few_indices() -> object:
    return pt.table(np.ones((3, 4)))[X]


@must_fail(r"pt.table is given an array of shape \(\); it needs at least one axis and one element \(a single number")
def number_as_a_table() -> object:
    return pt.table(3)


@must_fail(r"dtype\('<U1'\) is not a pixel type")
def table_of_text() -> object:
    return pt.table(["a"])


@must_fail(r"pt.table takes a NumPy array, not Input\('img', 'uint8', ndim=2\)")
def input_as_a_table() -> object:
    return pt.table(IMG)


@must_fail(r"Table 'table' is a constant of the pipeline; change the array before it becomes a table")
def assigning_to_a_table() -> None:
    pt.table(np.ones(3))[0] = 1


@must_fail(r"Table 'img' \(from .*\) and Input 'img' \(from .*\) have the same name; rename one of them")
def table_with_the_name_of_an_input() -> object:
    return build(defined(value=IMG[Y, X] + pt.table(np.ones(3), "img")[X]))


@must_fail(r"'a' \(str\) cannot be used in an expression; use numbers and expressions")
def text_in_an_expression() -> object:
    return Y + "a"


@must_fail(
    r"300 does not fit uint8, the type it is combined with; widen the other side first, .*pt.cast\('int32', ...\)"
)
def number_too_large() -> object:
    return IMG[Y, X] + 300


@must_fail("int64 and uint64 have no common integer type; cast one of them")
def no_common_type() -> object:
    return pt.cast("int64", Y) + pt.cast("uint64", X)


@must_fail("cannot reinterpret uint8 as float32: their sizes differ")
def bits_of_another_size() -> object:
    return pt.bits("float32", IMG[Y, X])


@must_fail("~ needs an integer or a condition, not float32")
def not_of_a_float() -> object:
    return ~FLOATS[Y, X]


@must_fail("a condition cannot be negated with -; use ~")
def minus_of_a_condition() -> object:
    return -(Y > X)


@must_fail("add of two conditions; cast them to a number first, or combine them with &")
def sum_of_conditions() -> object:
    return (Y > X) + (Y > 2)


@must_fail("a condition cannot be shifted; cast it to an integer first")
def shifted_condition() -> object:
    return (Y > X) << (Y > 1)


@must_fail(r"& \| \^ << >> need integers or conditions, not float32")
def bits_of_floats() -> object:
    return FLOATS[Y, X] & 1


@must_fail(r"the condition of a select is uint8; write a comparison such as img\[y, x\] != 0")
def select_without_condition() -> object:
    return pt.select(IMG[Y, X], 1, 2)


@must_fail(r"pt.case takes \(condition, value\) pairs, not 3")
def case_without_pairs() -> object:
    return pt.case(3, otherwise=0)  # type: ignore[arg-type]


@must_fail("the weight of pt.lerp is y, of type int32; it must be a float")
def lerp_with_an_integer_weight() -> object:
    return pt.lerp(1.0, 2.0, Y)


@must_fail("pt.halving_add is for integers, not float32; use ordinary arithmetic")
def fixed_point_of_floats() -> object:
    return pt.halving_add(FLOATS[Y, X], 1)


@must_fail(r"the shift of pt.mul_shift is 99; for uint8 it is a Python number in 0 .. 15")
def shift_too_far() -> object:
    return pt.mul_shift(IMG[Y, X], 3, 99)


# ---- reading


@must_fail(r"Func 'f' is a function of coordinates, not a value; read it at a point, like f\[y, x\]")
def func_as_a_value() -> object:
    return defined() + 1  # type: ignore[operator]


@must_fail("Input 'img' is a function of coordinates, not a value")
def input_as_a_value() -> object:
    return Y * IMG


@must_fail("Func 'f' cannot be iterated over or unpacked")
def iterating_over_a_func() -> object:
    return list(defined())


@must_fail(r"r is a whole domain; pick one of its coordinates, like r\[0\]")
def domain_as_a_value() -> object:
    return IMG[Y + R, X]


@must_fail(r"Func 'f' has 2 values at a point; pick one, like f\[...\]\[0\]")
def tuple_as_a_value() -> object:
    return 1 + defined(value=(1, 2))[Y, X]


@must_fail(
    r"Func 'f' is read or updated before it is defined; define it for every point first, like f\[y, x\] = 0 "
    r"\(a pure definition cannot read itself\)"
)
def reading_an_undefined_func() -> object:
    return pt.Func("f")[Y, X]


@must_fail("Func 'f' is read or updated before it is defined")
def adding_to_an_undefined_func() -> None:
    f = pt.Func("f")
    f[Y, X] += 1


@must_fail("a pure definition cannot read itself")
def pure_self_reference() -> None:
    f = pt.Func("f")
    f[Y, X] = f[Y - 1, X] + 1


@must_fail(rf"Func 'f' has 2 dimensions \(from {HERE}\) but is given 1 index; write f\[y, x\]")
def too_few_indices() -> object:
    return defined()[Y]


@must_fail(rf"Input 'img' has 2 dimensions \(from {HERE}\) but is given 3 indices")
def too_many_indices() -> object:
    return IMG[Y, X, C]


@must_fail("Input 'img' is indexed with :; a definition describes one pixel at a time")
def slice_as_index() -> object:
    return IMG[Y, :]


@must_fail("Func 'f' is indexed with ellipsis")
def ellipsis_as_index() -> object:
    return defined()[..., X]


@must_fail("Input 'img' is indexed with ndarray")
def array_as_index() -> object:
    return IMG[np.arange(3), X]


@must_fail(r"Input 'img' is indexed with .*y.*/2, which is float32; .* divide with // or write pt.cast\('int32', ")
def float_as_index() -> object:
    return IMG[Y / 2, X]


# ---- the test


@CASES.each
def test_message(case: Case, text: str) -> None:
    assert_refused(case, text)
