"""Every mistake in the arguments of a call: one case each. A call that is refused writes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt

from .cases import HERE, Case, Cases, assert_refused
from .pipelines import X, Y, func, line, picture, pipeline, with_param

CASES = Cases()
must_fail = CASES.must_fail


# ---- names


@must_fail(r"the pipeline has no argument 'image'; did you mean 'img'\?")
def misspelt_argument() -> object:
    return pipeline()(image=picture())


@must_fail("the pipeline has no argument 'gain'; it takes img")
def unknown_argument() -> object:
    return pipeline()(img=picture(), gain=2)


@must_fail("takes arrays and params by name; pass them like img=<array>")
def positional_argument() -> object:
    return pipeline()(picture())


@must_fail(rf"Input 'img' \(from {HERE}\) is missing; pass img=<array of uint8>")
def missing_input() -> object:
    return pipeline()()


@must_fail(rf"Param 'p' \(from {HERE}\) is missing; pass p=<float32>")
def missing_param() -> object:
    return with_param("float32")(img=picture())


@must_fail("'a b' cannot be the name of a Pipeline")
def name_of_a_pipeline() -> object:
    return pt.Pipeline(func(), (3, 3), name="a b")


@must_fail(r"schedule='fast' is not a schedule; pass pt.Schedule\(pt.on\(...\)...\)")
def no_schedule() -> object:
    return pt.Pipeline(func(), (3, 3), schedule="fast")  # type: ignore[arg-type]


# ---- arrays


@must_fail(
    rf"Input 'img' \(from {HERE}\) has shape=\(None, None, 3\), but is given an array of shape \(8, 9, 4\); "
    "pass one with these extents, or declare the Input with None"
)
def another_extent_than_stated() -> object:
    img, f = pt.Input("img", "uint8", shape=(None, None, 3)), pt.Func("f")
    f[Y, X] = img[Y, X, 0]
    return pt.Pipeline(f, img.shape[:2])(img=picture(8, 9, 4))


@must_fail(r"holds uint8, but is given an array of float64, not uint8; pass img.astype\('uint8'\), or declare")
def dtype_of_an_array() -> object:
    return pipeline()(img=np.ones((3, 3)))


@must_fail("Input 'img' .* holds uint8, but is given an array of int64")
def list_of_another_type() -> object:
    return pipeline()(img=[[1, 2], [3, 4]])


@must_fail("holds uint8, but is given an array of object")
def no_array() -> object:
    return pipeline()(img=object())


class Broken:
    """Cannot be read."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("on another device")


class Shapeless(Broken):
    """Does not even say how large it is."""

    @property
    def shape(self) -> Any:
        raise RuntimeError("nobody knows")


