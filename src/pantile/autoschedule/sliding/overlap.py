"""Which values of a stage the iterations of its consumers share, and how stages move with the loops of one of them.

    blur_y[y, x] = blur_x[y, x] + blur_x[y + 1, x] + blur_x[y + 2, x]     ->     overlap of blur_x along y: 2

Along a loop that no index mentions all values are shared (`WHOLE`): those of gray along c in gray[y, x] * img[y, x, c].
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fractions import Fraction
from math import ceil
from weakref import WeakKeyDictionary

from ...analysis.access import Access, accesses_by_buffer, accesses_of
from ...dataclass import dataclass
from ...expr.nodes import Cast, Const, Expr, Load, Op, Var
from ...expr.visit import variables
from ...graph.nodes import Definition, Graph, Stage

WHOLE = 1 << 30

_KNOWN: WeakKeyDictionary[Stage, dict[tuple[str, ...], dict[str, int]]] = WeakKeyDictionary()
# A dim of a producer, the dim of the consumer that it moves with, if any, how fast, and whether it is `_is_plain`.
_Move = tuple[str, str | None, Fraction, bool]
_MOVES: WeakKeyDictionary[Stage, dict[tuple[str, ...], tuple[_Move, ...]]] = WeakKeyDictionary()


def overlaps(producer: Stage, consumer: Stage) -> dict[str, int]:
    """Dim of the consumer -> how many values along it an iteration shares with the next one, if any."""
    known = _KNOWN.setdefault(consumer, {})
    if producer.buffers not in known:
        reads = accesses_of(producer, consumer)
        shared = {dim: _shared_extent(dim, reads) for dim in consumer.dims}
        known[producer.buffers] = {dim: count for dim, count in shared.items() if count > 0}
    return known[producer.buffers]


def shares_reads(consumer: Stage, dim: str) -> bool:
    """Whether an iteration along a dim reads some value of a stage or an input that the next one reads, too, as far as
    is known."""
    return any(_shared_extent(dim, reads) > 0 for of in accesses_by_buffer(consumer) for reads in of.values())


def _shared_extent(dim: str, reads: Iterable[Access]) -> int:
    """Iterations d and d + 1 read scale*d + [low, high] and the same moved by scale."""
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
    """A dim of a stage moves with a dim of the output, `rate` points per iteration; `steady`: in steps that no clamp or
    other index disturbs, so that it can slide."""

    dim: str
    rate: Fraction
    steady: bool


def motions(graph: Graph, members: Collection[str], output: str) -> dict[str, dict[str, Motion]]:
    """How the dims of each member move when the loops of the output do; dims that do not are left out."""
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
    """All different ones: the reads of a stencil have few."""
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
