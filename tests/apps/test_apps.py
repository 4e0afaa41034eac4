"""Every app under every schedule against its mathematics: odd sizes, layouts, threads, checked and guarded runs.

Apps of many stages that are alike are shorter where code for every size is compiled, and whole at large sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from pantile import verification
from pantile.apps import APPS
from tests.fuzz.guarded import guarded
from tests.fuzz.isolate import isolated
from tests.long import LONG

from .case import Array, Shapes
from .cases import CASES
from .pipelines import EVERY as ALL
from .pipelines import SCHEDULES, pipeline, short_pipeline
from .short import app_and_case
from .test_simulated import ALIKE

EVERY = [(name, how) for name, how in ALL if name not in ALIKE]
SLOW = {name for name in APPS if CASES[name].slow and not LONG}
QUICK = [(name, how) for name, how in EVERY if name not in SLOW]
ONCE = [(name, how) for name, how in EVERY if name not in SLOW or how == ("expert" if APPS[name].expert else "plain")]
every_app = pytest.mark.parametrize(("name", "how"), ONCE, ids=map("-".join, ONCE))
# Those whose stages recur as those of others do, which are whole: cycles in three dimensions, W-cycles, the pyramids of
# PolyMage; and layers and stencils that are all alike.
SHORT_WHEN_LARGE = {
    *(name for name in APPS if name.startswith(("multigrid_3d", "multigrid_2d_w"))),
    "interpolate_polymage", "pyramid_blend_polymage", "stencil_chain", "vdsr",
} if not LONG else set[str]()  # fmt: skip
# With each access checked, guided_filter takes ten times as long to compile as others; box_filter has windows like its.
CHECKED = [(name, how) for name, how in QUICK if name != "guided_filter" or LONG]


def odd_sizes(name: str, how: str) -> Iterator[Shapes]:
    """The largest of the odd sizes and one of the others under one of the schedules, by turns: some app has its
    smallest under each of them. The largest is under every schedule where accesses are checked, or here where they are
    not."""
    sizes, schedules = app_and_case(name)[1].odd, [h for n, h in EVERY if n == name]
    first, last = list(APPS).index(name), len(sizes) - 1
    for k, shapes in enumerate(sizes):
        is_under_every = LONG or (k == last and (name, how) not in CHECKED)
        is_tried = LONG or k == last or name not in SLOW and k == first % last
        if is_tried and (is_under_every or schedules[(first + k) % len(schedules)] == how):
            yield shapes


def under_one_of_them(name: str, how: str) -> bool:
    """Whether this is the schedule of an app for what each app does under one of its schedules, by turns."""
    schedules = [h for n, h in QUICK if n == name]
    return LONG or schedules[list(APPS).index(name) % len(schedules)] == how


ONE = [(name, how) for name, how in QUICK if under_one_of_them(name, how)]
ODD = [(name, how, shapes) for name, how in EVERY for shapes in odd_sizes(name, how)]
# Small pipelines whose results are also compared bit by bit, and through unusual strides.
THOROUGH = [(name, how) for name in ("blur", "unsharp", "harris") for how in SCHEDULES]
thoroughly = pytest.mark.parametrize(("name", "how"), THOROUGH, ids=map("-".join, THOROUGH))


@pytest.fixture(scope="module", autouse=True)
def _verified_where_accesses_are_checked() -> Iterator[None]:
    """Code that checks its accesses has every pass verified, under the same schedules; here that is enough."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(verification.VARIABLE, "0")
        yield


@pytest.mark.parametrize("name", [name for name in APPS if CASES[name].reference])
def test_reference_is_the_mathematics(name: str) -> None:
    app, case = app_and_case(name)
    for shapes in case.odd[: 1 if name in SLOW else 2]:
        inputs = app.random(shapes)
        case.assert_agrees(inputs, short_pipeline(name, "plain").reference(**inputs))


@pytest.mark.parametrize(("name", "how", "shapes"), ODD, ids=lambda v: v if isinstance(v, str) else _text(v))
def test_odd_sizes(name: str, how: str, shapes: Shapes) -> None:
    app, case = app_and_case(name)
    inputs = app.random(shapes)
    case.assert_agrees(inputs, short_pipeline(name, how)(**inputs))


def _text(shapes: Shapes) -> str:
    return " ".join("x".join(map(str, shape)) for shape in shapes.values())


@pytest.mark.parametrize(("name", "how"), ONE, ids=map("-".join, ONE))
def test_small_size(name: str, how: str) -> None:
    inputs = APPS[name].inputs("small", seed=1)
    CASES[name].assert_agrees(inputs, pipeline(name, how)(**inputs))


