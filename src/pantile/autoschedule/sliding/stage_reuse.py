"""What sioutas-thesis chapter 5 asks of the stages of a pipeline: how much of them is used again, how much work they
are, and which of them can be fused into what reads them at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...analysis.access import accesses_of
from ...cached import cached_property
from ...expr.nodes import Op
from ...expr.visit import variables, walk
from ...graph.nodes import Stage
from ...schedule.default import CHEAP_LOADS, CHEAP_OPERATIONS
from ...schedule.updates import is_independent, pure_dims
from ..common.facts import PipelineFacts
from ..common.shared_intervals import SharedIntervals
from ..strategy import Problem
from .overlap import is_read_again, overlaps

MOST_WHOLE = 256  # points along a dim that is read as a whole by every tile
MOST_SHARED = 32  # outputs of which it is remembered what their tiles need


class StageReuse:
    """The reuse of all stages, memoized."""

    def __init__(self, problem: Problem) -> None:
        self.facts: PipelineFacts = problem.facts
        self.graph = problem.graph
        self._shared: dict[
            str, dict[object, SharedIntervals]
        ] = {}  # by output, the one that was asked for last comes last

    def shared(self, output: str, tile: Mapping[str, Any]) -> SharedIntervals:
        """What segments that end in one stage have in common, over the same tiles of it."""
        over_tiles = self._shared[output] = self._shared.pop(output, {})
        if len(self._shared) > MOST_SHARED:
            del self._shared[next(iter(self._shared))]
        return over_tiles.setdefault(tuple([(loop, size.tobytes()) for loop, size in tile.items()]), SharedIntervals())

    @cached_property
    def overlaps(self) -> dict[str, dict[str, dict[str, int]]]:
        """W_i: stage -> consumer -> loop of the consumer -> overlap."""
        stage = self.graph.stage
        return {n: {c: overlaps(stage[n], stage[c]) for c in self.facts.consumers[n]} for n in stage}

    @cached_property
    def read_again(self) -> set[str]:
        """The stages of which a reduction reads a value more than once."""
        stage = self.graph.stage
        return {n for n in stage if any(is_read_again(stage[n], stage[c]) for c in self.facts.consumers[n])}

    @cached_property
    def work(self) -> dict[str, float]:
        """The operations per point."""
        return {n: self.facts.work(n) / max(1, self.facts.points(n)) for n in self.graph.stage}

    @cached_property
    def trivial(self) -> set[str]:
        """The stages that cost about as much to compute as to load."""
        return {
            n
            for n, stage in self.graph.stage.items()
            if self.facts.can_be_inlined(n)
            and not stage.updates
            and self.facts.arithmetic(n) <= CHEAP_OPERATIONS
            and sum(self.facts.reads(n).values()) <= CHEAP_LOADS
        }

    def may_be_fused(self, name: str) -> bool:
        """Whether its values can be computed tile by tile of what reads it."""
        stage = self.graph.stage
        consumers = [stage[c] for c in self.facts.consumers[name]]
        regular = is_regular(stage[name]) and all(map(is_regular, consumers))
        return regular and self.facts.is_limited(name) and all(self._reads_locally(stage[name], c) for c in consumers)

    def _reads_locally(self, producer: Stage, consumer: Stage) -> bool:
        """Whether every read moves with a coordinate, and along the other dims the whole that it may reach is small."""
        extents = self.facts.extents(producer.name)
        reads = accesses_of(producer, consumer)
        moving = all(any(i is not None and i.dim is not None for i in a.indices) for a in reads)
        pairs = [pair for a in reads for pair in zip(a.indices, extents, strict=True)]
        small = all(index is not None or extent <= MOST_WHOLE for index, extent in pairs)
        return moving and small and not _wraps(producer, consumer)


def _wraps(producer: Stage, consumer: Stage) -> bool:
    """Whether a coordinate's remainder is an index, as where values are laid out in panels: rows lie apart then."""
    indices = [i for a in accesses_of(producer, consumer) for i in a.load.indices]
    return any(isinstance(e, Op) and e.op == "mod" and variables(e) for e in walk(*indices))


def is_regular(stage: Stage) -> bool:
    """Whether all definitions run over all dims, and these in any order: neither a scan nor a scatter."""
    return all(
        pure_dims(stage, d) == stage.dims and all(is_independent(stage, d, n) for n in stage.dims)
        for d in stage.definitions
    )
