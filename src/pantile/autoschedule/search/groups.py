"""The groups of a schedule that a search may change. They have the stages that are inlined into them, but not stages
that depend on others in more ways than by where they are computed."""

from __future__ import annotations

from collections.abc import Collection

from ...dataclass import dataclass
from ...graph.nodes import Graph, Stage
from ...schedule.schedule import Schedule, is_inlined

# Directives by which stages affect each other in more ways than by where they are computed. compute_with can also place
# an update in the loops of its own pure definition, which affects no other stage.
OF_SEVERAL = ("compute_with", "clone_in", "copy_in", "copy_out", "panels", "rfactor", "strips")


@dataclass(frozen=True)
class StageGroup:
    """A stage at root and the stages inside of its loops, producers first. A stage that is inlined only into these
    belongs to the group; one that others read, too, does not."""

    output: str
    members: tuple[str, ...]
    inlined: tuple[str, ...]


def groups(graph: Graph, schedule: Schedule) -> list[StageGroup]:
    """Return the groups of stages that depend on each other only by where they are computed."""
    owners = _owners(graph, schedule)
    owned: dict[str, list[str]] = {owner: [] for owner in owners.values() if owner is not None}
    for s in graph.stages:
        owner = owners[s.name]
        if owner is not None:
            owned[owner].append(s.name)
    return [_group(schedule, root, of) for root, of in owned.items()]


def needed_by(graph: Graph, stage: Stage, among: Collection[str] | None = None) -> list[Stage]:
    """The stages that are computed only for one stage, producers first; of these names, if any are given."""
    inside = {stage.name}
    for s in reversed(graph.stages):
        is_needed = graph.consumers[s.name] and inside.issuperset(graph.consumers[s.name])
        if is_needed and (among is None or s.name in among):
            inside.add(s.name)
    return [s for s in graph.stages if s.name in inside and s is not stage]


def _group(schedule: Schedule, root: str, of: list[str]) -> StageGroup:
    inlined = tuple(name for name in of if is_inlined(schedule.on(name)))
    return StageGroup(root, tuple(n for n in of if n not in inlined and n != root), inlined)


def _owners(graph: Graph, schedule: Schedule) -> dict[str, str | None]:
    """The root stage of the group that each stage belongs to; None if it belongs to no group or to several."""
    owners: dict[str, str | None] = {}
    for s in reversed(graph.stages):
        if any(d.verb in OF_SEVERAL and d.args[:1] != (s.name,) for d in schedule.on(s.name).directives):
            owners[s.name] = None
        elif is_inlined(schedule.on(s.name)):
            readers = {owners[c] for c in graph.consumers[s.name]}
            owners[s.name] = readers.pop() if len(readers) == 1 else None
        else:
            host = next((str(d.args[0]) for d in schedule.on(s.name).directives if d.verb == "compute_at"), s.name)
            owners[s.name] = s.name if host == s.name else owners.get(host)
    return owners
