"""Intra-tile loop fusion for register reuse (polymage-plus §5.3): members that read the same values share their loops.

before:  for y: for x: ix[y, x] = ... img          after:  for y: for x: ix[y, x] = ... img
         for y: for x: iy[y, x] = ... img                                iy[y, x] = ... img

Two members are fused if each iteration of both reads a common value, and if they have the same loops over the same
bounds. The bounds are the same if both are read at the same indices by the same stages, or by stages with the same
bounds.

Parallelogram tiles may be nested in overlapped tiles (polymage-plus §5.2):

before:  each member is computed at the inner tile loop, over all that an inner tile needs
after:   its memory lives as long as the outer tile, so that each inner tile computes only what is new

Inner tiles run one after another, and the next one keeps what one has computed: its region starts where the one before
ended, along the right hyperplane of the outer tile. The last one is shorter: if it were shifted inwards, it would go
back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dataclass import cached_property, memoized
from ...expr.nodes import Op
from ...expr.visit import key, walk
from ...graph.nodes import Graph, Stage
from ...schedule.directives import Directive, StageSchedule
from ..common.marking import Style
from ..common.tiles import TiledGroup, scheduled
from ..strategy import Problem


def with_fused_loops(
    graph: Graph, part: tuple[StageSchedule, ...]
) -> tuple[tuple[StageSchedule, ...], tuple[str, ...]]:
    """Return the directives of a group, its output first, and a remark for every member that shares loops."""
    host, *members = part
    uses = _Uses(graph, host.name, [m.name for m in members])
    leaders: dict[object, list[StageSchedule]] = {}
    chains, remarks = [host], []
    for chain in members:
        stage = graph.stage[chain.name]
        alike = leaders.setdefault((uses.of[chain.name], stage.dims, chain.directives), [])
        leader = next((c for c in alike if _may_share(uses, graph.stage[c.name], stage)), None)
        if leader is None:
            alike.append(chain)
            chains.append(chain)
        else:
            chains.append(chain.compute_with(leader.name, _innermost(graph.stage[leader.name], leader)))
            remarks.append(f"{chain.name} shares the loops of {leader.name}")
    return tuple(chains), tuple(remarks)


def _may_share(uses: _Uses, one: Stage, two: Stage) -> bool:
    """Whether an iteration of two stages with the same loops reads something in common."""
    return not one.updates and not two.updates and not uses.reads(one).isdisjoint(uses.reads(two))


def _innermost(stage: Stage, chain: StageSchedule) -> str:
    """The innermost loop around a point, or around a vector of them."""
    vectors = [str(d.args[0]) for d in chain.directives if d.verb == "vectorize"]
    orders = [d.args for d in chain.directives if d.verb == "reorder"]
    return vectors[-1] if vectors else str(orders[-1][-1]) if orders else stage.dims[-1]


class _Uses:
    """The regions that a tile of a group's output requires of its members, as numbers. Each consumer is visited
    once."""

    def __init__(self, graph: Graph, output: str, members: Sequence[str]) -> None:
        self.graph = graph
        self.output = output
        self.members = members  # producers before consumers

    @cached_property
    def of(self) -> dict[str, int]:
        """A number for each stage: two stages with the same number have the same required box."""
        numbers: dict[object, int] = {self.output: 0}
        number_of = {self.output: 0}
        for name in reversed(self.members):
            stage = self.graph.stage[name]
            consumers = [self.graph.stage[c] for c in self.graph.consumers[name]]
            uncertain = stage.domain is not None or len(stage.buffers) > 1 or any(map(self._may_narrow, consumers))
            use = name if uncertain else frozenset((number_of[c.name], self._at(c)[name]) for c in consumers)
            number_of[name] = numbers.setdefault(use, len(numbers))
        return number_of

    @memoized
    def reads(self, stage: Stage) -> frozenset[object]:
        """The values that an iteration reads."""
        return frozenset((e.buffer, *map(key, e.indices)) for e in stage.pure.loads)

    @memoized
    def _at(self, consumer: Stage) -> dict[str, frozenset[object]]:
        """The indices at which a stage reads each buffer."""
        places: dict[str, set[object]] = {}
        for e in consumer.pure.loads:
            places.setdefault(e.buffer, set()).add(tuple(map(key, e.indices)))
        return {buffer: frozenset(at) for buffer, at in places.items()}

    @memoized
    def _may_narrow(self, consumer: Stage) -> bool:
        """Whether conditions may narrow the region that a stage reads."""
        selects = (isinstance(e, Op) and e.op == "select" for e in walk(*consumer.pure.values))
        return bool(consumer.updates) or any(selects)


def parallelograms(problem: Problem, group: TiledGroup, style: Style) -> tuple[StageSchedule, ...]:
    """Return the directives of a group with two levels of tiles, those of its output first."""
    host, *members = scheduled(problem, group, style)
    output = problem.graph.stage[group.output]
    tile_loops = [str(d.args[1]) for d in host.directives if _is_tile(d, output)]
    if not tile_loops:  # the required part of the output is smaller than a tile
        return (host, *members)
    cut = [d if d.verb != "split" or _is_tile(d, output) else replace(d, tail="guard") for d in host.directives]
    return (replace(host, directives=tuple(cut)), *(m.store_at(host.name, tile_loops[-1]) for m in members))


def _is_tile(d: Directive, output: Stage) -> bool:
    """Whether a directive makes outer tiles, not tiles of tiles."""
    return d.verb == "split" and d.args[0] in output.dims
