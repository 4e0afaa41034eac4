"""What polymage-plus says of its algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from math import ceil, inf
from random import Random
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule import Dp, Report
from pantile.autoschedule.common.marking import PLAIN
from pantile.autoschedule.common.tiles import TiledGroup as TileGroup
from pantile.autoschedule.common.tiles import scheduled
from pantile.autoschedule.dp import VARIANTS
from pantile.autoschedule.fusion.alignment import StageGraph
from pantile.autoschedule.fusion.bounded_grouping import MOST_MERGED, greedily, grouped
from pantile.autoschedule.fusion.dag import Dag, Group, size, vertices
from pantile.autoschedule.fusion.dp_machines import TileLimits
from pantile.autoschedule.fusion.grouping import DpGrouping
from pantile.autoschedule.fusion.loop_fusion import parallelograms
from pantile.autoschedule.fusion.tile_model import TileModel
from pantile.machine import named

from .problems import HASWELL, chain, problem_of


def harris() -> pt.Pipeline:
    """The eleven stages of PolyMage's Harris corners; `pantile.apps` has them as three stages of several values."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    names = "ix iy ixx iyy ixy sxx syy sxy det trace out"
    ix, iy, ixx, iyy, ixy, sxx, syy, sxy, det, trace, out = (pt.Func(n) for n in names.split())

    def difference(ahead: Any, behind: Any) -> Any:
        return sum((ahead(k) - behind(k)) * (2 - abs(k)) / 12 for k in (-1, 0, 1))

    ix[y, x] = difference(lambda k: img[y + 1, x + k], lambda k: img[y - 1, x + k])
    iy[y, x] = difference(lambda k: img[y + k, x + 1], lambda k: img[y + k, x - 1])
    for product, a, b, total in ((ixx, ix, ix, sxx), (iyy, iy, iy, syy), (ixy, ix, iy, sxy)):
        product[y, x] = a[y, x] * b[y, x]
        total[y, x] = sum(product[y + i, x + j] for i in (-1, 0, 1) for j in (-1, 0, 1))
    det[y, x] = sxx[y, x] * syy[y, x] - sxy[y, x] * sxy[y, x]
    trace[y, x] = sxx[y, x] + syy[y, x]
    out[y, x] = det[y, x] - 0.04 * trace[y, x] * trace[y, x]
    inner = pt.Func("inner")
    inner[y, x] = out[y + 2, x + 2]
    return pt.Pipeline(inner, shape=(img.shape[0] - 4, img.shape[1] - 4))


HARRIS_SIZE = (2832 + 4, 4256 + 4)
UNSHARP_SIZE = (3, 2832 + 4, 4256 + 4)


def report(pipeline: pt.Pipeline, strategy: Dp, **shapes: tuple[int, ...]) -> Report:
    return strategy.find(problem_of(pipeline, HASWELL, **shapes)).report


class Anything:
    """A model that lets every set be a group."""

    def cost(self, group: Group) -> float:
        return 1.0

    def is_hopeless(self, group: Group) -> bool:
        return False


def chain_dag(count: int) -> Dag:
    return Dag.of(count, pairwise(range(count)))


# ---- Algorithms 1 and 5


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_states_of_a_chain(count: int) -> None:
    """§3.3: |V| (|V| + 1) / 2."""
    found = grouped(chain_dag(count), Anything())
    assert found.states == count * (count + 1) // 2
    assert found.groups == ((1 << count) - 1,)
    assert found.limits == (None,)


def test_states_of_a_chain_of_stages() -> None:
    assert report(chain(7), Dp(), img=(1000, 1000)).counts["states explored"] == 7 * 8 // 2


def test_states_of_unsharp() -> None:
    """Table 1: 10. Its last stage and the crop of it count as one."""
    found = report(APPS["unsharp_polymage"].build(), Dp(), img=UNSHARP_SIZE)
    assert found.counts == {"states explored": 10, "stages": 4}


