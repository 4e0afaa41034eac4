"""posttile: what `explain` says of tiles is what the loops compute, counted by going through the loops.

The numbers are not pinned: they are read from the report, and from the loop nest that its schedule becomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import Found, PostTile
from pantile.machine import named
from tests.lower.lowered import lowered, produced

from .problems import problem_of

BROADWELL = named("broadwell-e5-2683-v4")
SAID = re.compile(r"extension schedule of (\w+): (.*?) per tile(.*)")
Elements = list[set[tuple[int, ...]]]


@dataclass(frozen=True)
class Case:
    """A pipeline of one input, sizes and tiles."""

    make: Callable[[], pt.Pipeline]
    img: tuple[int, ...]
    tiles: tuple[int, ...]
    limited: bool = True

    def found(self) -> Found:
        limits = {} if self.limited else dict.fromkeys(("most_recomputed", "most_recomputed_of_one"), 1e9)
        return PostTile(tile_sizes=self.tiles, **limits).find(problem_of(self.make(), BROADWELL, img=self.img))

    def computed(self, found: Found) -> dict[str, Elements]:
        """By stage, for every time that it is computed."""
        loops = lowered(self.make().with_schedule(found.schedule))["clean"]
        return produced(loops, {f"img.shape.{k}": n for k, n in enumerate(self.img)})


def funcs(names: str) -> list[pt.Func]:
    return [pt.Func(n) for n in names.split()]


def blurred() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    across, out = funcs("across out")
    across[y, x] = img[y, x] + img[y, x + 1] + img[y, x + 2]
    out[y, x] = across[y, x] + across[y + 1, x] + across[y + 2, x]
    return pt.Pipeline(out, shape=(img.shape[0] - 2, img.shape[1] - 2))


def crosses() -> pt.Pipeline:
    """5-point stencils, the second of which needs a diamond of what the first reads, and clamps at the edges."""
    y, x = pt.vars("y x")
    f: object = pt.edge(pt.Input("img", "float32", ndim=2))
    for g in funcs("first second third"):
        g[y, x] = f[y, x] + f[y - 1, x] + f[y + 1, x] + f[y, x - 1] + f[y, x + 1]
        f = g
    return pt.Pipeline(f, shape=(96, 96))


def read_by(of: Callable[..., object], shape: tuple[int, ...]) -> Callable[[], pt.Pipeline]:
    """out[...] = of(f, ...), and f[...] = sqrt(img[...]) + 1."""

    def make() -> pt.Pipeline:
        dims = pt.vars("y x"[-len(shape) * 2 + 1 :])
        img = pt.Input("img", "float32", ndim=len(shape))
        f, out = funcs("f out")
        f[dims] = pt.sqrt(img[dims]) + 1
        out[dims] = of(f, *dims)
        return pt.Pipeline(out, shape=shape)

    return make


def two_live_outs() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    start, op0, op1, op2 = funcs("start op0 op1 op2")
    start[y, x] = pt.sqrt(img[y, x])
    op0[y, x] = start[y, x] + start[y, x + 1]
    op1[y, x] = op0[y, x] + op0[y + 1, x]
    op2[y, x] = op0[y + 100, x] * op0[y + 101, x]
    return pt.Pipeline([op1, op2], shape=[(64, 64), (64, 64)])


def scanned() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    r = pt.RDom((1, 63), names="y")
    total, out = funcs("total out")
    total[y, x] = img[y, x]
    total[r.y, x] = total[r.y - 1, x] + img[r.y, x]
    out[x] = total[63, x] + total[63, x + 1]
    return pt.Pipeline(out, shape=(63,))


DOWN = read_by(lambda f, y, x: f[2 * y, 2 * x] + f[2 * y + 1, 2 * x + 1], (64, 64))
FOURTH = read_by(lambda f, x: f[4 * x] + f[4 * x + 1], (128,))
FOURTH_ROW = read_by(lambda f, y, x: f[4 * y, x] + f[4 * y, x + 1], (32, 64))
UP = read_by(lambda f, y, x: f[y // 2, x // 2] + f[y // 2 + 1, x // 2 + 1], (64, 64))
TRANSPOSED = read_by(lambda f, y, x: f[x, y] + f[x + 1, y], (64, 96))
TRIANGLE = read_by(lambda f, y, x: pt.select(x <= y, f[y, x] + f[y, x + 1], 0.0), (64, 64))
CONDITION = read_by(lambda f, x: pt.select(x < 64, f[x] + f[x + 1], f[x + 100] + f[x + 101]), (128,))
QUOTIENT = read_by(lambda f, x: f[x + x // 64 * 100] + f[x + x // 64 * 100 + 1], (128,))
FAR = read_by(lambda f, x: f[x] + f[x + 1] + f[x + 1000] + f[x + 1001], (256,))
EVERYWHERE = read_by(lambda f, x: f[x] + f[x + 1000], (2048,))

CASES = {
    "stencil": Case(blurred, (66, 130), (16, 32)),
    "stencil, last tiles not whole": Case(blurred, (61, 117), (16, 32)),
    "diamonds": Case(crosses, (96, 96), (16, 32), limited=False),
    "downsampled": Case(DOWN, (128, 128), (16, 16)),
    "every fourth": Case(FOURTH, (510,), (16,), limited=False),
    "every fourth in rows": Case(FOURTH_ROW, (125, 65), (8, 16), limited=False),
    "upsampled": Case(UP, (33, 33), (16, 16), limited=False),
    "transposed": Case(TRANSPOSED, (97, 64), (16, 32)),
    "triangle": Case(TRIANGLE, (64, 65), (16, 16)),
    "halves by a condition": Case(CONDITION, (229,), (16,)),
    "halves by a quotient": Case(QUOTIENT, (229,), (16,)),
    "far apart": Case(FAR, (1257,), (32,)),
    "apart, but both everywhere": Case(EVERYWHERE, (3048,), (64,), limited=False),
    "two live-outs": Case(two_live_outs, (166, 65), (16, 32)),
    "scan": Case(scanned, (64, 64), (16,), limited=False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tiles_compute_what_is_said(case: Case) -> None:
    found = case.found()
    computed = case.computed(found)
    said = [SAID.fullmatch(r) for g in found.report.groups for r in g.remarks]
    assert any(said)
    for line in filter(None, said):
        name, extents, more = line.groups()
        box = [int(part.split()[-1]) for part in extents.split(" x ")]
        assert max(len(elements) for elements in computed[name]) == prod(box)
        assert [max(map(len, sides)) for sides in zip(*map(_sides, filter(None, computed[name])), strict=True)] == box
        total, points = sum(map(len, computed[name])), len(set().union(*computed[name]))
        if times := re.search(r"([\d.]+) times in all", more):
            assert float(times[1]) == pytest.approx(total / points, rel=0.01)
        if dead := re.search(r"at least (\d+) points that no tile needs", more):
            whole = prod(b - a for a, b in _bounds(set().union(*computed[name])))
            assert int(dead[1]) <= whole - points
        if needed := re.search(r"at most (\d+) points that it needs", more):
            assert int(needed[1]) < prod(box)


@pytest.mark.parametrize("which", ["halves by a condition", "halves by a quotient"])
def test_dead_instances_are_not_computed(which: str) -> None:
    """§IV-C: tiles need a strict subset of the box of f, which is 0..228, and the loops compute no other point."""
    case = CASES[which]
    computed = case.computed(case.found())
    points = set().union(*(elements for name in ("f", "f_2") for elements in computed.get(name, [])))
    needed = {(x,) for low in (0, 164) for x in range(low, low + 65)}
    assert points == needed if which == "halves by a condition" else needed <= points <= needed | {(64,), (228,)}
    # Under limits that fuse nothing, copies do it.
    alone = PostTile(tile_sizes=(16,), most_stored=0).find(problem_of(case.make(), BROADWELL, img=case.img))
    assert all(not g.members for g in alone.report.groups)
    if which == "halves by a condition":
        at_root = case.computed(alone)
        assert {*at_root["f"][0], *at_root["f_2"][0]} == needed


def test_disjoint_parts_are_fused_with_each_live_out() -> None:
    """Algorithm 3, Figure 6(b): nothing is computed for the other live-out, nor between their parts."""
    case = CASES["two live-outs"]
    found = case.found()
    assert [{*g.members, g.output} for g in found.report.groups] == [
        {"start_2", "op0_2", "op1"},
        {"start", "op0", "op2"},
    ]
    computed = case.computed(found)
    rows = [{y for elements in computed[name] for y, _ in elements} for name in ("op0_2", "op0")]
    assert rows == [set(range(65)), set(range(100, 165))]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values(case: Case) -> None:
    p = case.make()
    picture = np.random.default_rng(0).random(case.img, dtype=np.float32)
    results, expected = p.with_schedule(case.found().schedule)(img=picture), p.reference(img=picture)
    for mine, theirs in zip(np.atleast_2d(results), np.atleast_2d(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4)


def _bounds(elements: set[tuple[int, ...]]) -> list[tuple[int, int]]:
    return [(min(side), max(side) + 1) for side in zip(*elements, strict=True)] if elements else []


def _sides(elements: set[tuple[int, ...]]) -> list[set[int]]:
    """The coordinates along each dim."""
    return [set(side) for side in zip(*elements, strict=True)]
