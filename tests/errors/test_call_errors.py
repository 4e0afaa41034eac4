"""Every mistake that a call refuses: one case each, with the text that must say so.

A case is a function that makes the mistake; the message must match its text and begin with this file and the line of
the call. Outputs given to a call that is refused are left as they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pantile as pt

Y, X = pt.vars("y x")
HERE = re.escape(__file__) + r":\d+"

Case = Callable[[], object]
CASES: list[tuple[Case, str]] = []


def must_fail(text: str) -> Callable[[Case], Case]:
    """Register a case."""

    def register(case: Case) -> Case:
        CASES.append((case, text))
        return case

    return register


def func() -> pt.Func:
    f = pt.Func("f")
    f[Y, X] = Y + X
    return f


def pipeline(value: Callable[[pt.Input], Any] | None = None, shape: Any = None, **options: Any) -> pt.Pipeline:
    """f[y, x] = img[y, x], or what `value` makes of the input."""
    img, f = pt.Input("img", "uint8", 2), pt.Func("f")
    f[Y, X] = img[Y, X] if value is None else value(img)
    return pt.Pipeline(f, shape, **options)


def with_param(dtype: str) -> pt.Pipeline:
    p = pt.Param("p", dtype)
    return pipeline(lambda img: img[Y, X] * p)


def line(value: Callable[[pt.Input], Any], shape: Any = None, dtype: str = "uint8", **options: Any) -> pt.Pipeline:
    """One dimension: f[x] = value(img)."""
    img, f = pt.Input("img", dtype, 1), pt.Func("f")
    f[X] = value(img)
    return pt.Pipeline(f, shape, **options)


def picture(*shape: int, dtype: str = "uint8") -> np.ndarray:
    return np.ones(shape or (8, 9), dtype)


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


@must_fail("is given Broken, which is not an array: on another device")
def array_that_cannot_be_read() -> object:
    class Broken:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise TypeError("on another device")

    return pipeline()(img=Broken())


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


@must_fail("is given an array that reaches beyond what addresses can")
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


@must_fail(r"output 'f' .* has the shape \(8, 9\), but out= is an array of shape \(9, 8\)")
def out_of_another_shape() -> object:
    return pipeline()(img=picture(), out=picture(9, 8))


@must_fail("output 'f' .* holds uint8, but is given an array of int32, not uint8")
def out_of_another_type() -> object:
    return pipeline()(img=picture(), out=picture(dtype="int32"))


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


# ---- regions


@must_fail(
    rf"Func 'f' \(defined at {HERE}\) reads img\[y, x \+ 2\], which leaves Input 'img' \(from {HERE}\): f\[0, 8\] "
    r"needs img\[0, 10\], but axis 1 has indices 0 .. 8; read it through a boundary condition, such as pt.edge\(img\)"
)
def read_beyond_the_end() -> object:
    return pipeline(lambda img: img[Y, X + 2])(img=picture())


@must_fail(r"reads img\[y - 1, x\], .*: f\[0, 0\] needs img\[-1, 0\], but axis 0 has indices 0 .. 7")
def read_before_the_start() -> object:
    return pipeline(lambda img: img[Y - 1, X])(img=picture())


@must_fail(rf"Func 'g' \(defined at {HERE}\) reads img\[x \+ 1\], .*: g\[9\] needs img\[10\]")
def read_by_a_producer() -> object:
    img, f, g = pt.Input("img", "uint8", 1), pt.Func("f"), pt.Func("g")
    g[X] = img[X + 1]
    f[X] = g[X - 1] + g[X]
    return pt.Pipeline(f, schedule=pt.Schedule(pt.on("g").compute_root()))(img=picture(10))


@must_fail(r"stage 'f_sum' .* reads img\[x \+ r.0\], .*: f_sum\[9\] \(at r.0 = 2\) needs img\[11\]")
def read_by_a_reduction() -> object:
    r = pt.RDom((0, 3), name="r")
    return line(lambda img: pt.sum(img[X + r[0]], over=r) + pt.cast("uint8", 1))(img=picture(10))


@must_fail(r"reads img\[select\(x < 5, x, 2\*x\)\], .*: f\[9\] needs img\[18\]")
def read_at_a_selected_place() -> object:
    return line(lambda img: img[pt.select(X < 5, X, 2 * X)])(img=picture(10))


@must_fail(r"reads img\[x - 1\], .*: f\[0\] needs img\[-1\]")
def read_in_the_wrong_branch() -> object:
    return line(lambda img: pt.select(X < 5, img[X - 1], img[X]))(img=picture(10))


@must_fail(r"reads img\[x%7\], .*: f\[97\] needs img\[6\], but axis 0 has indices 0 .. 3")
def read_in_the_middle() -> object:
    return line(lambda img: img[X % 7], (100,))(img=picture(4))


@must_fail(r"reads img\[int32\(float32\(x\)\*1.5\)\], .*: f\[9\] needs img\[13\]")
def read_at_a_computed_place() -> object:
    return line(lambda img: img[pt.cast("int32", X * 1.5)])(img=picture(10))


@must_fail(r"reads img\[int32\(float32\(x\)\*s\)\], .*: f\[10\] needs img\[7\]")
def read_at_a_place_rounded_up() -> object:
    s = pt.Param("s", "float32")
    return line(lambda img: img[pt.cast("int32", X * s)], (11,))(img=picture(7), s=0.7)


@must_fail(r"Input 'img' .*: img_edge\[0\] needs img\[0\], but axis 0 has no indices; pass an array that is not empty")
def read_of_an_empty_input() -> object:
    return line(lambda img: pt.edge(img)[X], (3,))(img=picture(0))


@must_fail(r"stage 'img_mirror' .* leaves Input 'img' .* but axis 0 has no indices; pass an array that is not empty$")
def mirror_of_an_empty_input() -> object:
    return line(lambda img: pt.mirror(img)[X], (3,))(img=picture(0))


@must_fail(r"stage 'img_reflect' .* leaves Input 'img' .* but axis 0 has no indices; pass an array that is not empty$")
def reflection_of_an_empty_input() -> object:
    return line(lambda img: pt.reflect(img)[X], (3,))(img=picture(0))


@must_fail(r"stage 'img_wrap' .* leaves Input 'img' .* but axis 0 has no indices; pass an array that is not empty$")
def wrapped_empty_input() -> object:
    return line(lambda img: pt.wrap(img)[X], (3,))(img=picture(0))


@must_fail(r"leaves the domain of Func 'half' .* but axis 0 has no indices; img.shape\[0\]//2 is 0: pass arrays with ")
def wrapped_empty_func() -> object:
    def wrapped(img: pt.Input) -> pt.Expr:
        half = pt.Func("half", domain=((0, img.shape[0] // 2),))
        half[X] = img[X * 2]
        return pt.wrap(half)[X]

    return line(wrapped, (3,))(img=picture(1))


@must_fail(r"reads lut\[.*\], which leaves Input 'lut' .*: axis 0 has no indices; pass an array that is not empty$")
def look_up_in_an_empty_table() -> object:
    lut = pt.Input("lut", "uint8", 1)

    def found(img: pt.Input) -> pt.Expr:
        return lut[pt.within(pt.cast("int32", img[X]), 0, lut.shape[0] - 1)]

    return line(found, (3,), "float32")(img=picture(3, dtype="float32"), lut=picture(0))


def every_fourth(domain: tuple[object, ...], img: pt.Input) -> pt.Pipeline:
    """Every fourth pixel, where there is one by the stated domain."""
    small, f = pt.Func("small", domain=((0, domain[0]), (0, domain[1]))), pt.Func("f")
    small[Y, X] = img[Y * 4, X * 4]
    f[Y, X] = pt.edge(small)[Y // 4, X // 4]
    return pt.Pipeline(f, shape=img.shape)


@must_fail(
    r"reads small\[.*\], which leaves the domain of Func 'small' .*: small_edge\[0, 0\] needs small\[0, 0\], but axis "
    r"0 has no indices; img.shape\[0\]//4 is 0 and \(img.shape\[1\] - 1\)//4 is 0: pass arrays with "
    r"img.shape\[0\] >= 4 and img.shape\[1\] >= 5$"
)
def picture_too_small_for_a_pyramid() -> object:
    img = pt.Input("img", "uint8", 2)
    return every_fourth((img.shape[0] // 4, (img.shape[1] - 1) // 4), img)(img=picture(3, 4))


@must_fail(r"but axis 1 has no indices; img.shape\[1\]//4 is 0: pass arrays with img.shape\[1\] >= 4$")
def picture_too_narrow_for_a_pyramid() -> object:
    img = pt.Input("img", "uint8", 2)
    return every_fourth((img.shape[0] // 4, img.shape[1] // 4), img)(img=picture(9, 3))


@must_fail(r"no indices; min\(img.shape\[0\], img.shape\[1\]\)//4 is 0: pass larger arrays, or state a larger domain$")
def domain_that_depends_on_several_sizes() -> object:
    img = pt.Input("img", "uint8", 2)
    return every_fourth((pt.minimum(img.shape[0], img.shape[1]) // 4, img.shape[1]), img)(img=picture(9, 3))


@must_fail(r"reads lut\[img\[x\]\], .*: f\[\d+\] \(at img\[x\] = 255\) needs lut\[255\], but axis 0 has indices 0 ..")
def table_too_short() -> object:
    lut = pt.Input("lut", "uint8", 1)
    return line(lambda img: lut[img[X]], (10,))(img=picture(10), lut=picture(100))


@must_fail(
    rf"Func 'f' \(defined at {HERE}\) computes the index \(x \+ n\)\*4 at {HERE}, which may leave 64 bits in this "
    r"call; limit what it is made of with pt.clamp, or promise its range with pt.within"
)
def index_that_overflows() -> object:
    n = pt.Param("n", "int64")
    return line(lambda img: img[pt.clamp((X + n) * 4, 0, 8)])(img=picture(9), n=2**62)


@must_fail(
    r"reads img\[at\[x\]\], where at\[x\] depends on data and may be anything; limit it with pt.clamp, or "
    r"promise its range with pt.within, to stay inside Input 'img' .*, indices 0 .. 9"
)
def read_anywhere() -> object:
    at = pt.Input("at", "int64", 1)
    return line(lambda img: img[at[X]])(img=picture(10), at=np.zeros(10, "int64"))


@must_fail(r"reads img\[.*\] at an index that is only known to be in .* along axis 0, .*; limit it with pt.clamp, or")
def read_at_an_unclear_place() -> object:
    return line(lambda img: img[X - X // 2 * 2])(img=picture(10))


@must_fail(r"reads img\[x \+ n\], .*: f\[9\] needs img\[12\]")
def read_at_a_param() -> object:
    n = pt.Param("n", "int32")
    return line(lambda img: img[X + n])(img=picture(10), n=3)


@must_fail(
    rf"Func 'f' .* reads g\[x \+ 1\], which leaves the domain of Func 'g' \(defined at {HERE}\): f\[9\] needs g\[10\], "
    r"but axis 0 has indices 0 .. 9; read it through a boundary condition, such as pt.edge\(g\), or state"
)
def read_outside_a_stated_domain() -> object:
    img, g, f = pt.Input("img", "uint8", 1), pt.Func("g", domain=((0, 10),)), pt.Func("f")
    g[X] = pt.edge(img)[X]
    f[X] = g[X + 1]
    return pt.Pipeline(f)(img=picture(10))


@must_fail(r"Func 'f' .* is asked for over the shape \(10,\), which leaves its stated domain, indices 0 .. 4; ask for")
def output_outside_its_domain() -> object:
    img, f = pt.Input("img", "uint8", 1), pt.Func("f", domain=((0, 5),))
    f[X] = img[X]
    return pt.Pipeline(f)(img=picture(10))


@must_fail(
    rf"Func 'f' .* is an output of shape \(100,\), but its update f\[at\[r.0\]\] at {HERE} may write outside of it: "
    r"f\[-2147483648\] .*would be written; ask for a larger shape="
)
def histogram_of_anything() -> object:
    at, f, r = pt.Input("at", "int32", 1), pt.Func("f"), pt.RDom((0, 10), name="r")
    f[X] = 0
    f[at[r[0]]] += 1
    return pt.Pipeline(f, (100,))(at=np.zeros(10, "int32"))


@must_fail(r"its update f\[r.0 \+ 1\] at .* may write outside of it: f\[10\] \(at r.0 = 9\) would be written")
def scan_beyond_the_end() -> object:
    img, f, r = pt.Input("img", "uint8", 1), pt.Func("f"), pt.RDom((0, 10), name="r")
    f[X] = img[X]
    f[r[0] + 1] = f[r[0]] + 1
    return pt.Pipeline(f)(img=picture(10))


@must_fail(r"Func 'f' .* reads f\[r.0 - 1\], which leaves the array it is written to: f\[0\] \(at r.0 = 0\) needs f")
def scan_from_before_the_start() -> object:
    img, f, r = pt.Input("img", "uint8", 1), pt.Func("f"), pt.RDom((0, 10), name="r")
    f[X] = img[X]
    f[r[0]] = f[r[0] - 1] + 1
    return pt.Pipeline(f)(img=picture(10))


@must_fail(
    rf"Func 'g' .* is computed before it is read, but what is read of it at {HERE}, g\[at\[x\]\], has no known limits: "
    r"at\[x\] may be in -2147483648 .. 2147483647; limit it with pt.clamp, promise its range with pt.within, or "
    r"schedule g with compute_inline"
)
def stored_and_read_anywhere() -> object:
    img, at, g = pt.Input("img", "uint8", 1), pt.Input("at", "int32", 1), pt.Func("g")
    f = pt.Func("f")
    g[X] = pt.edge(img)[X]
    f[X] = g[at[X]]
    p = pt.Pipeline(f, schedule=pt.Schedule(pt.on("g").compute_root()))
    return p(img=picture(10), at=np.zeros(10, "int32"))


@must_fail(rf"what is read of it at {HERE}, g\[int32\(sqrt\(float32\(x\)\)\)\], has no known limits: int32\(sqrt")
def stored_and_read_at_a_float() -> object:
    img, g, f = pt.Input("img", "uint8", 1), pt.Func("g"), pt.Func("f")
    g[X] = pt.edge(img)[X]
    f[X] = g[pt.cast("int32", pt.sqrt(X))] + g[X + 1]
    return pt.Pipeline(f, schedule=pt.Schedule(pt.on("g").compute_root()))(img=picture(10))


@must_fail(r"Func 'g' .* would hold 1000000010 x 1000000010 values, more than memory can; ask for a smaller shape=")
def stored_and_too_large() -> object:
    n, g, f = pt.Param("n", "int32"), pt.Func("g"), pt.Func("f")
    g[Y, X] = Y + X
    f[Y, X] = g[n * Y, n * X] + g[n * Y + 9, n * X + 9]
    return pt.Pipeline(f, (11, 11), schedule=pt.Schedule(pt.on("g").compute_root()))(n=10**8)


@must_fail("reads img.*leaves Input 'img'")
def reference_of_the_same() -> object:
    return pipeline(lambda img: img[Y, X + 2]).reference(img=picture())


@must_fail("reads img.*leaves Input 'img'")
def compiling_for_the_same() -> object:
    return pipeline(lambda img: img[Y, X + 2]).compile(img=(8, 9))


@must_fail(r"Input 'img' .* has 2 axes, but is given the shape \(8, 9, 3\); pass as many extents")
def compiling_for_another_rank() -> object:
    return pipeline().compile(img=(8, 9, 3))


@must_fail(r"has 2 axes, but is given the shape \(8, -9\); pass as many extents, each an integer of 0 to 2147483647")
def compiling_for_a_negative_extent() -> object:
    return pipeline().compile(img=(8, -9))


@must_fail(r"Input 'img' .* is given the shape \(2000000000, 2000000000\), more than memory can hold")
def compiling_for_more_than_memory() -> object:
    return pipeline().compile(img=(2 * 10**9, 2 * 10**9))


@must_fail("Input 'img' .* holds uint8, but is given an array of int64")
def compiling_for_a_number() -> object:
    return pipeline().compile(img=480)


# ---- strategies and machines


@must_fail("estimates=5 are not arguments by name; pass shapes of inputs and values of params, such as {")
def estimates_of_no_kind() -> object:
    return pt.Pipeline(func(), (3, 3), schedule="greedy", estimates=5)  # type: ignore[arg-type]


@must_fail("estimates={5: .*} are not arguments by name")
def estimates_without_names() -> object:
    return pt.Pipeline(func(), (3, 3), schedule="greedy", estimates={5: (8, 9)})  # type: ignore[arg-type]


@must_fail("machine='i7-6700' is not a machine; pass pt.machine.detect")
def machine_of_no_kind() -> object:
    return pt.Pipeline(func(), (3, 3), machine="i7-6700")  # type: ignore[arg-type]


@must_fail("'pentium' is not a machine that is known by name; use one of haswell-e5-2630-v3, ")
def unknown_machine() -> object:
    return pt.machine.named("pentium")


@must_fail(r"Dp\(innermost_tile_size=0\): pass an integer of 1 to 2147483647, or None$")
def tile_of_no_size() -> object:
    return pt.autoschedule.Dp(innermost_tile_size=0)


@must_fail(r"Dp\(fusion='none'\): choose one of 'dp', 'greedy'$")
def unknown_choice() -> object:
    return pt.autoschedule.Dp(fusion="none")


@must_fail(r"Dp\(multi_level=1\): pass True or False$")
def number_for_a_switch() -> object:
    return pt.autoschedule.Dp(multi_level=1)  # type: ignore[arg-type]


@must_fail(r"Greedy\(load_cost=nan\): pass a number of 0 to 1e\+12$")
def cost_that_is_none() -> object:
    return pt.autoschedule.Greedy(load_cost=float("nan"))


@must_fail(r"Polymage\(tile_sizes=\(8,\)\): pass a tuple of 2: an integer of 1 to 2147483647, an integer of 1 to ")
def too_few_sizes() -> object:
    return pt.autoschedule.Polymage(tile_sizes=(8,))  # type: ignore[arg-type]


@must_fail(r"PostTile\(candidates=\(\)\): pass a tuple of at least one, each an integer of 1 to 2147483647$")
def no_candidates() -> object:
    return pt.autoschedule.PostTile(candidates=())


@must_fail(r"Machine\(cores=0\): pass an integer of 1 to 1048576$")
def machine_without_cores() -> object:
    return replace(pt.machine.named("i7-6700"), cores=0)


@must_fail(r"Machine\(vector_bits=100\): choose one of 32, 64, 128, 256, 512, 1024, 2048$")
def vectors_of_no_width() -> object:
    return replace(pt.machine.named("i7-6700"), vector_bits=100)


@must_fail(r"Machine\(issue=2\): pass pt.machine.Issue\(...\)$")
def machine_without_units() -> object:
    return replace(pt.machine.named("i7-6700"), issue=2)


@must_fail(r"Machine\(caches=...\): a cache has less than 1e-09 bytes a second; pass what it has$")
def cache_without_bandwidth() -> object:
    return replace(pt.machine.named("i7-6700"), caches=(pt.machine.Cache(32768, 64, 8, 1, 0.0),))


# ---- options


@must_fail("strict=1: pass True or False$")
def number_for_strict() -> object:
    return pt.Pipeline(func(), (3, 3), strict=1)  # type: ignore[arg-type]


@must_fail("debug=None: pass True or False$")
def nothing_for_debug() -> object:
    return pt.Pipeline(func(), (3, 3), debug=None)  # type: ignore[arg-type]


@must_fail("5 is not a target; use one of host, ")
def target_of_no_name() -> object:
    return pt.Pipeline(func(), (3, 3), target=5)  # type: ignore[arg-type]


# ---- targets


@must_fail("'vax' is not a target; use one of host, ")
def unknown_target() -> object:
    return pt.Pipeline(func(), (3, 3), target="vax")


@must_fail("the pipeline is compiled for riscv64.*, which this machine .* cannot run; look at it with .asm")
def foreign_target() -> object:
    return pipeline(target="riscv64")(img=picture())


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


def test_nothing_is_written_when_a_call_is_refused() -> None:
    out = np.full((8, 9), 7, "uint8")
    with pytest.raises(pt.UserError):
        pipeline(lambda img: img[Y, X + 2])(img=picture(), out=out)
    assert (out == 7).all()
