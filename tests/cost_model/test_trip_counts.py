"""The cost model counts the points that lowered loops compute: both read which loops a split becomes, and how its last
block ends, in the same place.

Compared are all stages at root, and those in tiles, of which all boxes have the extents that the model has. Not
compared are
    boxes that differ from tile to tile, such as at borders: the model takes those inside for all;
    boxes that lowering finds larger or smaller than numbers do, whose expressions tell more or less of some bounds;
    stages in the loops of such stages;
    blocks of which each point is asked whether it is inside, in which other blocks shift: some are computed twice;
    definitions under conditions, and loops whose bounds depend on data or coordinates: the model takes means;
    empty domains, which the model takes for one point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, seed, settings

import pantile as pt
from pantile.analysis.interval import Interval, interval
from pantile.cost_model.call_facts import call_facts
from pantile.cost_model.groups import groups
from pantile.cost_model.nest import Nests
from pantile.expr.linear import Facts
from pantile.expr.nodes import Expr, Number
from pantile.graph.nodes import Graph
from pantile.ir.nodes import For, If, Let, Produce, Stmt, Store
from pantile.ir.visit import children, walk
from pantile.lower.names import region_names
from pantile.lower.nest import build_nest
from pantile.lower.passes import GRAPH_PASSES, LoweringRequest
from pantile.schedule.fit_splits import fit_splits_of_call
from pantile.schedule.loop_tree import Leaf
from pantile.schedule.plan import Plan
from pantile.schedule.resolve import resolve
from pantile.schedule.split_loops import Tail, split_loops
from pantile.target import NAMED
from pantile.variant import Variants
from tests.analysis.indices import value
from tests.fuzz.harness import Trial, pipeline_of, refused_call, trials
from tests.long import LONG

TARGET = NAMED["aarch64"]
Shapes = Mapping[str, tuple[int, ...]]
Y, X = pt.vars("y x")


class Runs:
    """What loops do: how often each buffer is stored to, and which boxes each stage is computed over, how often.
    `unknown` are the buffers and stages for which data decides that."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.stores: Counter[str] = Counter()
        self.boxes: dict[str, Counter[tuple[int, ...]]] = {}
        self.unknown: set[str] = set()

    def run(self, s: Stmt, at: Mapping[str, int]) -> None:
        if isinstance(s, For):
            low, extent = self._value(s.min, at), self._value(s.extent, at)
            if low is None or extent is None:
                return self._give_up(s)
            for v in range(low, low + extent):
                self.run(s.body, {**at, s.var: v})
        elif isinstance(s, Let):
            number = self._value(s.value, at)
            self.run(s.body, at if number is None else {**at, s.name: number})
        elif isinstance(s, If):
            holds = self._value(s.condition, at)
            if holds is None:
                return self._give_up(s)
            branch = s.then if holds else s.otherwise
            if branch is not None:
                self.run(branch, at)
        elif isinstance(s, Store):
            self.stores[s.buffer] += 1
        else:
            if isinstance(s, Produce):
                self._produce(s, at)
            for c in children(s):
                self.run(c, at)
        return None

    def _produce(self, s: Produce, at: Mapping[str, int]) -> None:
        stage = self.graph.stage[s.stage]
        ends = [tuple(self._value(v, at) for v in region_names(stage, dim)) for dim in stage.dims]
        box = tuple(high - low + 1 for low, high in ends if low is not None and high is not None)
        self.boxes.setdefault(s.stage, Counter())[box] += 1

    def _value(self, e: Expr, at: Mapping[str, int]) -> int | None:
        try:
            return value(e, at)
        except (AssertionError, KeyError):  # it loads something, or depends on what does
            return None

    def _give_up(self, s: Stmt) -> None:
        for inside in walk(s):
            if isinstance(inside, (Produce, Store)):
                self.unknown.add(inside.stage if isinstance(inside, Produce) else inside.buffer)


def lowered(graph: Graph, plan: Plan, scalars: Mapping[str, Number]) -> Runs:
    """What the loops for a call do. Lowering knows that inputs are no smaller: of what it cannot prove for all calls
    that share code, such as that a block of a stage fits, it makes other loops."""
    extents = {i.extent(k): int(scalars[i.extent(k)]) for i in graph.inputs for k in range(i.ndim)}
    variants = Variants(graph, plan)
    variant, checked = variants.of(variants.usual.strides, extents), graph
    fitted = fit_splits_of_call(graph, plan, scalars)
    facts = Facts({name: (n, None) for name, n in extents.items()})
    request = LoweringRequest((), facts, variant.small, False, ())
    for step in GRAPH_PASSES:
        graph, fitted = step.run(graph, fitted, request)
    runs = Runs(graph)
    runs.run(build_nest(graph, checked, fitted, facts, variant.small).body, {n: int(v) for n, v in scalars.items()})
    return runs


def counted(graph: Graph, plan: Plan, shapes: Shapes, scalars: Mapping[str, Number]) -> dict[str, tuple[float, Nests]]:
    """The points that the cost model counts for each stage, of all of its definitions."""
    inlined = frozenset(s.name for s in graph.stages if s.name not in plan.stages)
    written_out = frozenset(p.name for p in plan.stages.values() if p.is_written_out)
    facts = call_facts(graph, shapes, scalars, inlined, written_out)
    fitted = fit_splits_of_call(graph, plan, scalars)
    counts: dict[str, tuple[float, Nests]] = {}
    for names in groups(facts, fitted):
        nests = Nests(facts, fitted, names)
        for name in names:
            each = sum(v.points for leaf in nests.leaves if leaf[0] == name for v in nests.versions(leaf))
            counts[name] = nests.computed(name).times * each, nests
    return counts


