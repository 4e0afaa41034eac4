"""Every mistake that the language and the graph refuse: one case each, with the text that must say so.

A case is a function that makes the mistake; the message must match its text and name this file and the mistake's line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.graph.build import build

Y, X, C = pt.vars("y x c")
IMG = pt.Input("img", "uint8", 2)
FLOATS = pt.Input("floats", "float32", 2)
R = pt.RDom((0, 3), (0, 3))
HERE = re.escape(__file__) + r":\d+"
ANY: Any = None

Case = Callable[[], object]
CASES: list[tuple[Case, str]] = []


def must_fail(text: str) -> Callable[[Case], Case]:
    """Register a case."""

    def register(case: Case) -> Case:
        CASES.append((case, text))
        return case

    return register


def defined(name: str = "f", value: Any = 0) -> pt.Func:
    f = pt.Func(name)
    f[Y, X] = value
    return f


# ---- names


@must_fail("'2y' cannot be the name of a coordinate; use letters")
def bad_coordinate_name() -> object:
    return pt.vars("x 2y")


@must_fail("5 cannot be the name of a coordinate; write names with spaces between them")
def vars_of_no_string() -> object:
    return pt.vars(5)  # type: ignore[arg-type]


@must_fail("cannot be the name of a Func: it has 100000 characters; use at most 200")
def long_name() -> object:
    return pt.Func("f" * 100_000)


@must_fail(
    "'\ufb01' cannot be the name of an Input: Python reads it as 'fi' where it is written as a keyword; write that"
)
def name_that_is_another_as_a_keyword() -> object:
    return pt.Input("\ufb01", "uint8", 2)


@must_fail("'\\\\udc80' cannot be the name of a Param; use letters")
def surrogate_as_name() -> object:
    return pt.Param("\udc80", "int32")


@must_fail("'lambda' cannot be the name of a Func")
def keyword_as_name() -> object:
    return pt.Func("lambda")


@must_fail("'out' cannot be the name of an Input: it is an option of every call")
def reserved_argument() -> object:
    return pt.Input("out", "uint8", 2)


@must_fail("'uint9' is not a pixel type; use one of bool, int8")
def unknown_type() -> object:
    return pt.Input("a", "uint9", 2)


@must_fail(r"Input 'a' has ndim=0; write how many axes it has, at most 32 \(for none, use pt.Param\)")
def input_without_axes() -> object:
    return pt.Input("a", "uint8", 0)


@must_fail("Input 'a' has ndim=True; write how many axes it has")
def truth_as_a_rank() -> object:
    return pt.Input("a", "uint8", True)


@must_fail(r"Input 'a' has ndim=None; write how many axes it has")
def input_of_any_rank() -> object:
    return pt.Input("a", "uint8")


@must_fail(r"Input 'a' has shape=3; write a tuple with one extent per axis, None where it is not known, such as")
def number_as_a_shape() -> object:
    return pt.Input("a", "uint8", shape=3)  # type: ignore[arg-type]


@must_fail("Input 'a' has an extent 0 in its shape; write an integer of at least 1, or None where")
def extent_of_nothing() -> object:
    return pt.Input("a", "uint8", shape=(None, 0))


@must_fail(r"Input 'a' has an extent 2.5 in its shape; write an integer of at least 1")
def float_as_an_extent() -> object:
    return pt.Input("a", "uint8", shape=(2.5,))  # type: ignore[arg-type]


@must_fail(r"pt.pixel\(...\) is all channels of a pixel, not a value; assign it, like out\[y, x\] = pt.pixel")
def arithmetic_on_pixels() -> object:
    return pt.pixel(IMG[Y, X], 0, 0) * 2  # type: ignore[operator]


@must_fail("pt.pixel is given no channels; write one expression for each")
def pixel_of_nothing() -> object:
    return pt.pixel()


@must_fail(r"pt.pixel takes channels one by one; write pt.pixel\(\*channels\)")
def pixel_of_a_tuple() -> object:
    return pt.pixel((IMG[Y, X], 0, 0))


@must_fail(r"Func 'f' is defined already \(at .*\), and pt.pixel\(...\) is a first definition; update it channel by")
def pixel_as_an_update() -> None:
    f = pt.Func("f")
    f[Y, X] = pt.pixel(IMG[Y, X], 0)
    f[Y, X] = pt.pixel(0, IMG[Y, X])


@must_fail(r"Func 'f' \(defined at .*\) has channels 0 .. 2, but channel 3 of it is read")
def channel_that_there_is_not() -> object:
    f = pt.Func("f")
    f[Y, X] = pt.pixel(IMG[Y, X], 0, 0)
    return f[Y, X, 3]


@must_fail("Func 'f' uses c, which is not a coordinate on the left")
def channel_inside_a_pixel() -> None:
    f, rgb = pt.Func("f"), pt.Input("rgb", "uint8", 3)
    f[Y, X] = pt.pixel(rgb[Y, X, pt.Var("c")], 0, 0)


@must_fail("Input 'a' has ndim=2, but a shape of 3 extents; leave ndim out")
def rank_of_another_shape() -> object:
    return pt.Input("a", "uint8", 2, shape=(None, None, 3))


@must_fail(r"shape\[True\] is not the extent of an axis; the axes are numbered from 0 to 1")
def truth_as_an_axis() -> object:
    return IMG.shape[True]


@must_fail(r"shape\[1.0\] is not the extent of an axis")
def float_as_an_axis() -> object:
    return IMG.shape[1.0]


@must_fail(r"shape\[2\] is not the extent of an axis; the axes are numbered from 0 to 1")
def axis_that_is_not_there() -> object:
    return IMG.shape[2]


@must_fail("18446744073709551616 does not fit int64; write it as a float, or as np.uint64")
def index_that_no_type_holds() -> object:
    return IMG[2**64, X]


@must_fail("an integer of 1329 bits does not fit float32, the type it is combined with")
def integer_that_no_float_holds() -> object:
    return FLOATS[Y, X] * 10**400


@must_fail("an integer of 1329 bits does not fit float32")
def default_that_no_float_holds() -> object:
    return pt.Param("p", "float32", 10**400)


@must_fail("Input 'img' is given by the caller and cannot be assigned to; define a pt.Func")
def assigning_to_an_input() -> None:
    IMG[Y, X] = 3


@must_fail("the default of Param 'p' is 'one', which is not a number")
def param_default_of_no_number() -> object:
    return pt.Param("p", "int32", "one")  # type: ignore[arg-type]


@must_fail("the default of Param 'p' is 0.5, which is not of its type int32")
def param_default_of_another_type() -> object:
    return pt.Param("p", "int32", 0.5)


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


@must_fail(r"is not known while .*, so it is no Python number; to convert it write pt.cast\('int32', ...\)")
def int_of_an_expression() -> object:
    return int(Y)


@must_fail(r"so it is no Python number; to convert it write pt.cast\('float32', ...\)")
def float_of_an_expression() -> object:
    return float(FLOATS[Y, X])


@must_fail(r"floats\[y, x\] is not known .*, so it is no Python number; .* instead of math's functions use pt's")
def math_of_an_expression() -> object:
    return math.sqrt(FLOATS[Y, X])


@must_fail(r"so it is no Python number; to read an array there write pt.table\(array\)\[...\], to repeat .* pt.RDom")
def range_of_an_expression() -> object:
    return range(IMG.shape[0])


@must_fail("floats\\[y, x\\] is a single value and has no length; the extents of an Input are its .shape")
def length_of_an_expression() -> object:
    return len(FLOATS[Y, X])


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


# ---- definitions


@must_fail("the first definition of Func 'f' has y twice on its left; use distinct Vars")
def repeated_coordinate() -> None:
    f = pt.Func("f")
    f[Y, Y] = 1


@must_fail(
    r"first definition of Func 'f' must hold for every point, but 0 is not a coordinate; write f\[y, x\] = ... first"
)
def update_before_pure() -> None:
    f = pt.Func("f")
    f[0, X] = 1


@must_fail(r"Func 'f' uses c, which is not a coordinate on the left, f\[y, x\]; add it there, or reduce over it")
def free_coordinate() -> None:
    f = pt.Func("f")
    f[Y, X] = Y + C


@must_fail(r"the first definition of Func 'f' uses the reduction variable r.0; write pt.sum\(..., over=r\)")
def free_reduction_variable() -> None:
    f = pt.Func("f")
    f[Y, X] = IMG[Y + R[0], X]


@must_fail("Func 'f' is given no value; write")
def no_value() -> None:
    f = pt.Func("f")
    f[Y, X] = ()


@must_fail(r"the domain of Func 'f' is \(3, 4\); write one \(min, extent\) per dimension")
def domain_without_pairs() -> object:
    return pt.Func("f", domain=(3, 4))  # type: ignore[arg-type]


@must_fail("Func 'f' states a domain of 1 dimensions but is defined with 2")
def domain_of_another_rank() -> None:
    f = pt.Func("f", domain=((0, 3),))
    f[Y, X] = 0


@must_fail(
    "the extent of the domain of Func 'f' is y, but y is not known when the pipeline is called; use only numbers"
)
def domain_of_a_coordinate() -> object:
    return pt.Func("f", domain=((0, Y),))


@must_fail(rf"Func 'f' gets another definition after Func 'g' \(defined at {HERE}\) has read it; move all definitions")
def update_after_use() -> None:
    f, g = defined("f"), pt.Func("g")
    g[Y, X] = f[Y, X]
    f[Y, X] += 1


@must_fail(
    rf"Func 'f' holds int32 \(from {HERE}\) but this update computes float32; write pt.cast\('int32', ...\) around it, "
    "or define f with float32"
)
def update_of_another_type() -> None:
    f = defined()
    f[Y, X] += 0.5


@must_fail(rf"Func 'f' has 2 value\(s\) at each point \(from {HERE}\) but this update gives 1; write a tuple")
def update_of_another_arity() -> None:
    f = defined(value=(1, 2))
    f[Y, X] = 3


@must_fail(r"this update of Func 'f' uses x in the index x \+ 1; .* alone in its place, as in f\[y, x\]")
def shifted_coordinate_in_an_update() -> None:
    f = defined()
    f[Y, X + 1] = 3


@must_fail(r"this update of Func 'f' uses x in the index x; on the left of an update")
def swapped_coordinates_in_an_update() -> None:
    f = defined()
    f[X, Y] = 3


@must_fail("Func 'f' uses x, which is not a coordinate on the left")
def free_coordinate_in_an_update() -> None:
    f = defined()
    f[Y, R[0]] = X


@must_fail(
    r"this update of Func 'f' runs over x in no particular order, so it cannot read f\[y, x - 1\]; "
    "to run in order, replace x by a variable of an RDom"
)
def unordered_scan() -> None:
    f = defined()
    f[Y, X] += f[Y, X - 1]


@must_fail(r"this update of Func 'f' uses two RDoms, .* = RDom\(\(0, 5\)\).*; write one RDom with all the loops")
def two_domains() -> None:
    f = defined()
    other = pt.RDom((0, 5))
    f[R[0], other[0]] = 1


@must_fail(
    r"this update of Func 'f' reads f inside a reduction; write it as an update over the RDom, like f\[...\] \+= "
)
def reduction_of_itself() -> None:
    f = defined()
    f[Y, X] = pt.sum(f[Y, R[0]], over=R)


# ---- reduction domains


@must_fail(r"an RDom needs at least one loop: pt.RDom\(\(min, extent\), ...\)")
def domain_without_loops() -> object:
    return pt.RDom()


@must_fail(r"loop 1 of an RDom is 3; write \(min, extent\), for example \(-1, 3\)")
def loop_without_min() -> object:
    return pt.RDom((0, 3), 3)  # type: ignore[arg-type]


@must_fail("the extent of loop 0 of an RDom is -3; it must not be negative")
def negative_loop() -> object:
    return pt.RDom((0, -3))


@must_fail("the extent of loop 0 of an RDom is .*, of type float32; it must be an integer: divide with //")
def float_loop() -> object:
    return pt.RDom((0, IMG.shape[0] / 2))


@must_fail(r"the extent of loop 0 of an RDom is .*, but img\[0, 0\] is not known when the pipeline is called")
def loop_over_data() -> object:
    return pt.RDom((0, IMG[0, 0] + 1))


@must_fail(r"r.where\(r.0\): the condition is int32; write a comparison such as r.0 != 0")
def where_without_condition() -> object:
    return R.where(R[0])


@must_fail(r"r has 2 loops, so 2 is not one of 0 .. 1")
def no_such_loop() -> object:
    return R[2]


@must_fail(r"r has no loop named 'y'; it has 0, 1 \(see names=\)")
def no_such_loop_name() -> object:
    return R.y


@must_fail("'where' cannot name a loop of an RDom: it is an attribute of every RDom")
def reserved_loop_name() -> object:
    return pt.RDom((0, 3), names="where")


@must_fail("names='y y' must give each of the RDom's 2 loops a name of its own")
def repeated_loop_names() -> object:
    return pt.RDom((0, 3), (0, 3), names="y y")


@must_fail(r"pt.sum reduces over an RDom: write pt.sum\(expression, over=r\)")
def sum_over_nothing() -> object:
    return pt.sum(IMG[Y, X])


@must_fail(r"pt.min reduces over an RDom: .*; for the smaller of two values use pt.minimum\(a, b\)")
def min_of_two_values() -> object:
    return pt.min(IMG[Y, X], 3)  # type: ignore[arg-type]


@must_fail(r"pt.any needs a condition, but img\[r.0, r.1\] is uint8; write img\[r.0, r.1\] != 0")
def any_of_numbers() -> object:
    return pt.any(IMG[R[0], R[1]], over=R)


# ---- boundary conditions and iteration


@must_fail(r"pt.edge needs to know where Func 'f' ends; define it with a domain, like pt.Func\('f', domain=")
def edge_of_an_endless_func() -> object:
    return pt.edge(defined())


@must_fail("pt.wrap extends an Input or a Func, not <uint8 .*>; pass it without an index")
def edge_of_a_value() -> object:
    return pt.wrap(IMG[Y, X])  # type: ignore[arg-type]


@must_fail("pt.reflect: 2 is not an axis of Input 'img', which has axes 0 .. 1")
def edge_along_no_axis() -> object:
    return pt.reflect(IMG, axes=(0, 2))


@must_fail("Input 'img' holds uint8, so pt.constant cannot fill it with 0.5; cast one of them")
def fill_of_another_type() -> object:
    return pt.constant(IMG, 0.5)


@must_fail("pt.constant gives 2 values to Input 'img', which has 1 at each point")
def fill_of_another_arity() -> object:
    return pt.constant(IMG, (1, 2))


@must_fail("pt.iterate applies a step -1 times; write how often")
def negative_times() -> object:
    return pt.iterate(defined(), lambda f: f, times=-1)


@must_fail("step 1 of pt.iterate returned nothing; end it with 'return' and the new Func")
def step_without_result() -> object:
    return pt.iterate(defined(), lambda f: ANY, times=1)


# ---- pipelines


@must_fail("a pipeline needs at least one output Func")
def no_outputs() -> object:
    return build([])


@must_fail(r"an output of a pipeline must be a Func, not Input\('img'.*; define one, like f\[y, x\] = ...")
def input_as_output() -> object:
    return build([IMG])  # type: ignore[list-item]


@must_fail(rf"Func 'f' \(made at {HERE}\) is an output but not defined; write f\[...\] = ...")
def undefined_output() -> object:
    return build(pt.Func("f"))


@must_fail(rf"Func 'f' \(defined at {HERE}\) is listed twice as an output")
def repeated_output() -> object:
    f = defined()
    return build([f, f], [(2, 2), (2, 2)])


@must_fail(r"shape=\(3,\) must hold one shape per output, and there are 2 outputs")
def too_few_shapes() -> object:
    return build([defined("f"), defined("g")], (3,))


@must_fail(rf"the shape \(3\) has 1 extents, but Func 'f' \(defined at {HERE}\) has 2 dimensions: y, x")
def shape_of_another_rank() -> object:
    return build(defined(), (3,))


@must_fail(r"the shape \(3, -1\) of Func 'f' has a negative extent")
def negative_shape() -> object:
    return build(defined(), (3, -1))


@must_fail(r"an extent of the shape of Func 'f' is .*, of type float32; it must be an integer: divide with //")
def float_shape() -> object:
    return build(defined(), (IMG.shape[0] / 2, 3))


@must_fail(
    rf"the shape of output Func 'f' \(defined at {HERE}\) is not known: no Input has 2 dimensions to take it from; "
    r"write shape=\(extent of y, extent of x\)"
)
def unknown_shape() -> object:
    return build(defined())


@must_fail(rf"Func 'f' \(from {HERE}\) and Func 'f' \(from {HERE}\) have the same name; rename one of them")
def two_funcs_of_one_name() -> object:
    f, g = defined("f"), pt.Func("f")
    g[Y, X] = f[Y, X]
    return build(g, (3, 3))


@must_fail(rf"Input 'img' \(from {HERE}\) and Input 'img' \(from {HERE}\) have the same name")
def two_inputs_of_one_name() -> object:
    f, other = pt.Func("f"), pt.Input("img", "uint8", 2)
    f[Y, X] = IMG[Y, X] + other[Y, X]
    return build(f)


@must_fail(rf"Param 'y' \(from {HERE}\) has the name of a coordinate of Func 'f' \(defined at {HERE}\); rename one")
def param_named_like_a_coordinate() -> object:
    return build(defined(value=pt.Param("y", "int32")), (3, 3))


# ---- the test


@pytest.mark.parametrize(("case", "text"), CASES, ids=[case.__name__ for case, _ in CASES])
def test_message(case: Case, text: str) -> None:
    with pytest.raises(pt.UserError) as caught:
        case()
    message = str(caught.value)
    assert re.search(text, message), message
    assert re.match(HERE + ": ", message), message
    first = case.__code__.co_firstlineno
    assert first < caught.value.where.line < first + 20
