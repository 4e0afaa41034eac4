"""What blocks keep, stage by stage, is what their kernels have; and one lowering says so of all groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

import pantile as pt
from pantile import compile
from pantile.apps import APPS
from pantile.autoschedule import AutoGpu, Greedy, Problem
from pantile.autoschedule.common.legalize import legal
from pantile.autoschedule.common.tiles import TiledGroup, scheduled
from pantile.errors import UserError
from pantile.graph.nodes import Graph
from pantile.ir.nodes import Stmt
from pantile.ir.visit import walk
from pantile.lower import block_memory
from pantile.lower.passes import Trace
from pantile.lower.root_stages import of_root_stages, root_stages
from pantile.machine import named
from pantile.scheduled_pipeline import ScheduledPipeline
from tests.autoschedule.problems import problem_of

H200 = named("H200")


@pytest.mark.parametrize("strategy", [Greedy(), AutoGpu()], ids=lambda s: s.name)
@pytest.mark.parametrize("name", ["harris", "unsharp", "camera_pipe", "bilateral_grid"])
def test_it_is_that_of_the_kernels(name: str, strategy: Greedy | AutoGpu) -> None:
    pipeline = APPS[name].build().with_options(target="cuda-sim")
    problem = problem_of(pipeline, H200, **APPS[name].sizes["paper"])
    found = strategy.find(problem)
    of = ScheduledPipeline(pipeline.graph, found.schedule, pipeline.options, {})
    kept = of.memory_of_blocks(problem.scalars, pipeline.graph.stage)
    bins = {n for n, chain in found.schedule.items() if "copy_out" in chain.verbs}
    assert {*kept} <= {g.output for g in found.report.groups if g.members} | bins
    assert sorted(map(int, filter(None, kept.values()))) == sorted(
        {
            k.name.split(".")[0]: k.shared
            for k in of.kernels(of.variants.in_c_order(problem.scalars)).kernels
            if k.shared
        }.values()
    )


def chain_of_pairs(count: int) -> pt.Pipeline:
    """Pairs a0 -> b0 -> a1 -> b1 ..., of which b reads three rows of a."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    before: Any = pt.edge(img)
    for k in range(count):
        a, b = pt.Func(f"a{k}"), pt.Func(f"b{k}")
        a[y, x] = pt.sqrt(before[y - 1, x] + before[y + 1, x])
        b[y, x] = a[y - 1, x] + a[y, x] + a[y + 1, x]
        before = b
    return pt.Pipeline(before, shape=img.shape)


def test_the_groups_that_are_refused_are_known_together() -> None:
    """Every second group has whole rows, whose size is not constant: one lowering says all, whatever their number."""
    problem = problem_of(chain_of_pairs(6), H200, img=(1000, 1000))
    answers: list[Mapping[str, str]] = []

    def refusals(graph: Graph, schedule: pt.Schedule, asked: Collection[str]) -> Mapping[str, str]:
        assert problem.refusals is not None
        answers.append(problem.refusals(graph, schedule, asked))
        return answers[-1]

    counted = Problem(problem.graph, problem.shapes, problem.scalars, problem.machine, refusals=refusals)
    tiles = [{"y": 8, "x": 32} if k % 2 else {"y": 8} for k in range(6)]
    groups = [TiledGroup(f"b{k}", (f"a{k}",), (tile,)) for k, tile in enumerate(tiles)]
    inlined = problem.facts.trivial
    result = legal(counted, [scheduled(problem.inlined(inlined), g) for g in groups], inlined)
    assert result.honoured == (False, True) * 3
    assert [sorted(r) for r in answers] == [["b0", "b2", "b4"]]
    assert all("has no constant size" in remark for remark in result.remarks)
    others = [scheduled(problem.inlined(inlined), g) for g in groups]
    again = legal(counted, others, inlined, [others[1], others[3], others[4]])
    assert again.honoured == (False, True, False, True, True, True)  # what was lowered before is not asked about


def test_what_lowering_refuses_as_a_whole_dissolves_what_is_at_fault() -> None:
    """Refused without the name of a stage, groups are tried one after the other."""
    problem = problem_of(chain_of_pairs(3), H200, img=(1000, 1000))

    def refusals(_: Graph, schedule: pt.Schedule, asked: Collection[str]) -> Mapping[str, str]:
        assert asked
        if "compute_at" in schedule.on("a1").verbs:
            raise UserError("a1 cannot be there")
        return {}

    refused = Problem(problem.graph, problem.shapes, problem.scalars, problem.machine, refusals=refusals)
    groups = [TiledGroup(f"b{k}", (f"a{k}",), ({"y": 8, "x": 32},)) for k in range(3)]
    inlined = problem.facts.trivial
    result = legal(refused, [scheduled(problem.inlined(inlined), g) for g in groups], inlined)
    assert result.honoured == (True, False, True)
    assert result.remarks == ("scheduled on their own: b1, a1, because a1 cannot be there",)


