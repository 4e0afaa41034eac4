"""Every mistake in what is read, written and stored of arrays of some sizes: one case each."""

from __future__ import annotations

import numpy as np

import pantile as pt

from .cases import HERE, Case, Cases, assert_refused
from .pipelines import X, Y, line, picture, pipeline

CASES = Cases()
must_fail = CASES.must_fail


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


@must_fail(
    r"reads lut\[img\[x\]\], which leaves Table 'lut' .* needs lut\[255\], but axis 0 has indices 0 .. 99; make the "
    r"array of lut as large as its indices need, or limit the index with pt.clamp$"
)
def read_of_a_table_that_is_too_short() -> object:
    lut = pt.table(np.arange(100), name="lut")
    return line(lambda img: lut[img[X]])(img=picture(10))


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


@must_fail(
    r"Func 'f' .* is requested over the shape \(10,\), which leaves its stated domain, indices 0 .. 4; pass a smaller"
)
def output_outside_its_domain() -> object:
    img, f = pt.Input("img", "uint8", 1), pt.Func("f", domain=((0, 5),))
    f[X] = img[X]
    return pt.Pipeline(f)(img=picture(10))


@must_fail(
    rf"Func 'f' .* is an output of shape \(100,\), but its update f\[at\[r.0\]\] at {HERE} may write outside of it: "
    r"f\[-2147483648\] .*would be written; pass a larger shape="
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


@must_fail(
    r"Func 'g' .* is computed before it is read, at all places that calls of any size may read it at, and not all of "
    r"these can be computed in this one: "
    r"Func 'g' .* reads img\[x\], which leaves Input 'img' .*: g\[3\] needs img\[3\], but axis 0 has indices 0 .. 2; "
    r"read it through a boundary condition, such as pt.edge\(img\), or pass a smaller shape=; or schedule g with "
    r"compute_inline"
)
def stored_and_read_at_remainders() -> object:
    img, g, f = pt.Input("img", "uint8", 1), pt.Func("g"), pt.Func("f")
    g[X] = img[X]
    f[X] = g[X % 4]
    return pt.Pipeline(f, schedule=pt.Schedule(pt.on("g").compute_root()), shape=img.shape)(img=picture(3))


@must_fail(rf"what is read of it at {HERE}, g\[int32\(sqrt\(float32\(x\)\)\)\], has no known limits: int32\(sqrt")
def stored_and_read_at_a_float() -> object:
    img, g, f = pt.Input("img", "uint8", 1), pt.Func("g"), pt.Func("f")
    g[X] = pt.edge(img)[X]
    f[X] = g[pt.cast("int32", pt.sqrt(X))] + g[X + 1]
    return pt.Pipeline(f, schedule=pt.Schedule(pt.on("g").compute_root()))(img=picture(10))


@must_fail(r"Func 'g' .* would hold 1000000010 x 1000000010 values, more than memory can; pass a smaller shape=")
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


# ---- the test


@CASES.each
def test_message(case: Case, text: str) -> None:
    assert_refused(case, text)