def test_states_of_harris() -> None:
    """Table 1: 104. Algorithm 1 as it is printed, which is what runs, has 1080: its states are sets of groups, one for
    each part of a partition of the successors. 104 are the single groups, if each successor goes on by itself.
    """
    stages = StageGraph(_small(harris(), img=HARRIS_SIZE))
    assert len(stages.names) == 11
    assert report(harris(), Dp(), img=HARRIS_SIZE).counts == {"states explored": 1080, "stages": 11}
    assert len(_single_groups(stages)) == 104


def _single_groups(stages: StageGraph) -> set[Group]:
    """All groups that begin with one stage and grow by one successor after the other (lines 7-16 for one group), also
    from the source before the two gradients."""
    dag, source = stages.dag.with_source(), 1 << stages.dag.count
    found: set[Group] = set()
    pending = [source]
    while pending:
        group = pending.pop()
        if group not in found:
            found.add(group)
            below = dag.below(group)
            larger = [group | 1 << s for s in vertices(dag.after(group)) if not dag.predecessors[s] & below]
            pending += [g for g in larger if not stages.is_hopeless(g & ~source)]
            pending += [1 << s for s in vertices(dag.after(group))]
    return found


# Stages and groupings enumerated (without limit) of Table 1, which must not be mistaken for ours: those of our apps,
# which have other stages, only show when they change. Harris in eleven stages is above.
TABLE_1 = {
    "unsharp_polymage": ((4, 10), (4, 10)),
    "harris_polymage": ((11, 104), (3, 6)),  # a chain: stages of several values, and the response inlined as a crop
    "bilateral_grid_polymage": ((7, 16), (9, 22)),  # where pixels fall, and rows read back, are stages of their own
    "interpolate_polymage": ((49, 741), (47, 1128)),  # as many as a chain of 47 has; the paper's, as one of 38
    "camera_pipe_polymage": ((32, 12_227), (10, 312)),  # planes of the mosaic are values of a stage, not stages
}


@pytest.mark.parametrize("name", TABLE_1)
def test_table_1(name: str) -> None:
    found = _of_app(name).counts
    assert (found["stages"], found["states explored"]) == TABLE_1[name][1]


def test_pyramids_are_merged_greedily() -> None:
    """Table 1: 27,108 groupings of 44 stages; of our 46 there are more than 2000 even with groups of four stages."""
    found = _of_app("pyramid_blend_polymage")
    assert set(found.counts) == {"merges evaluated", "stages"}
    assert f"more than 2000 states: groups were merged greedily, up to {MOST_MERGED} stages" in found.remarks


def test_no_cycles() -> None:
    """Lines 9-13: of a -> b -> c and a -> c, a and c alone are not grouped."""

    class NotB(Anything):
        def cost(self, group: Group) -> float:
            return inf if group.bit_count() > 1 and group & 0b010 else 10.0 - group.bit_count()

    found = grouped(Dag.of(3, [(0, 1), (1, 2), (0, 2)]), NotB())
    assert found.groups == (0b001, 0b010, 0b100)


def assert_acyclic(dag: Dag) -> None:
    TopologicalSorter({v: list(vertices(after)) for v, after in enumerate(dag.successors)}).prepare()


def test_groups_do_not_need_each_other() -> None:
    """b and c are read by both x and y: {b, x} and {c, y} would wait for each other."""

    class Pairs(Anything):
        def cost(self, group: Group) -> float:
            return inf if group.bit_count() > 2 else 1.0

    dag = Dag.of(5, [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (2, 4)])
    found = grouped(dag, Pairs())
    assert_acyclic(dag.contracted(found.groups))
    assert sorted(v for g in found.groups for v in vertices(g)) == list(range(5))


class Sums(Anything):
    """Counts how often a vertex is paid for; larger groups are cheaper."""

    def cost(self, group: Group) -> float:
        return size(group) - (1 - 0.5 ** (size(group) - 1))


def random_dag(count: int, seed: int) -> Dag:
    draw = Random(seed)
    reads = [draw.sample(range(b), min(b, draw.choice((1, 1, 2)))) for b in range(count)]
    return Dag.of(count, [(a, b) for b, before in enumerate(reads) for a in before])