@every_app
def test_threads(name: str, how: str) -> None:
    is_short = name in SHORT_WHEN_LARGE
    app, case = app_and_case(name) if is_short else (APPS[name], CASES[name])
    p = (short_pipeline if is_short else pipeline)(name, how)
    inputs = app.random(case.large)
    once = _tuple(p(**inputs, num_threads=1))
    case.assert_agrees(inputs, once if len(once) > 1 else once[0])
    for threads in (2, 3):
        for a, b in zip(_tuple(p(**inputs, num_threads=threads)), once, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("name", "how"), CHECKED, ids=map("-".join, CHECKED))
def test_no_access_leaves_its_buffer(name: str, how: str) -> None:
    """Every access checked, and the inputs beside unmapped pages."""
    (app, case), p = app_and_case(name), short_pipeline(name, how, debug=True)

    def run() -> None:
        inputs = app.random(case.odd[-1])
        for at_end in (True, False):
            case.assert_agrees(inputs, p(**{k: guarded(v, at_end) for k, v in inputs.items()}, num_threads=2))

    isolated(run)


@thoroughly
@pytest.mark.parametrize("at_end", [True, False], ids=["end", "start"])
def test_beside_an_unmapped_page(name: str, how: str, at_end: bool) -> None:
    p = pipeline(name, how)

    def run() -> None:
        for shapes in (*CASES[name].odd, CASES[name].large):
            inputs = APPS[name].random(shapes)
            out = guarded(np.zeros_like(p(**inputs)), at_end)
            CASES[name].assert_agrees(inputs, p(img=guarded(inputs["img"], at_end), out=out, num_threads=2))

    isolated(run)


@thoroughly
def test_strict_is_the_reference_bit_for_bit(name: str, how: str) -> None:
    p, inputs = pipeline(name, how, strict=True), APPS[name].random(CASES[name].large)
    np.testing.assert_array_equal(p(**inputs), p.reference(**inputs))


@pytest.mark.parametrize("how", SCHEDULES)
def test_16_bit_sums_wrap(how: str) -> None:
    img = np.random.default_rng(3).integers(0, 2**16, (71, 83), dtype=np.uint16)
    CASES["blur"].assert_agrees({"img": img}, pipeline("blur", how)(img=img))


def interleaved(a: Array) -> Array:
    """A copy of the array whose first axis is contiguous."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0)


def backwards(a: Array) -> Array:
    """A copy of the array that is reversed in memory."""
    return np.ascontiguousarray(a[..., ::-1, ::-1])[..., ::-1, ::-1]


def every_other(a: Array) -> Array:
    """A copy of the array with other values between its own."""
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1]), 99, a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def window(a: Array) -> Array:
    """A copy of the array inside a larger one."""
    wide = np.full((*a.shape[:-2], a.shape[-2] + 3, a.shape[-1] + 5), 99, a.dtype)
    wide[..., 1:-2, 3:-2] = a
    return wide[..., 1:-2, 3:-2]


WITH_PLANES = [(name, how) for name, how in QUICK if CASES[name].planes]


@pytest.mark.parametrize(("name", "how"), WITH_PLANES, ids=map("-".join, WITH_PLANES))
def test_interleaved_channels(name: str, how: str) -> None:
    p, case = pipeline(name, how), CASES[name]
    inputs = APPS[name].random(case.large)
    mixed = {k: interleaved(v) if k in case.planes else v for k, v in inputs.items()}
    planar = p(**inputs)
    assert isinstance(planar, np.ndarray)
    out = interleaved(np.zeros_like(planar)) if planar.ndim == 3 else np.zeros_like(planar)
    case.assert_agrees(inputs, p(**mixed, out=out))


@thoroughly
@pytest.mark.parametrize("layout", [interleaved, backwards, every_other, window])
def test_strides(name: str, how: str, layout: Callable[[Array], Array]) -> None:
    inputs = APPS[name].random(CASES[name].large)
    out = layout(np.zeros_like(pipeline(name, how)(**inputs)))
    assert pipeline(name, how)(img=layout(inputs["img"]), out=out) is out
    CASES[name].assert_agrees(inputs, out)


def test_views_that_are_written_through_change_nothing_else() -> None:
    inputs = APPS["unsharp"].random({"img": (3, 17, 29)})  # of columns 4, 6, .. 60
    around = np.full((3, 21, 66), 7, np.float32)
    pipeline("unsharp", "plain")(**inputs, out=around[:, 2:19, 4:62:2])
    CASES["unsharp"].assert_agrees(inputs, around[:, 2:19, 4:62:2])
    around[:, 2:19, 4:62:2] = 7
    assert (around == 7).all()


def _tuple(arrays: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return arrays if isinstance(arrays, tuple) else (arrays,)
