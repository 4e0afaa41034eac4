"""Any schedule at all is either refused with a reason or makes a plan that keeps the rules lowering relies on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pantile import schedule as pt
from pantile.errors import UserError
from pantile.graph.nodes import Graph
from pantile.graph.verify import verify
from pantile.schedule import Plan, Schedule, resolve
from pantile.schedule.plan import ONCE, Nest, Split
from tests.schedule import pipelines

PIPELINES = (
    pipelines.blur, pipelines.diamond, pipelines.two_outputs, pipelines.histogram, pipelines.total, pipelines.product,
    pipelines.scan, pipelines.two_loop_scan, pipelines.box, pipelines.scatter,
)  # fmt: skip
WITHOUT_ARGUMENTS = (
    "compute_root", "compute_inline", "store_root", "nontemporal", "update", "pure", "atomic", "persistent",
)  # fmt: skip


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Graph, Schedule]:
    make: Callable[[], Graph] = draw(st.sampled_from(PIPELINES))
    graph = make()
    names = sorted({d for s in graph.stages for d in s.dims} | {"r.y", "r.x", "k", "u", "v", "w", "x_v", "y_p"})
    loop, stage = st.sampled_from(names), st.sampled_from(sorted(graph.stage))
    factor, new = st.integers(1, 9), st.sampled_from([n for n in names if "." not in n])
    calls: Any = st.one_of(
        st.tuples(st.just("split"), st.tuples(loop, new, new, factor)),
        st.tuples(st.just("tile"), st.tuples(loop, loop, new, new, new, new, factor, factor)),
        st.tuples(st.just("reorder"), st.lists(loop, min_size=2, max_size=3, unique=True).map(tuple)),
        st.tuples(st.just("fuse"), st.tuples(loop, loop, new)),
        st.tuples(st.sampled_from(["vectorize", "unroll", "parallel"]), st.tuples(loop, factor) | st.tuples(loop)),
        st.tuples(st.sampled_from(["compute_at", "store_at", "compute_with"]), st.tuples(stage, loop)),
        st.tuples(st.just("rfactor"), st.tuples(loop, new)),
        st.tuples(st.just("strips"), st.tuples(loop, new, st.integers(2, 9))),
        st.tuples(
            st.just("clone_in"),
            st.tuples(stage, st.sampled_from(["copy", "f"])) | st.tuples(stage, st.just("copy"), st.integers(0, 2)),
        ),
        st.tuples(
            st.just("copy_in"),
            st.tuples(stage, st.sampled_from(["copy", "near"]), new, new)
            | st.tuples(stage, st.just("near"), st.integers(0, 2)),
        ),
        st.tuples(st.just("copy_out"), st.tuples(st.sampled_from(["copy", "far"]))),
        st.tuples(st.sampled_from(["split_storage", "panels"]), st.tuples(loop, new, new, factor)),
        st.tuples(st.sampled_from(["fold_storage", "registers_from"]), st.tuples(loop, factor)),
        st.tuples(st.sampled_from(WITHOUT_ARGUMENTS), st.just(())),
        st.tuples(st.just("threads"), st.tuples(factor)),
        st.tuples(st.just("tensor_core"), st.tuples(loop, loop, loop)),
        st.tuples(st.just("cache_loads"), st.tuples(stage, st.just("cg"))),
    )
    chains = []
    for name in draw(st.lists(stage | st.sampled_from(sorted(graph.input)), unique=True)):
        chain = pt.on(name)
        for verb, args in draw(st.lists(calls, max_size=4)):
            chain = getattr(chain, verb)(*args)
        chains.append(chain)
    return graph, Schedule(*chains)


@given(schedules(), st.booleans())
def test_refused_or_sound(case: tuple[Graph, Schedule], strict: bool) -> None:
    graph, schedule = case
    try:
        changed, plan = resolve(graph, schedule, strict=strict)
    except UserError as error:
        assert "pt.on(" in str(error)  # noqa: PT017 -- legal schedules are fine, too
        return
    verify(changed)
    check_plan(changed, plan)


def check_plan(graph: Graph, plan: Plan) -> None:
    assert set(graph.output) <= set(plan.stages) <= set(graph.stage)
    for name, s in plan.stages.items():
        assert len(s.nests) == len(graph.stage[name].definitions)
        for site in (s.compute, s.store):
            if site is not None:
                assert site.loop in [x.name for x in plan.stages[site.stage].nests[site.definition].loops]
        for k, nest in enumerate(s.nests):
            check_nest(nest, is_update=k > 0 and k not in s.within)


def check_nest(nest: Nest, is_update: bool) -> None:
    names = [x.name for x in nest.loops]
    assert len(set(names)) == len(names)
    kinds = [x.kind for x in nest.loops]
    if "vector" in kinds:
        assert set(kinds[kinds.index("vector") + 1 :]) <= {"unroll"}
    for r in nest.rewrites:
        assert not (is_update and isinstance(r, Split) and r.tail not in ONCE)
