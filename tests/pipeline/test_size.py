"""Deep expressions, long pipelines and expressions that share much: compiled in any thread, in time that grows with
what was written down, not with what it would be if it were written out."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.expr.depth import on_deep_stack, side_by_side

from ..long import LONG

y, x = pt.vars("y x")
SMALL_STACK = 512 << 10


def _in_a_small_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns in a thread with a small stack."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    usual = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(usual)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


# ---- what is large


def _image(dtype: str = "float32") -> pt.Input:
    return pt.Input("img", dtype, ndim=2)


def _defined(e: Any) -> pt.Func:
    out = pt.Func("out")
    out[y, x] = e
    return out


def _nested(step: Callable[[Any, int], Any]) -> Callable[[int], pt.Pipeline]:
    def pipeline(n: int) -> pt.Pipeline:
        e = _image()[y, x]
        for k in range(n):
            e = step(e, k)
        return pt.Pipeline(_defined(e))

    return pipeline


def _mandelbrot(n: int) -> pt.Pipeline:
    re, im = _image()[y, x], pt.cast("float32", y) * 0.01
    a, b, count = re * 0.0, im * 0.0, pt.cast("int32", re * 0.0)
    for _ in range(n):
        inside = a * a + b * b < 4.0
        count = pt.select(inside, count + 1, count)
        a, b = pt.select(inside, a * a - b * b + re, a), pt.select(inside, 2.0 * a * b + im, b)
    return pt.Pipeline(_defined(count))


def _sorted_middle(n: int) -> pt.Pipeline:
    """A median by n rounds of a network that compares and exchanges."""
    img = _image("uint8")
    values = [img[y, x + k] for k in range(9)]
    for i in range(n):
        for j in range(i % 2, 8, 2):
            a, b = values[j], values[j + 1]
            values[j], values[j + 1] = pt.minimum(a, b), pt.maximum(a, b)
    return pt.Pipeline(_defined(values[4]), shape=(img.shape[0], img.shape[1] - 8))


def _reads(n: int) -> pt.Pipeline:
    img = _image()
    e = img[y, x]
    for k in range(1, n):
        e = e + img[y + k // 8, x + k % 8] * float(k)
    return pt.Pipeline(_defined(e), shape=(img.shape[0] - n // 8, img.shape[1] - 8))


def _stencils(n: int) -> pt.Pipeline:
    img = _image()
    before: Any = img
    for k in range(n):
        f = pt.Func(f"f{k}")
        f[y, x] = before[y, x] + before[y + 1, x]
        before = f
    return pt.Pipeline(before, shape=(img.shape[0] - n, img.shape[1]))


def _readers(n: int) -> pt.Pipeline:
    """One stage that reads n others."""
    image = _image()
    img = pt.edge(image)
    e: Any = 0.0
    for k in range(n):
        f = pt.Func(f"f{k}")
        f[y, x] = img[y - 1, x] * (k + 1.5) + img[y, x]
        e = e + f[y, x] + f[y + 1, x]
    return pt.Pipeline(_defined(e), shape=image.shape)


def _fused(n: int) -> pt.Pipeline:
    """Stages that are computed inside one loop of their reader."""
    inside = [pt.on(f"f{k}").compute_at("out", "y") for k in range(n)]
    return _readers(n).with_schedule(pt.Schedule(pt.on("out").parallel("y"), *inside))


def _sliding(n: int) -> pt.Pipeline:
    """Stencils of which every fourth has rows that the three before it slide along."""
    directives: list[Any] = []
    for first in range(0, n, 4):
        last = f"f{first + 3}"
        directives.append(pt.on(last).split("y", "strip", "row", 32).parallel("strip"))
        inside = [pt.on(f"f{k}").store_at(last, "strip").compute_at(last, "row") for k in range(first, first + 3)]
        directives += inside
    return _stencils(n).with_schedule(pt.Schedule(*directives))


def _recurrence(n: int) -> pt.Pipeline:
    """Chebyshev polynomials, each a Func: written out, there are as many as Fibonacci numbers say."""
    img = _image()
    a, b = pt.Func("t0"), pt.Func("t1")
    a[y, x], b[y, x] = 1.0, img[y, x]
    for k in range(n):
        f = pt.Func(f"t{k + 2}")
        f[y, x] = 2.0 * img[y, x] * b[y, x] - a[y, x]
        a, b = b, f
    return pt.Pipeline(b)


def _shared_branches(n: int) -> pt.Pipeline:
    """Nested selects on coordinates, both branches of which read what is below: twice as many ways to it per level."""
    img = _image()
    e = img[y, x]
    for k in range(n):
        e = pt.select(x > k, img[y, x] + e, e - img[y, x])
    return pt.Pipeline(_defined(e))


def _deciding_branches(n: int) -> pt.Pipeline:
    """Nested branches whose conditions depend on the branches below."""
    img = _image()
    e = img[y, x]
    for k in range(n):
        e = pt.select((x > k) & (e < float(k)), e + img[y, x], pt.select(y > k, e * 3.0, e - 1.0))
    return pt.Pipeline(_defined(e))


def _compared_branches(n: int) -> pt.Pipeline:
    """Nested branches whose conditions compare coordinates with the branches below."""
    img = _image("int32")
    e = img[y, x]
    for k in range(n):
        below = pt.select(x > k, img[y, x] + e, e - img[y, x])
        e = pt.select(x > below, img[y, x] + below, e - below)
    return pt.Pipeline(_defined(e))


DEEP: dict[str, Callable[[int], pt.Pipeline]] = {
    "left": _nested(lambda e, k: e + float(k)),
    "right": _nested(lambda e, k: float(k) - e),
    "unary": _nested(lambda e, k: pt.sqrt(e)),
    "shared": _nested(lambda e, k: (e + 1.0) * (e - 1.0)),
    "select": _nested(lambda e, k: pt.select(e > float(k), e * 0.5, e + 1.0)),
    "cast": _nested(lambda e, k: pt.cast("float32" if k % 2 else "int32", e)),
}

LEVELS = {"shared": 2, "select": 2}  # of a step, where there is more than one
# More of either than a small stack has room for, or Python for calls.
DEEPEST, LONGEST = (10_000, 1_000) if LONG else (3_000, 300)


@pytest.mark.parametrize("shape", DEEP)
def test_expressions_of_thousands_of_levels(shape: str) -> None:
    def work() -> tuple[str, str]:
        pipeline = DEEP[shape](DEEPEST // LEVELS.get(shape, 1))
        pipeline.reference(img=np.ones((1, 1), np.float32))
        return str(pipeline), pipeline.llvm()

    text, code = _in_a_small_thread(work)
    assert len(text) < 50_000
    assert "define i32" in code


def test_deep_expressions_run() -> None:
    img = np.linspace(0, 4, 40, dtype=np.float32).reshape(2, 20)
    for shape in DEEP:
        pipeline = DEEP[shape](500)
        result = _in_a_small_thread(lambda pipeline=pipeline: pipeline(img=img))
        np.testing.assert_allclose(result, pipeline.reference(img=img), rtol=1e-4)


@pytest.mark.parametrize("width", [2, 40])
def test_what_many_branches_share_is_read_where_one_of_them_is_taken(width: int) -> None:
    image = _image()
    f, at = pt.Func("f"), pt.edge(image)
    f[y, x] = at[y, x] * 2.0
    e = f[y, x]
    for k in range(8):
        e = pt.select(x > k, f[y, x - k - 1] * 0.5 + e, e * 0.5 - f[y, x + 1])
    pipeline = pt.Pipeline(_defined(e), shape=image.shape).with_schedule(pt.Schedule(pt.on("f").compute_at("out", "y")))
    img = np.arange(3 * width, dtype=np.float32).reshape(3, width)
    np.testing.assert_allclose(pipeline(img=img), pipeline.reference(img=img), rtol=1e-4)


@pytest.mark.parametrize("width", [1, 3, 40])
def test_coordinates_compared_with_what_branches_share(width: int) -> None:
    """By however many conditions that is decided, what a branch reads is there where the branch is taken."""
    image = _image("int32")
    f, at = pt.Func("f"), pt.edge(image)
    f[y, x] = at[y, x] * 2
    for levels in (1, 2, 3):
        e = f[y, x]
        for k in range(levels):
            below = pt.select(x > k, f[y, x - k - 1] + e, e - f[y, x + 1])
            e = pt.select(x > below, f[y, x - 1] + below, e - f[y, x + k])
        pipeline = pt.Pipeline(_defined(e), shape=image.shape).with_schedule(
            pt.Schedule(pt.on("f").compute_at("out", "y"))
        )
        img = np.arange(-20, 3 * width - 20, dtype=np.int32).reshape(3, width)
        np.testing.assert_array_equal(pipeline(img=img), pipeline.reference(img=img))


def test_hundreds_of_stages() -> None:
    def work() -> str:
        return _stencils(LONGEST).llvm()

    assert "define i32" in _in_a_small_thread(work)


def test_many_stages_that_are_read_twice() -> None:
    """All of them are inlined, into one that asks what its planes have in common."""
    y, x, f = pt.Var("y"), pt.Var("x"), pt.Input("img", "float32", ndim=2)
    shape = f.shape
    for k in range(1200):
        g = pt.Func(f"f{k}")
        g[y, x] = f[y, x] * 0.5 + f[y, x] * f[y, x]
        f = g
    assert len(pt.Pipeline(f, shape=shape).schedule) == 1200


# ---- how long it takes: what is called, for something and for twice as much of it

GROWING: dict[str, tuple[Callable[[int], pt.Pipeline], int]] = {
    **{shape: (pipeline, 60 if LONG else 40) for shape, pipeline in DEEP.items()},
    "mandelbrot": (_mandelbrot, 12 if LONG else 8),
    "median": (_sorted_middle, 12 if LONG else 8),
    "reads": (_reads, 60 if LONG else 40),
    "stencils": (_stencils, 20 if LONG else 14),
    "readers": (_readers, 20 if LONG else 12),
    "fused": (_fused, 16 if LONG else 10),
    "sliding": (_sliding, 24 if LONG else 16),
    "recurrence": (_recurrence, 20 if LONG else 14),
    "shared branches": (_shared_branches, 12),
    "deciding branches": (_deciding_branches, 20),
    "compared branches": (_compared_branches, 12),
}


def _calls(work: Callable[[], object]) -> int:
    """How many functions of Pantile are called, in threads that it starts too."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        """Told of calls alone, since it returns nothing that would be told of what happens inside of them."""
        nonlocal count
        count += "pantile" in frame.f_code.co_filename

    usual = sys.gettrace()
    threading.settrace(note)
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(usual)
        threading.settrace(usual)  # type: ignore[arg-type]
    return count


@pytest.mark.parametrize("what", GROWING)
def test_twice_as_much_takes_twice_as_many_calls(what: str) -> None:
    build, n = GROWING[what]
    build(4).llvm()  # what is found out once per process
    once, twice = (_calls(lambda size=size: build(size).llvm()) for size in (n, 2 * n))
    assert twice < 2.3 * once, f"{once} calls for {n}, {twice} for {2 * n}"


@pytest.mark.parametrize("what", ["readers", "stencils", "reads"])
def test_twice_as_much_is_twice_as_much_code(what: str) -> None:
    build, n = GROWING[what]
    once, twice = (len(build(size).llvm()) for size in (n, 2 * n))
    assert twice < 2.3 * once


def test_stencils_of_growing_margins_share_their_code() -> None:
    """Rows begin at -1, -2, ... in the loops of a chain: constants that one function is given."""
    image = _image()
    before: Any = pt.edge(image)
    for k in range(24):
        f = pt.Func(f"f{k}")
        f[y, x] = (before[y, x - 1] + before[y, x] + before[y, x + 1]) * 0.5
        before = f
    pipeline = pt.Pipeline(before, shape=image.shape)
    assert pipeline.llvm().count("define internal i32") < 12
    array = np.arange(300, dtype=np.float32).reshape(4, 75) % 7
    np.testing.assert_allclose(pipeline(img=array), pipeline.reference(img=array), rtol=1e-4)


# ---- the stack


def test_errors_on_the_other_stack_point_at_the_callers_line() -> None:
    @on_deep_stack
    def refuse() -> None:
        raise pt.UserError("no")

    with pytest.raises(pt.UserError, match=r"test_size\.py") as caught:
        refuse()
    assert caught.value.where.file == __file__


def test_settings_of_threads_are_as_before() -> None:
    before = threading.stack_size(), sys.getrecursionlimit()
    assert on_deep_stack(lambda: sys.getrecursionlimit())() > before[1]
    assert (threading.stack_size(), sys.getrecursionlimit()) == before


def test_settings_that_others_change_meanwhile_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = threading.stack_size()
    start = threading.Thread.start

    def changing(thread: threading.Thread) -> None:
        start(thread)
        threading.stack_size(SMALL_STACK)

    monkeypatch.setattr(threading.Thread, "start", changing)
    try:
        on_deep_stack(lambda: None)()
        assert threading.stack_size() == SMALL_STACK
    finally:
        threading.stack_size(usual)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where it is ignored (with `nohup`, in the background of a script)."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("together", [1, 3])
def test_an_interrupt_ends_the_work(together: int) -> None:
    started, ended = threading.Barrier(together + 1), threading.Semaphore(0)

    def endless() -> None:
        try:
            started.wait()
            while True:
                pass
        finally:
            ended.release()

    all_endless = on_deep_stack(endless if together == 1 else lambda: side_by_side([endless] * together))
    threading.Thread(target=lambda: (started.wait(), os.kill(os.getpid(), signal.SIGINT))).start()
    with pytest.raises(KeyboardInterrupt):
        all_endless()
    assert all(ended.acquire(blocking=False) for _ in range(together))


def test_work_side_by_side_is_waited_for_though_some_fails() -> None:
    done = []

    def fail() -> None:
        raise pt.UserError("no")

    with pytest.raises(pt.UserError, match="no"):
        side_by_side([fail, lambda: done.append(time.sleep(0.01))])
    assert done == [None]


# ---- Python's frames


def test_frames_are_in_one_piece() -> None:
    """Calls map no memory, however deep they are: at the end of each of Python's chunks of frames they would."""

    def calls(depth: int) -> None:
        for _ in range(100):
            _descend(5)
        if depth:
            calls(depth - 1)

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        calls(400)
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

    assert side_by_side([faults])[0] < 100


def _descend(depth: int) -> None:
    if depth:
        _descend(depth - 1)
