"""Intra-tile loop fusion for register reuse (polymage-plus §5.3): members that read the same share their loops.

before:  for y: for x: ix[y, x] = ... img          after:  for y: for x: ix[y, x] = ... img
         for y: for x: iy[y, x] = ... img                                iy[y, x] = ... img

Two members are fused if they read a value in common in each iteration, and have the same loops over the same bounds.
The bounds are the same if both are read at the same places by the same stages, or by stages of which that is true.
"""

from __future__ import annotations

from ...expr.depth import deep_expressions
from ...expr.nodes import Load, Op
from ...expr.visit import key, walk
from ...graph.nodes import Graph, Stage
from ...schedule.directives import StageSchedule

Uses = frozenset[object]


@deep_expressions()
def with_fused_loops(
    graph: Graph, part: tuple[StageSchedule, ...]
) -> tuple[tuple[StageSchedule, ...], tuple[str, ...]]:
    """The directives of a group, its output first, and a remark for every member that shares loops."""
    host, *members = part
    uses = _Uses(graph, host.name)
    leaders: list[StageSchedule] = []
    found, remarks = [host], []
    for chain in members:
        leader = next((c for c in leaders if _may_share(graph, uses, c, chain)), None)
        if leader is None:
            leaders.append(chain)
            found.append(chain)
        else:
            found.append(chain.compute_with(leader.name, _innermost(graph.stage[leader.name], leader)))
            remarks.append(f"{chain.name} shares the loops of {leader.name}")
    return tuple(found), tuple(remarks)


def _may_share(graph: Graph, uses: _Uses, a: StageSchedule, b: StageSchedule) -> bool:
    one, two = graph.stage[a.name], graph.stage[b.name]
    same_loops = one.dims == two.dims and a.directives == b.directives and not one.updates and not two.updates
    return same_loops and bool(_reads(one) & _reads(two)) and uses.of(a.name) == uses.of(b.name)


def _reads(stage: Stage) -> set[object]:
    """The values that an iteration reads."""
    loads = (e for e in walk(*stage.pure.values) if isinstance(e, Load))
    return {(e.buffer, *map(key, e.indices)) for e in loads}


def _innermost(stage: Stage, chain: StageSchedule) -> str:
    """The innermost loop around a point, or around a vector of them."""
    vectors = [str(d.args[0]) for d in chain.directives if d.verb == "vectorize"]
    orders = [d.args for d in chain.directives if d.verb == "reorder"]
    return vectors[-1] if vectors else str(orders[-1][-1]) if orders else stage.dims[-1]


class _Uses:
    """Where stages are needed, for a tile of the output: two with equal uses are needed over the same box."""

    def __init__(self, graph: Graph, output: str) -> None:
        self.graph = graph
        self._found: dict[str, Uses] = {output: frozenset([output])}

    def of(self, name: str) -> Uses:
        if name not in self._found:
            stage = self.graph.stage[name]
            consumers = [self.graph.stage[c] for c in self.graph.consumers[name]]
            uncertain = stage.domain is not None or len(stage.buffers) > 1 or any(map(_may_narrow, consumers))
            self._found[name] = (
                frozenset([name]) if uncertain else frozenset((self.of(c.name), _at(c, name)) for c in consumers)
            )
        return self._found[name]


def _may_narrow(consumer: Stage) -> bool:
    """Whether conditions decide what it reads."""
    return bool(consumer.updates) or any(isinstance(e, Op) and e.op == "select" for e in walk(*consumer.pure.values))


def _at(consumer: Stage, name: str) -> frozenset[object]:
    loads = (e for e in walk(*consumer.pure.values) if isinstance(e, Load) and e.buffer == name)
    return frozenset(tuple(map(key, e.indices)) for e in loads)
