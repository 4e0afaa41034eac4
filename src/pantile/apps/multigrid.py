"""Multigrid cycles for -∇²u = f, with differences of second order on vertex grids (benchmarks of PolyMage).

The grid has N + 2 points along each of two or three axes, the first and last of which are the boundary; the next
coarser one has every other of them. A cycle smooths its guess of u by weighted Jacobi sweeps, restricts the residual to
the coarser grid, finds a correction there in the same way, adds it, and smooths again.

The idea of the schedule: sweeps stream through memory, row after row. On the large grids the residual is not stored:
its rows slide along with those of its restriction; nor is the corrected guess, which slides along with the first sweep
after it. Sweeps are not fused with each other: in strips whose rows slide they were slower when measured.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import App, doubles

LEVELS = 4
WEIGHT = {2: 4 / 5, 3: 8 / 9}  # of a Jacobi sweep, by the number of dimensions


@dataclass(frozen=True)
class Cycle:
    """Dimensions; recursions per level (1: V, 2: W); sweeps before correcting, at the coarsest level, and after."""

    dims: int
    recursions: int
    before: int
    coarsest: int
    after: int

    @property
    def name(self) -> str:
        letter = {1: "v", 2: "w"}[self.recursions]
        return f"multigrid_{self.dims}d_{letter}{self.before}{self.coarsest}{self.after}"


def build(cycle: Cycle, levels: int = LEVELS) -> pt.Pipeline:
    """One cycle: u, f -> u, all of N + 2 points along each axis, N + 1 a multiple of 2 ** (levels - 1)."""
    u = pt.Input("u", "float64", ndim=cycle.dims)
    f = pt.Input("f", "float64", ndim=cycle.dims)
    finest = _Grid(cycle, levels - 1, tuple(n - 1 for n in u.shape), defaultdict(itertools.count))
    return pt.Pipeline(finest.solve(pt.edge(u), pt.edge(f)), shape=u.shape, name=cycle.name)


class _Grid:
    """The grid of one level: points 0 .. last along each axis, 1/last apart.

    Sweeps are defined everywhere and read each other without conditions, so that one can slide behind another. Beyond
    the boundary the first sees the edge repeated, and nothing there reaches the inside.
    """

    def __init__(self, cycle: Cycle, level: int, last: tuple[Any, ...], numbers: dict[str, Iterator[int]]) -> None:
        self.cycle, self.level, self.last, self.numbers = cycle, level, last, numbers
        self.at = pt.vars("z y x")[-cycle.dims :]
        inside = functools.reduce(operator.and_, ((i > 0) & (i < n) for i, n in zip(self.at, last, strict=True)))
        self.inside = pt.cast("float64", inside)  # 0 on the boundary, else 1
        self.inverse_square = pt.cast("float64", last[-1]) * pt.cast("float64", last[-1])  # of the distance

    def solve(self, u: pt.Func | None, f: pt.Func) -> Any:
        """A better u; `u` is None for zero everywhere."""
        if self.level == 0:
            return self.smoothed(u, f, self.cycle.coarsest)
        u = self.smoothed(u, f, self.cycle.before)
        if self.level > 1 or self.cycle.coarsest:
            u = self.smoothed(self.corrected(pt.edge(u), f), f, self.cycle.after)
        return u

    def smoothed(self, u: Any, f: pt.Func, sweeps: int) -> Any:
        """u after some Jacobi sweeps; the boundary stays."""
        weight = WEIGHT[self.cycle.dims] / (2 * self.cycle.dims) * self.inside
        for left in reversed(range(sweeps)):
            v = self.func("smooth", clipped=not left)
            source = 1 / self.inverse_square * f[self.at]
            if u is None:
                v[self.at] = weight * source
            else:
                v[self.at] = u[self.at] + weight * (source - self.difference(u))
            u = v
        return u

    def corrected(self, u: Any, f: Any) -> pt.Func:
        """u and what the coarser grid makes of its residual."""
        residual, v = self.func("residual"), self.func("corrected", clipped=not self.cycle.after)
        residual[self.at] = f[self.at] - self.inverse_square * self.difference(u)
        coarse = _Grid(self.cycle, self.level - 1, tuple(n // 2 for n in self.last), self.numbers)
        rest = pt.edge(coarse.restricted(residual))
        error: Any = None
        for _ in range(self.cycle.recursions):
            error = pt.edge(coarse.solve(error, rest))
        halves = itertools.product(*((i // 2, (i + 1) // 2) for i in self.at))  # the same one twice where i is even
        v[self.at] = u[self.at] + _sum(error[p] for p in halves) / 2**self.cycle.dims
        return v

    def restricted(self, fine: pt.Func) -> pt.Func:
        """Full weighting, 1/4, 1/2, 1/4 along each axis; zero on the boundary."""
        v = self.func("restricted", clipped=True)
        taps = itertools.product((-1, 0, 1), repeat=self.cycle.dims)
        v[self.at] = self.inside * _sum(self.tap(fine, offsets) for offsets in taps)
        return v

    def tap(self, fine: pt.Func, offsets: tuple[int, ...]) -> Any:
        place = tuple(2 * i + k for i, k in zip(self.at, offsets, strict=True))
        return fine[place] * 0.5 ** (self.cycle.dims + sum(map(abs, offsets)))

    def difference(self, u: Any) -> Any:
        """u once for each neighbour, less its neighbours: -∇²u but for the distance."""
        around = [
            tuple(i + k if axis == moved else i for axis, i in enumerate(self.at))
            for moved, k in itertools.product(range(self.cycle.dims), (-1, 1))
        ]
        return len(around) * u[self.at] - _sum(u[place] for place in around)

    def func(self, what: str, *, clipped: bool = False) -> pt.Func:
        """A function named by what it is, the level, and a number; of this grid's points alone if clipped."""
        kind = f"{what}_{self.level}"
        points = [(0, n + 1) for n in self.last]
        return pt.Func(f"{kind}_{next(self.numbers[kind])}", domain=points if clipped else None)


