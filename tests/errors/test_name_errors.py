"""Every name that is refused: one case each."""

from __future__ import annotations

import pantile as pt

from .cases import Case, Cases, assert_refused
from .pipelines import FLOATS, IMG, X, Y

CASES = Cases()
must_fail = CASES.must_fail


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


# ---- the test


@CASES.each
def test_message(case: Case, text: str) -> None:
    assert_refused(case, text)
