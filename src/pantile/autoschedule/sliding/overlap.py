"""Which values of a stage are shared by iterations of its consumers, and how stages move with the loops of one of
these.

    blur_y[y, x] = blur_x[y, x] + blur_x[y + 1, x] + blur_x[y + 2, x]     ->     overlap of blur_x along y: 2

Along a loop that no index uses, all values are shared (`WHOLE`): those of gray along c in gray[y, x] * img[y, x, c].

From this follows what sioutas-thesis chapter 5 needs to know about the stages of a pipeline: how much of them is used
again, how much work they are, and which of them can be fused into their consumers at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import Any
from weakref import WeakKeyDictionary

from ...analysis.access import Access, accesses_by_buffer, accesses_of
from ...dataclass import cached_property, dataclass
from ...expr.nodes import Cast, Const, Expr, Load, Op, Var
from ...expr.visit import variables, walk
from ...graph.nodes import Definition, Graph, Stage
from ...schedule.default import CHEAP_LOADS, CHEAP_OPERATIONS
from ...schedule.updates import is_independent, pure_dims
from ..common.facts import PipelineFacts
from ..common.shared_intervals import SharedIntervals
from ..strategy import Problem

WHOLE = 1 << 30

_KNOWN: WeakKeyDictionary[Stage, dict[tuple[str, ...], dict[str, int]]] = WeakKeyDictionary()
# A dim of a producer, the dim of the consumer that it moves with, if any, how fast, and whether it is `_is_plain`.
_Move = tuple[str, str | None, Fraction, bool]
_MOVES: WeakKeyDictionary[Stage, dict[tuple[str, ...], tuple[_Move, ...]]] = WeakKeyDictionary()
MOST_WHOLE = 256  # points along a dim that is read as a whole by every tile
MOST_SHARED = 32  # outputs for which the needs of their tiles are memoized


def overlaps(producer: Stage, consumer: Stage) -> dict[str, int]:
    """Map dims of the consumer to the number of values that an iteration along it shares with the next one, if any."""
    known = _KNOWN.setdefault(consumer, {})
    if producer.buffers not in known:
        reads = accesses_of(producer, consumer)
        shared = {dim: _shared_extent(dim, reads) for dim in consumer.dims}
        known[producer.buffers] = {dim: count for dim, count in shared.items() if count > 0}
    return known[producer.buffers]


def shares_reads(consumer: Stage, dim: str) -> bool:
    """Whether an iteration along a dim reads some value of a stage or an input that is known to be read by the next
    one, too."""
    return any(_shared_extent(dim, reads) > 0 for of in accesses_by_buffer(consumer) for reads in of.values())


def _shared_extent(dim: str, reads: Iterable[Access]) -> int:
    """The overlap of iterations d and d + 1, which read scale*d + [low, high] and the same range moved by scale."""
    indices = [i for a in reads for i in a.indices if i is not None and i.dim == dim]
    if not indices:
        return WHOLE
    low, high = min(i.low for i in indices), max(i.high for i in indices)
    return ceil(high - low + 1 - max(abs(i.scale) for i in indices))


def is_read_again(producer: Stage, consumer: Stage) -> bool:
    """Whether a reduction loop of the consumer reads the same value in all of its iterations."""
    reductions = [d for d in consumer.definitions if d.domain]
    return any(_repeats(d, e) for d in reductions for e in d.loads if e.buffer in producer.buffers)


def _repeats(d: Definition, load: Load) -> bool:
    used = {n for i in load.indices for n in variables(i)}
    return any(r.name not in used for r in d.domain)


@dataclass(frozen=True)
class Motion:
    """A dim of a stage moves with a dim of the output by `rate` points per iteration. If it is `steady`, no clamp or
    other index disturbs its steps, so that it can slide."""

    dim: str
    rate: Fraction
    steady: bool


def motions(graph: Graph, members: Collection[str], output: str) -> dict[str, dict[str, Motion]]:
    """How the dims of each member move with the loops of the output; dims that do not move are left out."""
    own = graph.stage[output]
    motion_of = {output: {d: Motion(d, Fraction(1), True) for d in own.dims}}
    for stage in reversed(graph.stages):
        if stage.name in members and stage.name != output:
            motion_of[stage.name] = _motion(graph, stage, motion_of)
    return motion_of


def _motion(graph: Graph, stage: Stage, motion_of: dict[str, dict[str, Motion]]) -> dict[str, Motion]:
    mine: dict[str, Motion] = {}
    unsteady: set[str] = set()
    for name in graph.consumers[stage.name]:
        if name not in motion_of:
            continue
        for dim, along, scale, plain in _moves(stage, graph.stage[name]):
            _join(mine, unsteady, dim, _followed(along, scale, motion_of[name]), plain)
    return {d: Motion(m.dim, m.rate, m.steady and d not in unsteady) for d, m in mine.items()}


def _join(mine: dict[str, Motion], unsteady: set[str], dim: str, motion: Motion | None, plain: bool) -> None:
    if motion is None or not plain or not motion.steady or mine.get(dim, motion) != motion:
        unsteady.add(dim)
    if motion is not None:
        mine.setdefault(dim, motion)


def _moves(producer: Stage, consumer: Stage) -> tuple[_Move, ...]:
    """The distinct moves; the reads of a stencil have few."""
    known = _MOVES.setdefault(consumer, {})
    if producer.buffers not in known:
        known[producer.buffers] = tuple(
            dict.fromkeys(
                (dim, None, Fraction(0), False) if index is None else (dim, index.dim, index.scale, _is_plain(e))
                for a in accesses_of(producer, consumer)
                for dim, index, e in zip(producer.dims, a.indices, a.load.indices, strict=True)
            )
        )
    return known[producer.buffers]


def _followed(along: str | None, scale: Fraction, consumer: dict[str, Motion]) -> Motion | None:
    """How an index moves with the output, given how its consumer does."""
    m = consumer.get(along) if along is not None and scale > 0 else None
    return None if m is None else Motion(m.dim, m.rate * scale, m.steady)


def _is_plain(e: Expr) -> bool:
    """Whether an expression consists of sums, products and quotients of coordinates and constants."""
    if isinstance(e, (Const, Var)):
        return True
    if isinstance(e, Cast):
        return _is_plain(e.value)
    return isinstance(e, Op) and e.op in ("add", "sub", "mul", "floordiv") and all(map(_is_plain, e.args))


class StageReuse:
    """The reuse of all stages, memoized."""

    def __init__(self, problem: Problem) -> None:
        self.facts: PipelineFacts = problem.facts
        self.graph = problem.graph
        self._shared: dict[
            str, dict[object, SharedIntervals]
        ] = {}  # by output; the one that was requested most recently comes last

    def shared(self, output: str, tile: Mapping[str, Any]) -> SharedIntervals:
        """The intervals that segments ending in one stage have in common, over the same tiles of it."""
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
        """The stages of which a reduction reads the same value more than once."""
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
        """Whether the values of a stage can be computed tile by tile of its consumers."""
        stage = self.graph.stage
        consumers = [stage[c] for c in self.facts.consumers[name]]
        regular = is_regular(stage[name]) and all(map(is_regular, consumers))
        return regular and self.facts.is_limited(name) and all(self._reads_locally(stage[name], c) for c in consumers)

    def _reads_locally(self, producer: Stage, consumer: Stage) -> bool:
        """Whether every read moves with some coordinate, and all extents are small along dims in which it may reach
        anywhere."""
        extents = self.facts.extents(producer.name)
        reads = accesses_of(producer, consumer)
        moving = all(any(i is not None and i.dim is not None for i in a.indices) for a in reads)
        pairs = [pair for a in reads for pair in zip(a.indices, extents, strict=True)]
        small = all(index is not None or extent <= MOST_WHOLE for index, extent in pairs)
        return moving and small and not _wraps(producer, consumer)


def _wraps(producer: Stage, consumer: Stage) -> bool:
    """Whether the remainder of a coordinate is an index, as for values in panels: then the rows that are read lie
    apart."""
    indices = [i for a in accesses_of(producer, consumer) for i in a.load.indices]
    return any(isinstance(e, Op) and e.op == "mod" and variables(e) for e in walk(*indices))


def is_regular(stage: Stage) -> bool:
    """Whether all definitions run over all dims in any order, so that the stage is neither a scan nor a scatter."""
    return all(
        pure_dims(stage, d) == stage.dims and all(is_independent(stage, d, n) for n in stage.dims)
        for d in stage.definitions
    )
