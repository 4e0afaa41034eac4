"""The loop tree of a plan: the loops that lowering builds are those of the tree, for every definition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, seed

import pantile as pt
from pantile.graph.nodes import Graph
from pantile.ir.nodes import For, Stmt, Store
from pantile.ir.visit import children
from pantile.lower.names import site_variable
from pantile.lower.nest import build_nest
from pantile.lower.passes import GRAPH_PASSES, LoweringRequest
from pantile.schedule.loop_tree import LoopTree
from pantile.schedule.plan import Plan, Site
from pantile.schedule.resolve import resolve
from pantile.target import NAMED
from pantile.target.kinds import Kind
from pantile.variant import Variants
from tests.fuzz.harness import Trial, trials

TARGET = NAMED["aarch64"]
Y, X = pt.vars("y x")


def blur(*schedule: pt.StageSchedule) -> LoopTree:
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[Y, X] = img[Y, X] + img[Y, X + 1]
    out[Y, X] = rows[Y, X] + rows[Y + 1, X]
    p = pt.Pipeline(out, (img.shape[0] - 1, img.shape[1] - 1))
    return LoopTree(*resolve(p.graph, pt.Schedule(*schedule), target=TARGET))


def test_chains_and_stages_of_strips() -> None:
    tree = blur(
        pt.on("out").split("y", "strip", "row", 8).parallel("strip"),
        pt.on("rows").store_at("out", "strip").compute_at("out", "row"),
    )
    strip, row = Site("out", 0, "strip"), Site("out", 0, "row")
    assert tree.around("out") == () and tree.around("rows") == (strip, row)
    assert tree.chain(("rows", 0)) == (strip, row, Site("rows", 0, "y"), Site("rows", 0, "x"))
    assert [s.name for s in tree.at(row)] == ["rows"] and [s.name for s in tree.at(None)] == ["out"]
    assert [s.name for s in tree.stored_at(strip, tree.graph.stage["rows"])] == ["rows"]
    assert tree.stored_outside == [(row, strip)]
    assert (tree.kind(strip), tree.kind(row)) == (Kind.PARALLEL, Kind.SERIAL)


def test_stages_that_share_loops() -> None:
    tree = blur(pt.on("out"), pt.on("rows"))
    assert [s.name for s in tree.order] == ["rows", "out"] and tree.companions("out") == []


def loops_of_stores(s: Stmt, around: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The buffer of every store, and the variables of the loops around it."""
    if isinstance(s, Store):
        yield s.buffer, around
    inside = (*around, s.var) if isinstance(s, For) else around
    for c in children(s):
        yield from loops_of_stores(c, inside)


def is_subsequence(few: tuple[str, ...], many: list[str]) -> bool:
    rest = iter(many)
    return all(name in rest for name in few)


def lowered(graph: Graph, plan: Plan) -> tuple[Graph, Plan, Stmt]:
    """The graph and plan after the passes over graphs, and the loop nest that is built from them."""
    variant, checked = Variants(graph, plan).usual, graph
    request = LoweringRequest((), variant.facts(), variant.small, False, ())
    for step in GRAPH_PASSES:
        graph, plan = step.run(graph, plan, request)
    return graph, plan, build_nest(graph, checked, plan, request.facts, variant.small).body


@pytest.mark.parametrize("focus", ["pure", "updates", "reductions"])
def test_loops_are_those_of_the_tree(focus: str) -> None:
    """A loop of one iteration may be missing; no other loop is there, and none in another order."""

    @seed(0)
    @given(trials(focus))
    def run(trial: Trial) -> None:
        try:
            graph, plan, body = lowered(*resolve(trial.case.graph(), trial.schedule, target=TARGET))
        except pt.UserError:
            return
        tree = LoopTree(graph, plan)
        chains: dict[str, list[list[str]]] = {}
        for name in plan.stages:
            stage = graph.stage[name]
            for site in (plan.stages[name].compute, *plan.stages[name].also):
                for k in range(len(stage.definitions)):
                    chain = [site_variable(graph, s) for s in (*tree.to(site), *tree.own((name, k)))]
                    for buffer in stage.buffers:
                        chains.setdefault(buffer, []).append(chain)
        for buffer, loops in loops_of_stores(body):
            assert any(is_subsequence(loops, chain) for chain in chains[buffer]), (buffer, loops, chains[buffer])

    run()
