"""Aligns the loops of several stages in a common space, in which every dependence has constant distances.

Stages at other resolutions are scaled: if out[x] reads f[x // 2], x of f is stretched by 2 (polymage-plus §2.2).

    align(graph, {"f", "out"})  ->  scales {"f": {"x": (0, 2)}, "out": {"x": (0, 1)}},
                                    one dependence f -> out with distances ([0, 1],)

Each dim of each stage is mapped to a dim of the space and a scale. A dim that is read only at constant indices, such as
the channel of an image, is not mapped: all of it is needed at every point.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm

from ..dataclass import dataclass
from ..graph.nodes import Definition, Graph, Stage
from .access import Access, Index, accesses

# A dim of the space, and the distance in it that one step of the stage's own dim corresponds to.
Axis = tuple[int, Fraction]
Range = tuple[Fraction, Fraction]
Reads = Callable[[Stage, Definition], Sequence[Access]]


@dataclass(frozen=True)
class Dependence:
    """At point p of the space, `consumer` reads `producer` at p + distance. `distance` is a range per dim of the
    space."""

    producer: str
    consumer: str
    distance: tuple[Range, ...]


@dataclass(frozen=True)
class Alignment:
    """The stages of a group in a common space. Scales are integers. Dims without an axis are local to their stage."""

    rank: int
    axes: Mapping[str, Mapping[str, Axis]]
    dependences: tuple[Dependence, ...]

    def reach(self) -> tuple[Range, ...]:
        """The maximum distance of reads in both directions, per dim of the space."""
        none = (Fraction(0), Fraction(0))
        return tuple(
            (
                min([none[0], *(d.distance[k][0] for d in self.dependences)]),
                max([none[1], *(d.distance[k][1] for d in self.dependences)]),
            )
            for k in range(self.rank)
        )


def align(graph: Graph, members: Collection[str], reads: Reads = accesses) -> Alignment | None:
    """The alignment of these stages; None if there is none with constant distances, or if they are not connected. A
    caller that aligns many subsets of the same stages should pass a memoized `reads`."""
    return _Aligner(graph, members, reads).result()


class _Aligner:
    """Aligns stages from consumers to producers. The dims of the space are those of the first stage, and later stages
    may add dims."""

    def __init__(self, graph: Graph, members: Collection[str], reads: Reads) -> None:
        self.reads = reads
        self.stages = [s for s in reversed(graph.stages) if s.name in members]
        self.names = {s.name for s in self.stages}
        self.graph = graph
        self.axes: dict[str, dict[str, Axis]] = {}
        self.rank = 0

    def result(self) -> Alignment | None:
        if not self.stages:
            return None
        edges = [(s, a) for s in self.stages for d in s.definitions for a in self.reads(s, d) if self._inside(s, a)]
        self._start(self.stages[0])
        pending = edges
        while pending:
            rest = [e for e in pending if not self._propagate(*e)]
            if len(rest) == len(pending):
                return None
            pending = rest
        if len(self.axes) < len(self.stages):
            return None
        self._to_integers()
        distances: dict[tuple[str, str], tuple[Range, ...]] = {}
        for consumer, access in edges:
            distance = self._distance(consumer, access)
            if distance is None:
                return None
            pair = (self.graph.producer[access.buffer].name, consumer.name)
            distances[pair] = _hull(distances[pair], distance) if pair in distances else distance
        return Alignment(self.rank, self.axes, tuple(Dependence(p, c, d) for (p, c), d in distances.items()))

    def _inside(self, stage: Stage, access: Access) -> bool:
        """Whether an access reads another stage of the group."""
        producer = self.graph.producer.get(access.buffer)
        return producer is not None and producer is not stage and producer.name in self.names

    def _start(self, stage: Stage) -> None:
        self.axes[stage.name] = {d: (k, Fraction(1)) for k, d in enumerate(stage.dims)}
        self.rank = stage.ndim

    def _propagate(self, consumer: Stage, access: Access) -> bool:
        """Map one end of a dependence to match the other end. Return whether that was possible."""
        producer = self.graph.producer[access.buffer]
        if consumer.name in self.axes:
            self._to_producer(consumer, producer, access)
            return True
        if producer.name in self.axes:
            self._to_consumer(consumer, producer, access)
            return True
        return False

    def _to_producer(self, consumer: Stage, producer: Stage, access: Access) -> None:
        mine = self.axes.setdefault(producer.name, {})
        theirs = self.axes[consumer.name]
        for dim, index in zip(producer.dims, access.indices, strict=True):
            if dim not in mine and index is not None and index.dim in theirs and index.scale > 0:
                axis, scale = theirs[index.dim]
                if all(axis != k for k, _ in mine.values()):
                    mine[dim] = (axis, scale if index.scale == 1 else scale / index.scale)

    def _to_consumer(self, consumer: Stage, producer: Stage, access: Access) -> None:
        """Map a consumer to match a producer that is already mapped. Dims that do not occur in the access become new
        dims of the space."""
        mine = self.axes.setdefault(consumer.name, {})
        theirs = self.axes[producer.name]
        for dim, index in zip(producer.dims, access.indices, strict=True):
            if dim in theirs and index is not None and index.dim is not None and index.scale > 0:
                axis, scale = theirs[dim]
                if index.dim not in mine and all(axis != k for k, _ in mine.values()):
                    mine[index.dim] = (axis, _times(scale, index.scale))
        for dim in consumer.dims:
            if dim not in mine:
                mine[dim] = (self.rank, Fraction(1))
                self.rank += 1

    def _to_integers(self) -> None:
        """Multiply the scales of each dim of the space so that they are integers without a common factor."""
        for k in range(self.rank):
            scales = [scale for axes in self.axes.values() for axis, scale in axes.values() if axis == k]
            factor = Fraction(lcm(*(s.denominator for s in scales)))
            factor /= gcd(*(int(_times(s, factor)) for s in scales))
            if factor == 1:
                continue
            for axes in self.axes.values():
                axes.update({d: (a, s * factor) for d, (a, s) in axes.items() if a == k})

    def _distance(self, consumer: Stage, access: Access) -> tuple[Range, ...] | None:
        producer = self.graph.producer[access.buffer]
        distance = [(Fraction(0), Fraction(0))] * self.rank
        for dim, index in zip(producer.dims, access.indices, strict=True):
            axis = self.axes[producer.name].get(dim)
            if index is None or not self._fits(consumer, index, axis):
                return None
            if axis is not None and index.dim is not None:
                distance[axis[0]] = (_times(index.low, axis[1]), _times(index.high, axis[1]))
        return tuple(distance)

    def _fits(self, consumer: Stage, index: Index, axis: Axis | None) -> bool:
        """Whether a read moves through the space as fast as its consumer. A read at a constant index needs no axis."""
        if index.dim is None:
            return axis is None
        theirs = self.axes[consumer.name].get(index.dim)
        if axis is None or theirs is None or theirs[0] != axis[0]:
            return False
        return theirs[1] == _times(axis[1], index.scale)


def _times(a: Fraction, factor: Fraction) -> Fraction:
    """The product of two fractions, with a fast path for the factor 1, which is by far the most common."""
    return a if factor == 1 else a * factor


def _hull(a: tuple[Range, ...], b: tuple[Range, ...]) -> tuple[Range, ...]:
    return tuple((min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True))
