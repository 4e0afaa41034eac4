"""Pipelines on the simulated GPU give what the reference gives, on arrays of any layout."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.simulator import SimulationError, counting
from pantile.target import named

from ..apps.short import app_and_case

y, x = pt.vars("y x")


def blurred(**options: object) -> pt.Pipeline:
    img = pt.Input("img", "float32", ndim=2)
    rows, out = pt.Func("rows"), pt.Func("out")
    rows[y, x] = img[y, x] + img[y, x + 1] + img[y, x + 2]
    out[y, x] = (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) / 9.0
    return pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 2), target="cuda-sim", **options)  # type: ignore[arg-type]


SIZES = ("blocks", "threads", "shared_bytes", "registers")


def picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape, dtype=np.float32)


@pytest.mark.parametrize("shape", [(100, 130), (13, 9), (3, 3)])
def test_a_blur(shape: tuple[int, int]) -> None:
    p, img = blurred(), picture(*shape)
    np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5)


@pytest.mark.parametrize(
    "view",
    [np.s_[::-1, ::-1], np.s_[:, ::2], np.s_[5:90, 3:100], np.s_[::-3, 7::2]],
    ids=["back", "every", "part", "mixed"],
)
def test_views(view: tuple[slice, slice]) -> None:
    p, img = blurred(), picture(100, 130)[view]
    expected = p.reference(img=img)
    for order in ("C", "F"):
        out = np.zeros(expected.shape, np.float32, order=order)  # type: ignore[call-overload]
        p(img=img, out=out[::-1])
        np.testing.assert_allclose(out[::-1], expected, rtol=1e-5)


def test_through_shared_memory_with_barriers() -> None:
    p = blurred().with_schedule(
        pt.Schedule(
            pt.on("out")
            .split("y", "yo", "yi", 8)
            .split("x", "xo", "xi", 32)
            .reorder("yo", "xo", "yi", "xi")
            .block("yo", "xo")
            .thread("yi", "xi"),
            pt.on("rows").compute_at("out", "xo").thread("y", "x"),
        )
    )
    img = picture(100, 130)
    with counting() as counts:
        np.testing.assert_allclose(p(img=img), p.reference(img=img), rtol=1e-5)
    (kernel,) = counts
    assert kernel.barriers == kernel.blocks and kernel.shared_bytes == 10 * 32 * 4
    (predicted,) = p.predict(img=img).kernels  # type: ignore[union-attr]  # of a GPU
    simulated = (kernel.blocks, kernel.threads, kernel.shared_bytes, kernel.registers, kernel.occupancy())
    assert (*(getattr(predicted, n) for n in SIZES), predicted.occupancy) == simulated
    assert 0 < predicted.occupancy.share <= 1


def test_params_are_given_at_each_call() -> None:
    img, gain = pt.Input("img", "float32", ndim=1), pt.Param("gain", "float32")
    out = pt.Func("out")
    out[x] = img[x] * gain
    p = pt.Pipeline(out, target="cuda-sim")
    for number in (2.0, 0.1):
        np.testing.assert_array_equal(p(img=picture(50), gain=number), picture(50) * np.float32(number))


@pytest.mark.parametrize(
    ("app", "shape"),
    [("unsharp", (3, 40, 50)), ("harris", (3, 40, 50)), ("matmul", (33, 33)), ("local_laplacian", (3, 40, 48))],
)
def test_apps(app: str, shape: tuple[int, ...]) -> None:
    shorter, _ = app_and_case(app)
    p = shorter.build().with_options(target="cuda-sim")
    arguments = shorter.random(dict.fromkeys(shorter.sizes["small"], shape))
    with counting() as counts:
        found = p(**arguments)
    assert counts and found.size and len(np.unique(found)) > 100  # what is compared below is not nothing
    np.testing.assert_allclose(found, p.reference(**arguments), rtol=1e-4, atol=1e-5)


def test_a_broken_promise_is_found() -> None:
    img, at = pt.Input("img", "uint8", ndim=1), pt.Input("at", "int32", ndim=1)
    out = pt.Func("out")
    out[x] = img[pt.within(at[x], 0, img.shape[0] - 1)]
    p = pt.Pipeline(out, shape=at.shape, target="cuda-sim")
    with pytest.raises(SimulationError, match=r"thread 3: Input 'img' .* is read at element 70 of its memory"):
        p(img=np.zeros(64, np.uint8), at=np.int32([1, 2, 3, 70]))


def test_more_memory_than_there_is() -> None:
    """The simulator notes who has accessed each element, so that it has room for less than a device."""
    far, f, out = pt.Param("far", "int32"), pt.Func("f"), pt.Func("out")
    f[y, x] = y + x
    out[x] = f[x, x] + f[x + far, x + far]
    p = pt.Pipeline(out, shape=4, target="cuda-sim").with_schedule(pt.Schedule(pt.on("f").compute_root()))
    with pytest.raises(pt.RunError, match="out of memory: the intermediate values of this pipeline do not fit"):
        p(far=1 << 22)


def test_its_code_can_be_looked_at() -> None:
    assert named("cuda-sim").has_blocks
    p = blurred()
    assert "ptx_kernel" in p.llvm() and ".visible .entry" in p.asm()


def test_aligned_arrays_have_code_of_their_own() -> None:
    """As on a device, whose threads move sixteen bytes at once where they may."""
    img, f, (y, x) = pt.Input("img", "float32", ndim=2), pt.Func("f"), pt.vars("y x")
    f[y, x] = img[y, x] * 2.0
    p = pt.Pipeline(f, shape=img.shape, target="cuda-sim")
    memory = np.arange(68, dtype=np.float32)
    first = -memory.ctypes.data // 4 % 4  # of the elements at a multiple of 16 bytes
    for start, columns, bytes_ in ((0, 8, 16), (1, 8, 4), (2, 8, 8), (0, 6, 8), (0, 7, 4)):
        pixels = memory[first + start :][: 8 * columns].reshape(8, columns)
        np.testing.assert_array_equal(p(img=pixels), pixels * 2)
        (variant,) = {v for (v,) in p._calls.general._answers_of_kernel if dict(v.aligned)["img"] == bytes_}
        assert dict(variant.aligned)["f"] == (16 if columns == 8 else bytes_)
        p = pt.Pipeline(f, shape=img.shape, target="cuda-sim")
