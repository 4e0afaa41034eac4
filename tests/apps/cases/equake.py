"""The matrix in full, symmetric; then the formula of one time step."""

from __future__ import annotations

import numpy as np

from pantile.apps.equake import shapes

from ..case import Array, Case

DT, TIME, T0 = 0.0024, 0.12, 0.6


def equake(
    k: Array, start: Array, row: Array, column: Array,
    now: Array, before: Array, m: Array, c: Array, m23: Array, c23: Array, v23: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Blocks may stand at the same place: they add up."""
    force = np.zeros_like(now)
    np.add.at(force, row, np.einsum("edf,ef->ed", k, now[column]))
    off = row != column
    np.add.at(force, column[off], np.einsum("efd,ef->ed", k[off], now[row[off]]))
    angle = 2 * np.pi * TIME / T0
    position, velocity = (angle - np.sin(angle)) / (2 * np.pi), (1 - np.cos(angle)) / T0
    acceleration = 2 * np.pi * np.sin(angle) / T0**2
    pull = m23 * acceleration + c23 * velocity + v23 * position
    displaced = -(DT**2) * force + 2 * m * now - (m - DT / 2 * c) * before - DT**2 / 2 * pull
    displaced /= m + DT / 2 * c
    return displaced, (displaced - before) / (2 * DT)


CASES = {"equake": Case(equake, odd=(shapes(1), shapes(7), shapes(67)), large=shapes(1543), tolerance=1e-9)}
