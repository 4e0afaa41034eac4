"""Random copies of stages and inputs, for some or all of a consumer's reads, and random splits of dims into panels."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.graph.nodes import Graph, InputInfo, Stage
from pantile.schedule.clones import clone_stages, places
from pantile.schedule.default import complete
from pantile.schedule.directives import StageSchedule, on
from pantile.schedule.panels import make_panels
from pantile.schedule.resolve import resolve
from pantile.schedule.schedule import Schedule
from pantile.schedule.strips import cut_scans
from pantile.target import Target

from .draws import Drawer

VERBS = ("clone_in", "copy_in")


def copies(drawer: Drawer, graph: Graph, verbs: Sequence[str] = VERBS) -> Schedule:
    """A schedule with only directives that make copies."""
    asked = Schedule()
    for source in reversed([*graph.inputs, *graph.stages]):
        current = clone_stages(graph, asked)[0]
        readers = current.consumers[source.name]
        if not readers or drawer.number(0, 2) == 0:
            continue
        one_more = asked.replace(_copy(drawer, current, source, drawer.pick(readers), drawer.pick(verbs), len(asked)))
        try:
            clone_stages(graph, one_more)
        except UserError:
            continue
        asked = one_more
    return asked


def _copy(
    drawer: Drawer, graph: Graph, source: Stage | InputInfo, reader: str, verb: str, number: int
) -> StageSchedule:
    count = len(places(source, graph.stage[reader]))
    reads = drawer.draw(st.lists(st.integers(0, count - 1), unique=True, max_size=count))
    name = f"copy_{number}_"
    if verb == "clone_in" and isinstance(source, Stage):
        return on(source.name).clone_in(reader, name, *reads)
    named = isinstance(source, InputInfo) or drawer.chance(30)
    dims = [f"axis_{k}_" for k in range(source.ndim)] if named else []
    return on(source.name).copy_in(reader, name, *dims, *reads)


def changed(graph: Graph, made: Schedule) -> Graph:
    """The graph with the strips, copies and panels of a schedule."""
    return make_panels(*clone_stages(*cut_scans(graph, made, strict=False)))[0]


def in_strips(drawer: Drawer, graph: Graph) -> Schedule:
    """Put some integer scans in strips, as far as that is legal. Float scans would round differently."""
    made = Schedule()
    for stage in graph.stages:
        for k, update in enumerate(stage.updates):
            if not update.domain or stage.dtypes[0].is_float or not drawer.chance(70):
                continue
            asked = made.on(stage.name).update(k)
            asked = asked.strips(update.domain[0].name, f"strip_{k}_", drawer.pick([4, 2, 8, 3, 16]))
            try:
                changed(graph, made.replace(asked))
            except UserError:
                continue
            made = made.replace(asked)
    return made


def in_panels(drawer: Drawer, graph: Graph, made: Schedule) -> Schedule:
    """Add panels for some stages to a schedule with copies, as far as that is legal."""
    for stage in changed(graph, made).stages:
        for k, dim in enumerate(stage.dims):
            if drawer.chance(30):
                names = (f"panel_{k}_", f"lane_{k}_")
                asked = made.replace(made.on(stage.name).panels(dim, *names, drawer.pick([4, 2, 8, 3, 16, 1])))
                try:
                    changed(graph, asked)
                except UserError:
                    continue
                made = asked
    return made


def with_copies(graph: Graph, made: Schedule, schedule: Schedule, strict: bool, target: Target) -> Schedule:
    """Combine the directives that make copies with a schedule for the graph with these copies."""
    asked = [StageSchedule(c.name, (*schedule.on(c.name).directives, *c.directives)) for c in made.values()]
    both = schedule.replace(*asked)
    # The combination is illegal if it schedules a stage whose readers all read copies, or a loop that a stage has by
    # default only in the graph with copies.
    return both if is_legal(graph, both, strict, target) else made


def is_legal(graph: Graph, schedule: Schedule, strict: bool, target: Target) -> bool:
    """Whether a schedule is legal, with the defaults for the stages that it does not name."""
    try:
        completed = complete(graph, schedule, target, strict=strict)
        others = [schedule.on(n) for n in schedule if n not in completed]
        resolve(graph, Schedule(*completed.values(), *others), strict=strict, target=target)
    except UserError:
        return False
    return True
