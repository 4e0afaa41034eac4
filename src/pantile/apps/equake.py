"""One time step of SPEC's equake: a sparse symmetric matrix times a vector, then updates of every node.

In the post-tiling fusion paper. Nodes have three coordinates; the stiffness matrix K is given by its blocks of 3 x 3
in and above the diagonal, row by row, the diagonal first: block e stands in row[e] and column[e], and those of row i
are start[i] .. start[i + 1].

    w_i = K_ii*v_i + sum over j > i of K_ij*v_j, and w_j += K_ij'*v_i, v being the displacements now
    w = -dt^2*w + 2*M*v - (M - dt/2*C)*before - dt^2/2*(M23*phi2 + C23*phi1 + V23*phi0)
    w = w / (M + dt/2*C), the displacements next        velocity = (w - before) / (2*dt)

phi0, phi1 and phi2 are the ground's motion: position, velocity and acceleration of an earthquake that lasts t0.

The idea of the schedule: rows of the matrix in parallel, each as long as it is; what goes to other rows, the transposed
blocks, is added up in a few vectors, one per task, so that no two tasks write to the same place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pantile as pt
from pantile.target import Target

from .app import App, Array, Shape

SIDE = 3


def build() -> pt.Pipeline:
    """The mesh, displacements before and now -> displacements next and velocity, each [node, coordinate]."""
    i, d = pt.vars("i d")
    k = pt.Input("k", "float64", ndim=3)
    start, row, column = (pt.Input(name, "int32", ndim=1) for name in ("start", "row", "column"))
    now, before, m, c, m23, c23, v23 = (
        pt.Input(name, "float64", ndim=2) for name in ("now", "before", "m", "c", "m23", "c23", "v23")
    )
    dt = pt.Param("dt", "float64", default=0.0024)
    nodes = now.shape[0]

    def node(index: pt.Input, block: Any) -> Any:
        return pt.within(index[block], 0, nodes - 1)

    blocks = pt.RDom((0, k.shape[0]), names="e")
    of_row = blocks.where((blocks.e >= start[i]) & (blocks.e < start[i + 1]))
    apart = blocks.where(row[blocks.e] != column[blocks.e])
    direct, turned = pt.Func("direct"), pt.Func("turned")
    direct[i, d] = pt.sum(sum(k[of_row.e, d, f] * now[node(column, of_row.e), f] for f in range(SIDE)), over=of_row)
    turned[i, d] = pt.cast("float64", 0)
    turned[node(column, apart.e), d] += sum(k[apart.e, f, d] * now[node(row, apart.e), f] for f in range(SIDE))

    phi0, phi1, phi2 = _ground_motion()
    pull = m23[i, d] * phi2 + c23[i, d] * phi1 + v23[i, d] * phi0
    moved = 2 * m[i, d] * now[i, d] - (m[i, d] - dt / 2 * c[i, d]) * before[i, d] - dt * dt / 2 * pull
    displaced = (moved - dt * dt * (direct[i, d] + turned[i, d])) / (m[i, d] + dt / 2 * c[i, d])
    step = pt.Func("step")
    step[i, d] = (displaced, (displaced - before[i, d]) / (2 * dt))
    return pt.Pipeline(step, shape=(nodes, SIDE), name="equake")


def _ground_motion() -> tuple[Any, ...]:
    """Position, velocity and acceleration."""
    time, t0 = pt.Param("time", "float64", default=0.12), pt.Param("t0", "float64", default=0.6)
    turn = 2 * math.pi
    angle = turn * time / t0
    ground = pt.Func("ground")
    shaking = time <= t0
    ground[()] = (
        pt.select(shaking, (angle - pt.sin(angle)) / turn, 1),
        pt.select(shaking, (1 - pt.cos(angle)) / t0, 0),
        pt.select(shaking, turn * pt.sin(angle) / (t0 * t0), 0),
    )
    return tuple(ground[()])


def expert(target: Target, cores: int) -> pt.Schedule:
    """Tasks of 512 nodes, and of 65536 blocks."""
    return pt.Schedule(
        pt.on("step").split("i", "io", "ii", 512).unroll("d").parallel("io"),
        pt.on("direct").compute_at("step", "io").unroll("d", SIDE).update().reorder("i", "r.e", "d").unroll("d", SIDE),
        pt.on("turned")
        .parallel("i", 4096)
        .unroll("d", SIDE)
        .update()
        .split("r.e", "task", "e", 65536)
        .rfactor("task", "task")
        .reorder("i", "task", "d")
        .unroll("d", SIDE)
        .parallel("i", 4096),
        pt.on("turned_task")
        .parallel("task")
        .unroll("d", SIDE)
        .update()
        .reorder("task", "e", "d")
        .unroll("d", SIDE)
        .parallel("task"),
    )


ROW = 8  # blocks in every row of the matrices we make up
BAND = 1000  # how far they are from the diagonal


def _make(name: str, shape: Shape, rng: np.random.Generator) -> Array:
    if name == "start":
        return np.arange(shape[0], dtype=np.int32) * ROW
    rows = np.arange(shape[0], dtype=np.int32) // ROW
    if name == "row":
        return rows
    if name == "column":
        away = rng.integers(1, BAND, shape, dtype=np.int32)
        away[::ROW] = 0
        return np.asarray(np.minimum(rows + away, rows[-1]), np.int32)
    return np.asarray(rng.random(shape) + 0.5)


def shapes(nodes: int) -> dict[str, tuple[int, ...]]:
    """Of a mesh with so many nodes."""
    blocks = {"k": (ROW * nodes, SIDE, SIDE), "start": (nodes + 1,), "row": (ROW * nodes,), "column": (ROW * nodes,)}
    return {**blocks, **dict.fromkeys(("now", "before", "m", "c", "m23", "c23", "v23"), (nodes, SIDE))}


APPS = (
    App(
        "equake",
        "sparse matrix by vector and node updates, float64",
        build,
        expert,
        {"small": shapes(300), "paper": shapes(30169)},
        _make,
    ),
)