def test_what_copies_a_stage_is_not_refused_with_it() -> None:
    """The blocks of f have no memory for g. The product, which copies slices of f, stays in its tiles: it is not asked
    about again."""
    i, j = pt.vars("i j")
    a, b = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2)
    g, f, out = pt.Func("g"), pt.Func("f"), pt.Func("out")
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    g[i, j] = pt.sqrt(a[i, j])
    f[i, j] = g[i, j] + g[i + 1, j] + g[i + 2, j]
    out[i, j] = 0.0
    out[i, j] += f[i, r.k] * b[r.k, j]
    pipeline = pt.Pipeline(out, shape=(a.shape[0] - 2, b.shape[1]))
    problem = problem_of(pipeline, H200, a=(4098, 4096), b=(4096, 4096))
    answers: list[Mapping[str, str]] = []

    def refusals(_: Graph, schedule: pt.Schedule, asked: Collection[str]) -> Mapping[str, str]:
        answers.append({name: f"{name} is refused" for name in asked if name == "f"})
        assert "copy_in" in schedule.on("f").verbs
        return answers[-1]

    counted = Problem(problem.graph, problem.shapes, problem.scalars, problem.machine, refusals=refusals)
    result = legal(counted, [scheduled(problem, TiledGroup("f", ("g",), ({"i": 8, "j": 32},)))])
    assert result.honoured == (False,) and answers == [{"f": "f is refused"}]
    assert any(remark.startswith("sums of products") for remark in result.remarks)


def test_lets_of_other_stages_are_not_lowered_again() -> None:
    """However long a pipeline is, what is around the loops of a group is what they use."""
    sizes = []
    for count in (4, 12):
        pipeline = chain_of_pairs(count).with_options(target="cuda-sim")
        problem = problem_of(pipeline, H200, img=(1000, 1000))
        last = count - 1
        group = TiledGroup(f"b{last}", (f"a{last}",), ({"y": 8, "x": 32},))
        schedule = legal(problem, [scheduled(problem.inlined(problem.facts.trivial), group)]).schedule
        of = ScheduledPipeline(pipeline.graph, schedule, pipeline.options, {})
        built = compile._built(of._resolved, of._plan, of.variants.usual, of.options, Trace())
        body = of_root_stages(built.nest.body, {f"b{last}"})
        assert [p.stage for p in root_stages(body)] == [f"b{last}"]
        sizes.append(sum(1 for _ in walk(body)))
    assert sizes[0] == sizes[1]


def clamped_pairs(count: int) -> pt.Pipeline:
    """Pairs a0 -> b0 -> a1 -> b1 ... over one region; each adds its own row of a table."""
    y, x = pt.vars("y x")
    img, table = pt.Input("img", "float32", ndim=2), pt.Input("table", "float32", ndim=2)
    before: Any = img
    for k in range(count):
        a, b = pt.Func(f"a{k}"), pt.Func(f"b{k}")
        above, below = pt.clamp(y - 1, 0, img.shape[0] - 1), pt.clamp(y + 1, 0, img.shape[0] - 1)
        a[y, x] = pt.sqrt(before[y, x]) + table[k, 0]
        b[y, x] = a[above, x] + a[y, x] + a[below, x]
        before = b
    return pt.Pipeline(before, shape=img.shape)


def test_of_stages_that_are_alike_one_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for names, and the row of a table that each reads, the pairs in between are equal; one has other tiles."""
    pipeline = clamped_pairs(8).with_options(target="cuda-sim")
    problem = problem_of(pipeline, H200, img=(1000, 1000), table=(8, 1))
    tiles = [{"y": 8, "x": 64 if k == 4 else 32} for k in range(8)]
    groups = [TiledGroup(f"b{k}", (f"a{k}",), (tile,)) for k, tile in enumerate(tiles)]
    inlined = problem.facts.trivial
    schedule = legal(problem, [scheduled(problem.inlined(inlined), g) for g in groups], inlined).schedule
    of = ScheduledPipeline(pipeline.graph, schedule, pipeline.options, {})
    lowered: list[int] = []
    shared_memory = block_memory._shared_memory

    def counted(body: Stmt) -> int:
        lowered.append(shared_memory(body))
        return lowered[-1]

    monkeypatch.setattr(block_memory, "_shared_memory", counted)
    kept = of.memory_of_blocks(problem.scalars, pipeline.graph.stage)
    assert {*kept} == {g.output for g in groups} and len(lowered) == 4  # the first, the last, the other, and the rest
    for name in kept:
        assert of.memory_of_blocks(problem.scalars, [name]) == {name: kept[name]}
    assert kept["b3"] == kept["b5"] != kept["b4"]


def test_stages_that_are_alike_are_refused_by_their_names() -> None:
    """A message names the stage that it is about."""
    pipeline = clamped_pairs(4).with_options(target="cuda-sim")
    problem = problem_of(pipeline, H200, img=(1000, 1000), table=(8, 1))
    inlined = problem.facts.trivial
    groups = [TiledGroup(f"b{k}", (f"a{k}",), ({"y": 8},)) for k in range(4)]
    result = legal(problem, [scheduled(problem.inlined(inlined), g) for g in groups], inlined)
    assert result.honoured == (False,) * 4
    for k in range(4):
        assert f"the region of a{k} that is kept has no constant size" in result.remarks[k]
