"""MiniFluxDiv: the divergence of fluxes in a finite-volume scheme of fourth order, as in codes for gas dynamics.

A cell holds a density, three components of velocity and an energy. Along each axis, values on the faces between cells
are interpolated from four cells; a face's flux of each quantity is its value times the velocity through the face; to a
cell, the difference of the fluxes through its two faces is added.

The idea of the schedule: one row of cells at a time, so that all it takes (velocities and fluxes on faces) is in the L1
cache. Fluxes across rows slide: each row of faces is computed once for the two rows of cells beside it. Those
across planes are computed for each plane of cells again, which is cheaper than to store them.
"""

from __future__ import annotations

from typing import Any

import pantile as pt
from pantile.target import Target

from .app import App, doubles

QUANTITIES, GHOSTS = 5, 2
AXES = "zyx"
COMPONENT = {"x": 1, "y": 2, "z": 3}  # of the velocity, among the quantities


def build() -> pt.Pipeline:
    """phi[c, z, y, x], two ghost cells on every side -> the inner cells after one step."""
    c, z, y, x = pt.vars("c z y x")
    phi = pt.Input("phi", "float64", ndim=4)
    total = phi[c, z, y, x]
    for name in AXES:

        def at(step: int, axis: str = name) -> tuple[Any, ...]:
            """The quantity some cells further along the axis."""
            return (c, *(v + step if a == axis else v for a, v in zip(AXES, (z, y, x), strict=True)))

        face, velocity, flux = (pt.Func(f"{what}_{name}") for what in ("face", "velocity", "flux"))
        near, far = phi[at(-1)] + phi[at(0)], phi[at(-2)] + phi[at(1)]
        face[c, z, y, x] = 7 / 12 * near - 1 / 12 * far
        velocity[z, y, x] = face[COMPONENT[name], z, y, x]
        flux[c, z, y, x] = face[c, z, y, x] * velocity[z, y, x]
        total = total + (flux[at(1)] - flux[c, z, y, x])
    step, out = pt.Func("step"), pt.Func("out")
    step[c, z, y, x] = total
    out[c, z, y, x] = step[c, z + GHOSTS, y + GHOSTS, x + GHOSTS]
    inner = tuple(n - 2 * GHOSTS for n in phi.shape[1:])
    return pt.Pipeline(out, shape=(QUANTITIES, *inner), name="minifluxdiv")


def expert(target: Target, cores: int) -> pt.Schedule:
    """A plane of cells per task, row by row."""
    block = 2 * target.lanes(64)

    def on_faces(axis: str) -> list[pt.StageSchedule]:
        stored = "z" if axis == "y" else "y"
        flux = pt.on(f"flux_{axis}").store_at("out", stored).compute_at("out", "y").vectorize("x", block)
        velocity = pt.on(f"velocity_{axis}").compute_at("out", "y").vectorize("x", block)
        return [flux, velocity, pt.on(f"face_{axis}").compute_inline()]

    return pt.Schedule(
        pt.on("out").reorder("z", "y", "c", "x").vectorize("x", block).parallel("z"),
        pt.on("step").compute_inline(),
        *(s for axis in AXES for s in on_faces(axis)),
    )


APPS = (
    App(
        "minifluxdiv",
        "finite-volume flux divergence, float64, five quantities",
        build,
        expert,
        {"small": {"phi": (5, 14, 16, 38)}, "paper": {"phi": (5, 132, 132, 132)}},
        doubles,
    ),
)
