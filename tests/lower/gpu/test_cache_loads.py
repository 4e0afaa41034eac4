"""Cache operators: which kernels load which buffers by them."""

from __future__ import annotations

import numpy as np

import pantile as pt
from pantile.schedule.directives import StageSchedule

from .simulated import assert_agrees, blur, kernels, picture, x

TILES = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")


def operators(p: pt.Pipeline) -> list[dict[str, str]]:
    """By kernel and buffer."""
    return [{b.name: str(b.cached) for b in k.buffers} for k in kernels(p)]


def test_all_loads_of_a_kernel_are_by_the_operator_of_its_blocks() -> None:
    p = blur(TILES.cache_loads("img", "cg"), pt.on("rows").compute_at("out", "xo").thread("y", "x"))
    assert operators(p) == [{"img": "cg", "out": "ca"}]
    assert_agrees(p, img=picture(20, 70))
    assert "ld.global.cg.b32" in p.asm("sm_70")


def test_other_kernels_keep_theirs() -> None:
    rows = TILES.directives
    p = blur(TILES.cache_loads("rows", "cs"), StageSchedule("rows", rows))
    assert operators(p) == [{"img": "ca", "rows": "ca"}, {"rows": "cs", "out": "ca"}]
    assert_agrees(p, img=picture(20, 70))


def test_kernels_that_load_otherwise_are_not_merged() -> None:
    img, stages = pt.Input("img", "float32", ndim=1), [pt.Func(f"f{k}") for k in range(4)]
    for before, f in zip((img, *stages), stages, strict=False):
        f[x] = before[x] * 2.0
    chains = [pt.on(f.name).split("x", "xo", "xi", 64).block("xo").thread("xi") for f in stages]
    p = pt.Pipeline(stages[-1], shape=img.shape, target="cuda-sim")
    alike = p.with_schedule(pt.Schedule(*chains))
    one = p.with_schedule(pt.Schedule(*chains[:2], chains[2].cache_loads("f1", "cg"), chains[3]))
    assert (len(kernels(alike)), len(kernels(one))) == (1, 2)
    row = np.arange(100, dtype=np.float32)
    assert (one(img=row) == row * 16).all()


def test_the_operator_of_a_stage_is_that_of_all_its_values() -> None:
    img, f, g = pt.Input("img", "float32", ndim=1), pt.Func("f"), pt.Func("g")
    f[x] = (img[x] * 2.0, img[x] + 1.0)
    g[x] = f[x][0] + f[x][1]
    p = pt.Pipeline(g, shape=img.shape, target="cuda-sim").with_schedule(
        pt.Schedule(
            pt.on("f").split("x", "xo", "xi", 64).block("xo").thread("xi"),
            pt.on("g").split("x", "xo", "xi", 64).block("xo").thread("xi").cache_loads("f", "cg"),
        )
    )
    assert sorted(operators(p)[1].values()) == ["ca", "cg", "cg"]
    row = np.arange(100, dtype=np.float32)
    assert (p(img=row) == row * 3 + 1).all()