@pytest.mark.parametrize("limit", [None, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_every_stage_counts_once(seed: int, limit: int | None) -> None:
    """T[G] is what the groups that are returned cost: no stage is in two of them, none is left out."""
    dag = random_dag(8, seed)
    table = DpGrouping(dag, Sums(), limit)
    groups = table.best()
    assert sum(groups) == (1 << 8) - 1
    assert all(not a & b for k, a in enumerate(groups) for b in groups[:k])
    assert table.solution.cost == pytest.approx(sum(map(Sums().cost, groups)))
    assert limit is None or max(map(size, groups)) <= limit
    assert_acyclic(dag.contracted(groups))


def test_shared_descendants_count_once() -> None:
    """A diamond of which nothing can be merged: d is read by b and c, and paid for once."""

    class Apart(Anything):
        def is_hopeless(self, group: Group) -> bool:
            return size(group) > 1

    table = DpGrouping(Dag.of(4, [(0, 1), (0, 2), (1, 3), (2, 3)]), Apart())
    assert table.best() == (0b0001, 0b0010, 0b0100, 0b1000)
    assert table.solution.cost == 4.0


def test_a_group_limit_is_algorithm_5() -> None:
    """With the partitions of Algorithm 1: two successors of one stage can be grouped without it."""

    class Siblings(Anything):
        def cost(self, group: Group) -> float:
            return 0.0 if group == 0b0110 else 10.0 * size(group)

    dag = Dag.of(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    found = grouped(dag, Siblings(), limit=2)
    assert 0b0110 in found.groups
    assert found.limits == (2, None)


def test_rounds_of_algorithm_5() -> None:
    """Fewer states; no group of more parts than were allowed in a round."""
    bounded = grouped(chain_dag(20), Anything(), limit=4, step=2)
    assert bounded.groups == ((1 << 20) - 1,)
    assert bounded.limits == (4, 2, 2, 2)  # 4 * 2 * 2 * 2 >= 20
    assert bounded.states == (20 * 4 - 6) + (5 * 2 - 1) + (3 * 2 - 1) + (2 * 2 - 1)
    assert grouped(chain_dag(20), Anything(), limit=4).limits == (4, None)


def test_too_many_states() -> None:
    """Limits are tried until a round is small enough; if none is, groups are merged greedily, and that is said."""
    long = grouped(chain_dag(200), Anything(), most_states=1000)
    assert long.limits == (4, 16, None)
    assert long.groups == ((1 << 200) - 1,)
    assert long.states == (200 * 4 - 6) + (50 * 16 - 120) + 4 * 5 // 2
    wide = Dag.of(21, [(k, 20) for k in range(20)])
    found = grouped(wide, Anything(), most_states=100)
    assert (found.limits, found.states) == ((), 0)
    assert found.merges == greedily(wide, Anything()).merges
    assert grouped(wide, Anything(), limit=2, most_states=100).merges is not None


def test_too_many_states_cost_nothing() -> None:
    """That there are too many is found out before any cost."""

    class Free(Anything):
        def cost(self, group: Group) -> float:
            raise AssertionError

    assert not DpGrouping(chain_dag(100), Free(), None, 1000).is_small


@pytest.mark.parametrize(("limit", "states"), [(None, 703), (32, 688), (16, 472), (8, 268)])
def test_states_of_a_v_cycle(limit: int | None, states: int) -> None:
    """Table 9, Jacobi3D-V-4-4-4, in the first round."""
    app = APPS["multigrid_3d_v444"]
    problem = problem_of(app.build(), HASWELL, **app.sizes["paper"])
    stages = StageGraph(problem.inlined(problem.facts.trivial))
    assert (stages.dag.count, len(DpGrouping(stages.dag, Anything(), limit).states)) == (37, states)


def test_greedy_merges_what_saves_most() -> None:
    class Costs(Anything):
        def cost(self, group: Group) -> float:
            return {0b001: 5.0, 0b010: 5.0, 0b100: 5.0, 0b011: 9.0, 0b110: 7.0}.get(group, 20.0)

    found = greedily(chain_dag(3), Costs())
    assert found.groups == (0b001, 0b110)
    assert found.merges == 3  # {0, 1} and {1, 2}, then {0} with {1, 2}


def test_what_is_said_of_greedy_merging() -> None:
    """It is not Algorithm 1 nor 5, whether it was asked for or not."""
    asked = report(harris(), Dp(fusion="greedy"), img=HARRIS_SIZE)
    assert asked.remarks == (f"groups were merged greedily, up to {MOST_MERGED} stages",)
    assert "states explored" not in asked.counts
    needed = report(harris(), Dp(most_states=10), img=HARRIS_SIZE)
    assert needed.remarks == (f"more than 10 states: groups were merged greedily, up to {MOST_MERGED} stages",)
    assert needed.counts == asked.counts
    bounded = report(chain(7), Dp(group_limit=2, step=2), img=(1000, 1000))
    assert bounded.remarks[0].startswith("Algorithm 5: groups of at most 2 stages")
    assert report(harris(), Dp(), img=HARRIS_SIZE).remarks == ()


# ---- Algorithms 2 to 4, on the Haswell machine


def test_tiles_of_unsharp() -> None:
    """Table 6: tiles of 5 x 256 for L1, three channels at once."""
    found = report(APPS["unsharp_polymage"].build(), Dp(), img=UNSHARP_SIZE)
    (group,) = found.groups
    assert group.levels == ({"y": 5, "x": 256},)
    assert group.members == ("blur_y",)


def test_tiles_of_harris() -> None:
    """Table 7: 42 x 5 x 256, that is, six buffers: with pointwise stages inlined and others not."""
    (group,) = report(harris(), Dp(inlining="pointwise"), img=HARRIS_SIZE).groups
    assert group.levels == ({"y": 42, "x": 256}, {"y": 5})
    assert len(group.members) == 5
    (single,) = report(harris(), Dp(inlining="pointwise", multi_level=False), img=HARRIS_SIZE).groups
    assert single.levels == ({"y": 42, "x": 256},)


def test_inlining_of_harris() -> None:
    """§7.4.3: "reduce the number of groups from 11 to 3"."""
    (group,) = report(harris(), Dp(), img=HARRIS_SIZE).groups
    assert set(group.members) == {"ix", "iy"}
    (none,) = report(harris(), Dp(inlining="none"), img=HARRIS_SIZE).groups
    assert len(none.members) == 10


def test_stencils_do_not_repeat_much() -> None:
    """Not in the paper: a pointwise stage of several operations, such as a gray of three channels, is not inlined where
    it would be computed for every tap."""
    found = _of_app("harris")
    assert "gray" not in found.inlined
    assert any("gray" in g.members for g in found.groups)


# ---- what is printed, and what is scaled


def two_stencils() -> pt.Pipeline:
    """b sums three rows of a, which sums three rows of img; 1000 x 1024 of b are asked for."""
    y, x = pt.vars("y x")
    img, a, b = pt.Input("img", "float32", ndim=2), pt.Func("a"), pt.Func("b")
    a[y, x] = img[y, x] + img[y + 1, x] + img[y + 2, x]
    b[y, x] = a[y, x] + a[y + 1, x] + a[y + 2, x]
    return pt.Pipeline(b, shape=(img.shape[0] - 4, img.shape[1]))


def model_of(pipeline: pt.Pipeline, terms: str, inlining: str, **shapes: tuple[int, ...]) -> TileModel:
    """On 16 cores with 32 KB of L1 and 256 KB of L2 each, with the weights of the Xeon."""
    limits = TileLimits(32 << 10, 256 << 10, 16)
    return TileModel(StageGraph(_small(pipeline, **shapes)), limits, inlining=inlining, terms=terms)


def test_terms_as_printed() -> None:
    """Algorithm 2 by hand. Two buffers of 4 bytes in 32 KB, rows of 256: tiles of 16 x 256."""
    found = model_of(two_stencils(), "printed", "none", img=(1004, 1024)).costed(0b11)
    assert found.levels == ({"y": 16, "x": 256},)
    tile = 16 * 256 * 4
    live_in, live_out, computed = tile + 4 * 256 * 4, tile, 2 * tile  # lines 15-17
    tiles = ceil((1002 + 1000) * 1024 * 4 / 32768)  # line 18
    assert tiles == 251
    assert found.terms == pytest.approx(
        {
            "w1 live data / computation": 1.0 * (live_in + live_out) / computed,
            "w2 cleanup tiles": -100.0 * ((251 + 16 - 1) % 16),
            "w3 overlap": 46_875 * (2 * 256 * 4) / 32768,  # two more rows of a
            "w4 dim sizes": 1.5 * 1.0,  # 1002 and 1000 rows
        }
    )


def test_terms_as_scaled() -> None:
    """The first over all live data, the second over the cores; the others are the same."""
    both = (model_of(two_stencils(), terms, "none", img=(1004, 1024)) for terms in ("printed", "scaled"))
    printed, scaled = (model.costed(0b11) for model in both)
    assert scaled.terms["w1 live data / computation"] == pytest.approx((1004 + 1000) * 1024 * 4 / 32768)
    assert scaled.terms["w2 cleanup tiles"] == printed.terms["w2 cleanup tiles"] / 16
    assert {k: v for k, v in scaled.terms.items() if k[:2] in ("w3", "w4")} == {
        k: v for k, v in printed.terms.items() if k[:2] in ("w3", "w4")
    }


def test_what_overlap_is_compared_with() -> None:
    """Line 5. Harris corners in six buffers overlap in L1 by more than one of them, and less than all."""
    everything = (1 << 11) - 1
    for terms, levels in (("printed", [5]), ("scaled", [42, 5])):
        found = model_of(harris(), terms, "pointwise", img=HARRIS_SIZE).costed(everything)
        assert [level["y"] for level in found.levels] == levels


def test_why_terms_are_scaled() -> None:
    """Tables 6 and 7 have unsharp mask and Harris corners as one group each; as printed, nothing is grouped."""
    assert len(report(APPS["unsharp_polymage"].build(), Dp(terms="printed"), img=UNSHARP_SIZE).groups) == 4
    assert len(report(harris(), Dp(terms="printed"), img=HARRIS_SIZE).groups) == 11
    assert VARIANTS["dp-printed"] == Dp(terms="printed")


def test_numbers_of_machines() -> None:
    """Table 2 and §7.1; given ones count."""
    chosen = {
        m: Dp(w4=3.0).find(problem_of(chain(2), named(m), img=(500, 500))).report.parameters
        for m in ("haswell-e5-2630-v3", "opteron-6386-se", "neoverse-n1")
    }
    assert [p["w1"] for p in chosen.values()] == [1.0, 0.3, 2.0]
    assert [p["innermost_tile_size"] for p in chosen.values()] == [256, 128, 512]
    assert {p["w4"] for p in chosen.values()} == {3.0}


def test_variants_by_name() -> None:
    """§7.4.3: +F shares loops, +M has parallelograms, +I inlines."""
    found = {name: harris().with_schedule(name, estimates={"img": HARRIS_SIZE}, machine=HASWELL) for name in VARIANTS}
    schedules = {name: str(p.schedule) for name, p in found.items()}
    assert [name for name, text in schedules.items() if "compute_with" in text] == ["dp-base+F"]
    assert [name for name, text in schedules.items() if "store_at" in text] == ["dp-base+M"]
    assert [name for name, p in found.items() if "sxx" in p.explain().split("inlined: ")[1].splitlines()[0]] == [
        "dp-base+I",
        "dp-greedy",
    ]


def test_terms_add_up() -> None:
    (group,) = report(harris(), Dp(), img=HARRIS_SIZE).groups
    terms = {k: v for k, v in group.costs.items() if k != "cost"}
    assert [k.split()[0] for k in terms] == ["w1", "w2", "w3", "w4"]
    assert sum(terms.values()) == pytest.approx(group.costs["cost"])
    (heavier,) = report(harris(), Dp(w1=2.0), img=HARRIS_SIZE).groups
    assert heavier.costs["w1 live data / computation"] == pytest.approx(2 * terms["w1 live data / computation"])


def test_stages_at_two_resolutions() -> None:
    """Scaling: a stage that is read at every other point has four times the points in a tile."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    fine, coarse = pt.Func("fine"), pt.Func("coarse")
    fine[y, x] = img[y, x] * 2 + img[y, x + 1]
    coarse[y, x] = sum(fine[2 * y + i, 2 * x + j] for i in (0, 1) for j in (0, 1))
    pipeline = pt.Pipeline(coarse, shape=((img.shape[0]) // 2, (img.shape[1] - 1) // 2))
    (group,) = report(pipeline, Dp(inlining="none"), img=(4000, 4001)).groups
    assert group.levels == ({"y": 6, "x": 256},)  # 32 KB / ((1 + 4) * 4 bytes) / 256


# ---- the schedule


@pytest.mark.parametrize("options", [{}, {"inlining": "pointwise"}, {"inlining": "none"}, {"fusion": "greedy"}])
def test_results_of_harris(options: Mapping[str, Any]) -> None:
    """Parallelogram tiles and shared loops compute what the reference does."""
    scheduled = harris().with_schedule(Dp(**options), estimates={"img": HARRIS_SIZE}, machine=HASWELL)
    img = np.random.default_rng(0).random((97, 301), np.float32)
    np.testing.assert_allclose(scheduled(img=img), scheduled.reference(img=img), rtol=1e-4, atol=1e-6)


def test_parallelograms_and_shared_loops() -> None:
    """§5.2: memory of the outer tile, computed in the inner one. §5.3: ix and iy read the same pixels."""
    found = Dp(inlining="pointwise").find(problem_of(harris(), HASWELL, img=HARRIS_SIZE))
    ix, iy = str(found.schedule["ix"]), str(found.schedule["iy"])
    assert '.compute_at("inner", "y_m")' in iy
    assert '.store_at("inner", "x_o")' in iy
    assert '.split("y", "y_o", "y_m", 42)' in str(found.schedule["inner"])
    assert '.split("y_m", "y_m", "y_i", 5, tail="guard")' in str(found.schedule["inner"])
    assert ix == iy.replace('"iy"', '"ix"') + '.compute_with("iy", "x")'
    plain = Dp(inlining="pointwise", multi_level=False, loop_fusion=False)
    text = str(plain.find(problem_of(harris(), HASWELL, img=HARRIS_SIZE)).schedule)
    assert "store_at" not in text
    assert "compute_with" not in text


@pytest.mark.parametrize("what", ["fusion", "inlining", "terms"])
def test_parts_that_there_are_none_of(what: str) -> None:
    with pytest.raises(pt.UserError, match=f"test_dp.py:.*Dp\\({what}='gredy'\\): choose one of"):
        Dp(**{what: "gredy"})


def test_what_the_paper_does_not_cover_is_left_alone() -> None:
    app = APPS["hist_eq"]
    found = report(app.build(), Dp(), **app.sizes["small"])
    assert any("scheduled on its own" in remark for g in found.groups for remark in g.remarks)


@cache
def _of_app(name: str) -> Report:
    app = APPS[name]
    return report(app.build(), Dp(), **app.sizes["paper"])


def _small(pipeline: pt.Pipeline, **shapes: tuple[int, ...]) -> Any:
    problem = problem_of(pipeline, HASWELL, **shapes)
    return problem.inlined(["out"])


def test_no_parallelograms_without_tiles() -> None:
    problem = problem_of(APPS["blur"].build(), HASWELL, img=(102, 202))
    group = TileGroup("blur_y", ("blur_x",), ({"y": 200, "x": 400}, {"y": 150}))
    assert parallelograms(problem, group, PLAIN) == scheduled(problem, group, PLAIN)


def test_groups_without_tiles() -> None:
    """A group of one row has none, and another group reads its output."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    first, second, third, out = map(pt.Func, ("first", "second", "third", "out"))
    before: Any = pt.edge(img)
    for f in (first, second, third):
        f[y, x] = before[y, x - 1] + before[y, x + 1]
        before = f
    out[y, x] = third[x, x]
    pipeline = pt.Pipeline(out, shape=(img.shape[0] * 2, 9))
    pixels = np.random.default_rng(0).random((1, 31), np.float32)
    chosen = pipeline.with_schedule("dp", estimates={"img": pixels.shape}, machine=named("neoverse-n1"))
    np.testing.assert_allclose(chosen(img=pixels), pipeline.reference(img=pixels), rtol=1e-5)
