"""Volumes of several quantities, in boxes of planes and rows: which stages are that, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import STRATEGIES
from pantile.autoschedule.search.boxes import SIZES, boxes

from .problems import ORDINARY, chain, matrix_product, problem_of


def flow(quantities: str = "c") -> pt.Pipeline:
    """What flows along columns: each quantity on faces between cells times the velocity there, which is of all."""
    c, z, y, x = pt.vars("c z y x")
    phi = pt.Input("phi", "float32", ndim=4)
    face, velocity, out = pt.Func("face"), pt.Func("velocity"), pt.Func("out")
    face[c, z, y, x] = 0.5 * (phi[c, z, y, x] + phi[c, z, y, x + 1])
    if quantities:
        velocity[z, y, x] = pt.sqrt(face[0, z, y, x] + face[1, z + 1, y + 1, x])
        out[c, z, y, x] = face[c, z, y, x + 1] * velocity[z, y, x + 1] - face[c, z, y, x] * velocity[z, y, x]
    else:
        velocity[c, z, y, x] = pt.sqrt(face[c, z, y, x] + face[c, z + 1, y + 1, x])
        out[c, z, y, x] = velocity[c, z, y, x + 1] - velocity[c, z, y, x]
    n = phi.shape
    return pt.Pipeline(out, shape=(n[0], n[1] - 1, n[2] - 1, n[3] - 2))


def test_what_quantities_share_is_computed_for_a_box() -> None:
    p = flow()
    problem = problem_of(p, ORDINARY, phi=(5, 65, 65, 130))
    start = STRATEGIES["naive"]().find(problem).schedule
    found = list(boxes(problem, start, "out"))
    assert len(found) == len(SIZES)
    for schedule in found:
        assert '.compute_at("out", "y_o")' in repr(schedule.on("velocity"))
        assert "compute_inline" in schedule.on("face").verbs
        assert '.reorder("z_o", "y_o", "c", "z_i", "y_i", "x", "x_v").parallel("z_o")' in repr(schedule.on("out"))
        phi = np.random.default_rng(0).random((3, 14, 23, 37), np.float32)
        np.testing.assert_allclose(p.with_schedule(schedule)(phi=phi), p.reference(phi=phi), rtol=1e-5, atol=1e-5)


def test_boxes_are_smaller_than_the_volume() -> None:
    p = flow()
    problem = problem_of(p, ORDINARY, phi=(5, 7, 65, 130))
    start = STRATEGIES["naive"]().find(problem).schedule
    assert len(list(boxes(problem, start, "out"))) == sum(planes < 6 for planes, _ in SIZES)


@pytest.mark.parametrize(
    ("p", "sizes"),
    [
        (flow(quantities=""), {"phi": (5, 65, 65, 130)}),
        (chain(3), {"img": (200, 300)}),
        (matrix_product(), {"a": (200, 300), "b": (300, 200)}),
    ],
)
def test_what_shares_nothing_is_left_alone(p: pt.Pipeline, sizes: dict[str, tuple[int, ...]]) -> None:
    problem = problem_of(p, ORDINARY, **sizes)
    start = STRATEGIES["naive"]().find(problem).schedule
    assert not any(list(boxes(problem, start, s.name)) for s in problem.graph.stages)


def test_fluxes_go_by_boxes() -> None:
    app = APPS["minifluxdiv"]
    machine = replace(pt.machine.named("neoverse-n1"), cores=2, threads=2)
    p = app.build().with_schedule("auto", estimates=app.sizes["paper"], machine=machine)
    assert '.compute_at("out", "y_o")' in repr(p.schedule.on("velocity_z"))
    assert '.split("z", "z_o", "z_i"' in repr(p.schedule.on("out"))