def _sum(terms: Iterable[Any]) -> Any:
    return functools.reduce(operator.add, terms)


def expert(cycle: Cycle, target: Target, cores: int, levels: int = LEVELS) -> pt.Schedule:
    """Strips of rows on the two finest grids of V-cycles in two dimensions; all else as the default does."""
    block = 4 * target.lanes(64)
    if cycle.dims == 3 or cycle.recursions > 1:
        return pt.Schedule()
    stages: list[pt.StageSchedule] = []

    def in_strips(name: str, behind: str) -> None:
        stages.append(pt.on(name).split("y", "strip", "yi", 32).vectorize("x", block).parallel("strip"))
        stages.append(pt.on(behind).store_at(name, "strip").compute_at(name, "yi").vectorize("x", block))

    for level in (levels - 1, levels - 2):
        in_strips(f"restricted_{level - 1}_0", f"residual_{level}_0")
        if cycle.after:
            in_strips(f"smooth_{level}_{cycle.before}", f"corrected_{level}_0")
    return pt.Schedule(*stages)


def _app(cycle: Cycle) -> App:
    extents = {"small": {2: 25, 3: 17}, "paper": {2: 8193, 3: 257}}
    shapes = {size: (n[cycle.dims],) * cycle.dims for size, n in extents.items()}
    kind = {1: "V", 2: "W"}[cycle.recursions]
    return App(
        cycle.name,
        f"Poisson multigrid, float64, {cycle.dims}-D {kind}-cycle {cycle.before}-{cycle.coarsest}-{cycle.after}",
        functools.partial(build, cycle),
        functools.partial(expert, cycle),
        {size: {"u": shape, "f": shape} for size, shape in shapes.items()},
        doubles,
    )


CYCLES = tuple(
    Cycle(dims, recursions, *sweeps) for dims in (2, 3) for recursions in (1, 2) for sweeps in ((4, 4, 4), (10, 0, 0))
)
APPS = tuple(map(_app, CYCLES))
