"""A set of stages in one space: the axes of their dims, the density of their points, and the distances of
dependences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import TypeVar

from ...analysis.alignment import Alignment
from ...dataclass import cached_property, dataclass
from .stage_facts import SingleStages

K = TypeVar("K")
V = TypeVar("V")
Distance = tuple[tuple[float, float], ...]  # per dim of the space: from, to


class AlignedSpace:
    """An alignment with floats instead of fractions."""

    def __init__(self, alignment: Alignment, stages: SingleStages) -> None:
        self.axes = {n: {d: (k, float(s)) for d, (k, s) in a.items()} for n, a in alignment.axes.items()}
        self.distance = {
            (d.producer, d.consumer): tuple((float(a), float(b)) for a, b in d.distance) for d in alignment.dependences
        }
        self._stages = stages
        self._output_spaces: dict[tuple[object, ...], OutputSpace] = {}

    def has(self, name: str, dims: Iterable[str]) -> bool:
        """Whether all these dims of a stage go along axes of the space."""
        return all(d in self.axes[name] for d in dims)

    def seen_from(self, output: str) -> OutputSpace:
        """The stages in units of `output`. Outputs with the same alignment share the result."""
        dims = self._stages.problem.graph.stage[output].dims
        alike = len(dims), tuple(self.axes[output].get(d) for d in dims)
        if alike not in self._output_spaces:
            self._output_spaces[alike] = OutputSpace(self._stages, self, output)
        return self._output_spaces[alike]


class OutputSpace:
    """Facts about each stage in the space, as seen from an output. Groups whose outputs have the same alignment share
    them."""

    def __init__(self, stages: SingleStages, space: AlignedSpace, output: str) -> None:
        self._stages, self._space = stages, space
        dims, own = stages.problem.graph.stage[output].dims, space.axes[output]
        self._rank = len(dims)
        self._place = {own[d][0]: k for k, d in enumerate(dims) if d in own}  # axis of the space -> dim of the output
        self._units = dict(own.values())
        self.axes = Memoized(self._axes)  # stage -> its dim -> dim of the output; all tiles have all of other dims
        self.density = Memoized(self._density)  # stage -> dim of the output -> its points per point of the output
        self.along = Memoized(self._along)  # stage -> dim of the output -> its extent there
        self.beside = Memoized(self._beside)  # stage -> points at one point of the output, in dims that this lacks
        self.distance = Memoized(self._distance)  # (producer, consumer) -> in points of the output
        # (stage, tiled dims of the output) -> its bytes at one point of these dims, and which of them it has
        self.part = Memoized(self._part)

    def _axes(self, name: str) -> dict[str, int]:
        return {d: self._place[axis] for d, (axis, _) in self._space.axes[name].items() if axis in self._place}

    def _density(self, name: str) -> dict[int, float]:
        axes, place = self._space.axes[name].values(), self._place
        return {place[axis]: self._units[axis] / scale for axis, scale in axes if axis in place}

    def _along(self, name: str) -> dict[int, int]:
        axes = self.axes[name]
        return {axes[d]: n for d, n in self._extents(name) if d in axes}

    def _beside(self, name: str) -> int:
        axes = self.axes[name]
        return prod(n for d, n in self._extents(name) if d not in axes)

    def _extents(self, name: str) -> Iterable[tuple[str, int]]:
        return zip(self._stages.problem.graph.stage[name].dims, self._stages.extents[name], strict=True)

    def _part(self, at: tuple[str, tuple[int, ...]]) -> tuple[float, tuple[int, ...]]:
        name, long = at
        whole, density = self.along[name], self.density[name]
        tiled = tuple(k for k in density if k in long)
        points = prod(density[k] for k in tiled) * prod(n for k, n in whole.items() if k not in long)
        return points * (self.beside[name] * self._stages.bytes_per_point[name]), tiled

    def _distance(self, pair: tuple[str, str]) -> Distance:
        far, units = self._space.distance[pair], self._units
        along = {k: (far[a][0] / units[a], far[a][1] / units[a]) for a, k in self._place.items()}
        return tuple(along.get(k, (0.0, 0.0)) for k in range(self._rank))


class Memoized(dict[K, V]):
    """A memoized function, as a dict."""

    def __init__(self, function: Callable[[K], V]) -> None:
        self._function = function

    def __missing__(self, key: K) -> V:
        value = self[key] = self._function(key)
        return value


@dataclass(frozen=True)
class AlignedGroup:
    """A connected set of stages in one space, whose dims are those of the last stage, the output, in their order."""

    stages: SingleStages
    names: tuple[str, ...]
    space: AlignedSpace

    @property
    def output(self) -> str:
        return self.names[-1]

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return self.stages.problem.graph.stage[self.output].dims

    @property
    def extents(self) -> tuple[int, ...]:
        return self.stages.extents[self.output]

    @cached_property
    def output_space(self) -> OutputSpace:
        """The stages of the group, as seen from the output."""
        return self.space.seen_from(self.output)

    @cached_property
    def dependences(self) -> dict[tuple[str, str], Distance]:
        """The dependence vectors of each pair (producer, consumer), in points of the output."""
        members, producers, density = set(self.names), self.stages.facts.producers, self.output_space.density
        pairs = [(producer, name) for name in self.names for producer in producers[name] if producer in members]
        centred = _centred(self.names, len(self.dims), {pair: self.output_space.distance[pair] for pair in pairs})
        return {(p, c): _narrowed(d, density[p], density[c]) for (p, c), d in centred.items()}

    def same_points(self, a: str, b: str) -> bool:
        """Whether two stages have the same dims of the space, with the same density."""
        return self.output_space.density[a] == self.output_space.density[b]


def _centred(
    names: Sequence[str], rank: int, found: Mapping[tuple[str, str], Distance]
) -> dict[tuple[str, str], Distance]:
    """Shift every stage to the middle of its consumers: a constant distance between stages is not overlap."""
    shifts = dict.fromkeys(names, (0.0,) * rank)
    ways: dict[str, list[tuple[str, Distance]]] = {n: [] for n in names}
    for (p, c), distance in found.items():
        ways[p].append((c, distance))
    centred = {}
    for name in reversed(names):
        mine = [(c, _moved(distance, shifts[c])) for c, distance in ways[name]]
        if mine:
            shifts[name] = _middle([distance for _, distance in mine])
            back = [-s for s in shifts[name]]
            for c, distance in mine:
                centred[name, c] = _moved(distance, back)
    return centred


def _middle(distances: Sequence[Distance]) -> tuple[float, ...]:
    """The middle of the range that distances span together, per dim; nearly always there is one distance."""
    if len(distances) == 1:
        return tuple([(low + high) / 2 for low, high in distances[0]])
    along = zip(*distances, strict=True)
    return tuple([(min(low for low, _ in sides) + max(high for _, high in sides)) / 2 for sides in along])


def _narrowed(distance: Distance, producer: Mapping[int, float], consumer: Mapping[int, float]) -> Distance:
    """Narrow the distance of a consumer that is coarser than its producer: it steps over what its last point has read,
    which is not overlap."""
    if producer == consumer:
        return distance
    steps = [max(0.0, 1 / consumer.get(k, 1.0) - 1 / producer.get(k, 1.0)) / 2 for k in range(len(distance))]
    middles = [(low + high) / 2 for low, high in distance]
    return tuple(
        (min(low + s, m), max(high - s, m)) for (low, high), s, m in zip(distance, steps, middles, strict=True)
    )


def _moved(distance: Distance, shift: Sequence[float]) -> Distance:
    return tuple([(low + s, high + s) for (low, high), s in zip(distance, shift, strict=True)])