class Silent:
    """Says nothing of itself."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


@must_fail("is given Broken, which is not an array: on another device")
def array_that_cannot_be_read() -> object:
    return pipeline()(img=Broken())


@must_fail("is given Broken, which is not an array: on another device")
def array_that_cannot_be_read_by_default() -> object:
    return pipeline(schedule="auto")(img=Broken())


@must_fail("is given Shapeless, which is not an array: on another device")
def array_without_a_shape() -> object:
    return pipeline()(img=Shapeless())


@must_fail("is given Shapeless, which is not an array: on another device")
def array_without_a_shape_by_default() -> object:
    return pipeline(schedule="auto")(img=Shapeless())


@must_fail("is given Silent, which is not an array: '__")
def object_without_attributes() -> object:
    return pipeline()(img=Silent())


@must_fail("is given Silent, which is not an array: '__")
def object_without_attributes_by_default() -> object:
    return pipeline(schedule="auto")(img=Silent())


@must_fail(r"given an array of >u2, in another byte order than this machine's; pass img.astype\('uint16'\)")
def byte_order() -> object:
    return line(lambda img: img[X], dtype="uint16")(img=np.ones(4, ">u2"))


@must_fail(r"bfloat16 is given as its bits in uint16; pass img.view\('uint16'\)")
def bfloat_array() -> object:
    return line(lambda img: img[X], dtype="bfloat16")(img=np.ones(4, "float16"))


@must_fail(r"Input 'img' .* has 2 axes, but is given an array of shape \(2, 3, 4\); index or reshape it")
def rank() -> object:
    return pipeline()(img=picture(2, 3, 4))


@must_fail(r"not aligned to their 2 bytes \(strides \(3,\)\); pass np.ascontiguousarray\(img\)")
def field_of_a_record() -> object:
    records = np.zeros(6, [("a", "u2"), ("b", "u1")])
    return line(lambda img: img[X], dtype="uint16")(img=records["a"])


@must_fail(r"elements are not aligned to their 2 bytes .*; pass np.ascontiguousarray\(img\)")
def misaligned_data() -> object:
    return line(lambda img: img[X], dtype="uint16")(img=np.zeros(9, "uint8")[1:].view("uint16"))


@must_fail(r"is given an array of shape \(4294967296,\); an axis may have up to 2147483647")
def axis_too_long() -> object:
    return line(lambda img: img[0])(img=np.broadcast_to(np.uint8(1), 1 << 32))


@must_fail("is given an array that extends beyond the address space")
def strides_too_long() -> object:
    far = np.lib.stride_tricks.as_strided(np.zeros(1, "uint8"), (1 << 30,), (1 << 40,))
    return line(lambda img: img[0])(img=far)


@must_fail(r"Input 'img' .* is given a masked array, whose mask would be ignored; pass img.filled\(...\)")
def masked_input() -> object:
    return pipeline()(img=np.ma.masked_equal(picture(), 3))


@must_fail(r"Input 'img' .* is given a masked array, whose mask would be ignored; pass img.filled\(...\)")
def rows_of_masked_arrays() -> object:
    return pipeline()(img=[np.ma.masked_equal(picture(4), 1), picture(4)])


@must_fail("output 'f' .* is given a masked array, whose mask would be ignored; pass the .data of it")
def masked_output() -> object:
    return pipeline()(img=picture(), out=np.ma.masked_equal(picture(), 3))


# ---- params


@must_fail("Param 'p' .* is given masked, which is not a number of float32")
def masked_param() -> object:
    return with_param("float32")(img=picture(), p=np.ma.masked)


@must_fail("Param 'p' .* is given 'two', which is not a number of float32")
def param_of_no_number() -> object:
    return with_param("float32")(img=picture(), p="two")


@must_fail("is given array.*, which is not a number of float32")
def param_of_an_array() -> object:
    return with_param("float32")(img=picture(), p=np.ones(3))


@must_fail("is given 2.5, but it is an int32; pass an integer")
def fraction_for_an_integer() -> object:
    return with_param("int32")(img=picture(), p=2.5)


@must_fail("is given nan, but it is an int32; pass an integer")
def nan_for_an_integer() -> object:
    return with_param("int32")(img=picture(), p=float("nan"))


@must_fail(r"is given 300, but uint8 holds 0 .. 255")
def param_out_of_range() -> object:
    return with_param("uint8")(img=picture(), p=300)


@must_fail(r"is given 1e\+39, which is too large for float32")
def float_out_of_range() -> object:
    return with_param("float32")(img=picture(), p=1e39)


@must_fail("is given an integer of 129 bits, which is too large for float32")
def integer_too_large_for_a_float() -> object:
    return with_param("float32")(img=picture(), p=2**128)


@must_fail("is given an integer of 1329 bits, which is too large for float64")
def integer_too_large_for_any_float() -> object:
    return with_param("float64")(img=picture(), p=10**400)


@must_fail("is given an integer of 1329 bits, but int32 holds ")
def integer_too_large_for_any_integer() -> object:
    return with_param("int32")(img=picture(), p=10**400)


@must_fail(r"is given 2j, which is not a number of float32")
def complex_param() -> object:
    return with_param("float32")(img=picture(), p=2j)


@must_fail("is given 70000.0, which is too large for float16")
def half_out_of_range() -> object:
    return with_param("float16")(img=picture(), p=70000.0)


@must_fail(r"is given 3.4e\+38, which is too large for bfloat16")
def bfloat_out_of_range() -> object:
    return with_param("bfloat16")(img=picture(), p=3.4e38)


@must_fail("is given 1, but it is a bool; pass True or False")
def integer_for_a_bool() -> object:
    return with_param("bool")(img=picture(), p=1)


# ---- threads


@must_fail("the number of threads is 0; pass an integer of 1 to ")
def no_threads() -> object:
    return pipeline()(img=picture(), num_threads=0)


@must_fail("the number of threads is 2.0; pass an integer of 1 to ")
def threads_of_no_integer() -> object:
    return pipeline()(img=picture(), num_threads=2.0)


@must_fail("the number of threads is -1; pass an integer of 1 to ")
def negative_threads_for_all() -> object:
    return pt.set_num_threads(-1)


# ---- outputs


@must_fail(rf"output 'f' \(from {HERE}\) would have the shape \(-1, 7\), from shape=\(img.shape\[0\] - 3, .*; pass")
def negative_shape() -> object:
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    f[Y, X] = img[Y, X]
    return pt.Pipeline(f, (img.shape[0] - 3, img.shape[1] - 2))(img=picture(2, 9))


@must_fail(r"would have the shape \(1000000000, 1000000000\), from shape=.*, more than memory can hold")
def absurd_shape() -> object:
    n = pt.Param("n", "int32")
    return pipeline(lambda img: img[0, 0], (n, n))(img=picture(), n=10**9)


@must_fail(
    r"output 'f' .* has the shape \(8, 9\), but out= is an array of shape \(9, 8\); pass one of that shape, such as "
    r"np.empty\(\(8, 9\), 'uint8'\)$"
)
def out_of_another_shape() -> object:
    return pipeline()(img=picture(), out=picture(9, 8))


@must_fail(
    r"output 'f' .* holds uint8, but is given an array of int32, not uint8; pass one of uint8 as out=, such as "
    r"np.empty\(\(8, 9\), 'uint8'\)$"
)
def out_of_another_type() -> object:
    return pipeline()(img=picture(), out=picture(dtype="int32"))


@must_fail(r"output 'f' .* holds uint16, but is given an array of >u2, not uint16; pass one of uint16 as out=, such as")
def out_of_another_byte_order() -> object:
    return line(lambda img: img[X], dtype="uint16")(img=np.ones(4, "u2"), out=np.ones(4, ">u2"))


@must_fail(r"output 'f' .* holds bfloat16, but is given an array of float16, not uint16; pass one of uint16 as out=")
def out_of_another_half() -> object:
    return line(lambda img: img[X], dtype="bfloat16")(img=np.ones(4, "u2"), out=np.ones(4, "float16"))


@must_fail("output 'f' .* has 2 axes, but is given an array of shape")
def out_of_another_rank() -> object:
    return pipeline()(img=picture(), out=picture(8, 9, 1))


@must_fail("output 'f' .* cannot be written into a read-only array; pass a copy of it as out=")
def read_only_out() -> object:
    out = picture()
    out.flags.writeable = False
    return pipeline()(img=picture(), out=out)


@must_fail("cannot be written into an array whose elements overlap")
def out_that_overlaps_itself() -> object:
    out = np.lib.stride_tricks.as_strided(picture(), (8, 9), (0, 1))
    return pipeline()(img=picture(), out=out)


@must_fail("output 'f' .* cannot be written into str; pass a NumPy array as out=")
def out_of_no_array() -> object:
    return pipeline()(img=picture(), out="result")


@must_fail("out= holds 2 arrays, but the pipeline fills 1: f")
def too_many_outs() -> object:
    return pipeline()(img=picture(), out=[picture(), picture()])


@must_fail(r"output 'f' .* would be written into memory of Input 'img' \(from .*; pass another array as out=")
def out_is_the_input() -> object:
    both = picture()
    return pipeline()(img=both, out=both)


@must_fail("would be written into memory of Input 'img'")
def out_overlaps_the_input() -> object:
    memory = picture(9, 9)
    return pipeline()(img=memory[:8], out=memory[1:])


@must_fail("output 'g' .* would be written into memory of output 'f'")
def two_outs_in_one_place() -> object:
    img, f, g = pt.Input("img", "uint8", 2), pt.Func("f"), pt.Func("g")
    f[Y, X], g[Y, X] = img[Y, X], img[Y, X] + 1
    out = picture()
    return pt.Pipeline([f, g])(img=picture(), out=(out, out))


# ---- the test


@CASES.each
def test_message(case: Case, text: str) -> None:
    assert_refused(case, text)


def test_nothing_is_written_when_a_call_is_refused() -> None:
    out = np.full((8, 9), 7, "uint8")
    with pytest.raises(pt.UserError):
        pipeline(lambda img: img[Y, X + 2])(img=picture(), out=out)
    assert (out == 7).all()