def assert_alike(graph: Graph, plan: Plan, shapes: Shapes, scalars: Mapping[str, Number]) -> set[str]:
    """Compare what can be compared; the names of the stages that were."""
    runs, compared = lowered(graph, plan, scalars), set[str]()
    for name, (points, nests) in reversed(counted(graph, plan, shapes, scalars).items()):
        stage, computed, boxes = nests.facts.graph.stage[name], nests.computed(name), runs.boxes.get(name, Counter())
        is_known = runs.unknown.isdisjoint((name, stage.buffers[0])) and not plan.stages[name].specializations
        is_regular = not any(
            d.condition is not None or _varies(nests, (name, k), scalars) for k, d in enumerate(stage.definitions)
        )
        around = {site.stage for site in nests.tree.around(name)}
        if is_known and is_regular and around <= compared and list(boxes) == [computed.box] and not computed.parts:
            assert boxes[computed.box] == computed.times, (name, boxes, computed)
            assert runs.stores[stage.buffers[0]] == pytest.approx(points), (name, boxes, plan.stages[name].nests)
            compared.add(name)
    return compared


def _varies(nests: Nests, leaf: Leaf, scalars: Mapping[str, Number]) -> bool:
    """Whether the loops of a definition are not the same everywhere, or empty, or blocks shift in ones with guards."""
    loops, domain = nests.loops(leaf), nests.facts.graph.stage[leaf[0]].definitions[leaf[1]].domain
    scope = {name: Interval.point(number) for name, number in scalars.items()}
    extents = {r.name: interval(r.extent, scope) for r in domain}
    shifts = any(s.tail(False, lambda: True) is Tail.SHIFT for s in split_loops(loops.nest))
    has_guards = any(s.is_inside_out or s.is_fused for s, _ in loops.partial)
    return shifts and has_guards or any(r.low != r.high or r.low != loops.extents[n] for n, r in extents.items())


@pytest.mark.parametrize("focus", ["pure", "updates", "reductions"])
def test_random_schedules(focus: str) -> None:
    compared = 0

    @seed(0)
    @settings(max_examples=2000 if LONG else 8)
    @given(trials(focus))
    def each(trial: Trial) -> None:
        nonlocal compared
        pipeline = pipeline_of(trial.case)
        inputs, params = trial.case.values(pipeline.graph)
        if refused_call(pipeline, inputs, params) or any(0 in a.shape for a in inputs.values()):
            return
        try:
            graph, plan = resolve(pipeline.graph, trial.schedule, target=TARGET)
            shapes, scalars = pipeline._calls.sizes({**inputs, **params})
            if not any(0 in shape for shape in shapes.values()):
                compared += len(assert_alike(graph, plan, shapes, scalars))
        except pt.UserError:
            return

    each()
    assert compared >= 4


SCHEDULES = {
    "clip": [pt.on("out").split("y", "yo", "yi", 8, tail="guard"), pt.on("rows")],
    "blocks that are unrolled": [
        pt.on("out").split("y", "yo", "yi", 8, tail="guard").split("yi", "yi", "step", 2).unroll("yi"),
        pt.on("rows"),
    ],
    "peel": [pt.on("out").vectorize("x", 8, tail="guard").unroll("y", 4, tail="peel"), pt.on("rows")],
    "inside out": [
        pt.on("out").split("y", "yo", "yi", 8).reorder("yi", "yo", "x").split("x", "xo", "xi", 8, tail="guard"),
        pt.on("rows"),
    ],
    "fused": [pt.on("out").split("y", "yo", "yi", 8, tail="peel").fuse("yi", "x", "t"), pt.on("rows")],
    "blocks larger than the picture": [pt.on("out").split("x", "xo", "xi", 512, tail="guard"), pt.on("rows")],
    "in rows of clipped blocks": [
        pt.on("out").split("y", "yo", "yi", 8, tail="guard"),
        pt.on("rows").compute_at("out", "yi"),
    ],
    "in tiles": [
        pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 8, 16),
        pt.on("rows").compute_at("out", "xo").vectorize("x", 8),
    ],
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_tails(kind: str) -> None:
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[Y, X] = img[Y, X] + img[Y, X + 1]
    out[Y, X] = rows[Y, X] + rows[Y + 1, X]
    p = pt.Pipeline(out, (img.shape[0] - 1, img.shape[1] - 1))
    graph, plan = resolve(p.graph, pt.Schedule(*SCHEDULES[kind]), target=TARGET)
    for height, width in ((44, 151), (30, 38), (5, 6)):
        shapes, scalars = p._calls.sizes({"img": (height, width)})
        expected = {"out"} if min(height, width) < 8 else {"out", "rows"}  # small tiles are clipped, and differ
        assert expected <= assert_alike(graph, plan, shapes, scalars)


def test_stages_in_partial_blocks_are_computed_over_less() -> None:
    """The last block has three rows of the eight that others have: 4 * 9 + 4 rows of `rows` in all."""
    img, rows, out = pt.Input("img", "float32", ndim=2), pt.Func("rows"), pt.Func("out")
    rows[Y, X] = img[Y, X] * 2
    out[Y, X] = rows[Y, X] + rows[Y + 1, X]
    p = pt.Pipeline(out, (img.shape[0] - 1, img.shape[1]))
    schedule = pt.Schedule(pt.on("out").split("y", "yo", "yi", 8, tail="guard"), pt.on("rows").compute_at("out", "yo"))
    graph, plan = resolve(p.graph, schedule, target=TARGET)
    shapes, scalars = p._calls.sizes({"img": (36, 50)})
    _, nests = counted(graph, plan, shapes, scalars)["rows"]
    assert nests.computed("rows").points == pytest.approx(40 * 50) == lowered(graph, plan, scalars).stores["rows"]
