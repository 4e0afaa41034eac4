"""Multigrid cycles on arrays that hold the boundary."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from pantile.apps.multigrid import CYCLES, Cycle

from ..case import Array, Case

LEVELS = 4


def multigrid(cycle: Cycle, u: Array, f: Array, levels: int = LEVELS) -> Array:
    return solve(cycle, u, f, 1 / (u.shape[-1] - 1), levels - 1)


def solve(cycle: Cycle, u: Array, f: Array, h: float, level: int) -> Array:
    """One cycle from the guess `u` on a grid of spacing h."""
    if level == 0:
        return jacobi(u, f, h, cycle.coarsest)
    u = jacobi(u, f, h, cycle.before)
    if level > 1 or cycle.coarsest:
        rest = restrict(f - laplace(u, h))
        error = np.zeros_like(rest)
        for _ in range(cycle.recursions):
            error = solve(cycle, error, rest, 2 * h, level - 1)
        u = u + prolong(error)
    return jacobi(u, f, h, cycle.after)


def laplace(u: Array, h: float) -> Array:
    """-∇²u inside, 0 on the boundary."""
    result = np.zeros_like(u)
    for axis in range(u.ndim):
        result += 2 * u - np.roll(u, 1, axis) - np.roll(u, -1, axis)
    return inside(result / h**2)


def inside(a: Array) -> Array:
    """The array with a boundary of zeros."""
    return np.pad(a[(slice(1, -1),) * a.ndim], 1)


def jacobi(u: Array, f: Array, h: float, sweeps: int) -> Array:
    omega = {2: 4 / 5, 3: 8 / 9}[u.ndim]
    for _ in range(sweeps):
        u = u + omega * h**2 / (2 * u.ndim) * inside(f - laplace(u, h))
    return u


def restrict(r: Array) -> Array:
    for axis in range(r.ndim):
        r = r / 2 + np.roll(r, 1, axis) / 4 + np.roll(r, -1, axis) / 4
    return inside(r[(slice(None, None, 2),) * r.ndim])


def prolong(e: Array) -> Array:
    fine = np.zeros([2 * n - 1 for n in e.shape])
    for offset in itertools.product((-1, 0, 1), repeat=e.ndim):
        places = [np.arange(0, 2 * n - 1, 2) + k for n, k in zip(e.shape, offset, strict=True)]
        weight = 0.5 ** np.count_nonzero(offset)
        padded = np.pad(fine, 1)
        padded[np.ix_(*(p + 1 for p in places))] += weight * e
        fine = padded[(slice(1, -1),) * e.ndim]
    return fine


def case(cycle: Cycle) -> Case:
    """Cycles of many stages are tried at sizes that few compilations serve."""
    if cycle.recursions == 1:
        odd = {2: ((9, 9), (9, 17), (25, 41)), 3: ((9, 9, 9), (9, 9, 17), (17, 9, 25))}[cycle.dims]
        large = {2: (137, 265), 3: (41, 25, 73)}[cycle.dims]
    else:
        odd = {2: ((17, 17), (17, 25), (25, 17)), 3: ((17, 17, 17), (17, 25, 17), (25, 17, 25))}[cycle.dims]
        large = odd[-1]
    return Case(
        functools.partial(multigrid, cycle),
        odd=tuple({"u": shape, "f": shape} for shape in odd),
        large={"u": large, "f": large},
        tolerance=1e-12,
        slow=cycle != CYCLES[0],
    )


CASES = {cycle.name: case(cycle) for cycle in CYCLES}
