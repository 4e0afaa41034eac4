"""Graph layout: nodes in layers, producers above consumers, with few crossings.

1. A node is one layer below the lowest of its producers (a source is just above its consumers).
2. An edge across several layers gets a bend in each, which is placed like a node.
3. The nodes of each layer are ordered by the mean position of their neighbours, in several sweeps down and up.
4. Then nodes move towards their neighbours, as far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ..dataclass import dataclass

SWEEPS = 6
GAP, BEND = 14.0, 10.0  # between nodes; the width of a bend


@dataclass(frozen=True)
class GraphLayout:
    """The centres of nodes, as x and number of layer, and the bends of edges, from producer to consumer."""

    place: Mapping[str, tuple[float, int]]
    bends: Mapping[tuple[str, str], list[tuple[float, int]]]
    width: float
    layers: int


def layout(widths: Mapping[str, float], edges: Sequence[tuple[str, str]]) -> GraphLayout:
    """The layout of nodes, producers before consumers, with these widths."""
    level = _levels(list(widths), edges)
    size = dict(widths)
    chains = {edge: _chain(edge, level, size) for edge in edges}
    layers: list[list[str]] = [[] for _ in range(1 + max(level.values(), default=0))]
    for name, k in level.items():
        layers[k].append(name)
    above: dict[str, list[str]] = {n: [] for n in level}
    below: dict[str, list[str]] = {n: [] for n in level}
    for chain in chains.values():
        for a, b in pairwise(chain):
            below[a].append(b)
            above[b].append(a)
    _order(layers, above, below)
    x = _places(layers, above, below, size)
    left = min((x[n] - size[n] / 2 for n in x), default=0.0)
    right = max((x[n] + size[n] / 2 for n in x), default=0.0)
    place = {n: (x[n] - left, level[n]) for n in widths}
    bends = {edge: [(x[n] - left, level[n]) for n in chain[1:-1]] for edge, chain in chains.items()}
    return GraphLayout(place, bends, right - left, len(layers))


def _levels(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    level = dict.fromkeys(names, 0)
    producers: dict[str, list[str]] = {n: [] for n in names}
    consumers: dict[str, list[str]] = {n: [] for n in names}
    for a, b in edges:
        producers[b].append(a)
        consumers[a].append(b)
    for n in names:
        level[n] = 1 + max((level[p] for p in producers[n]), default=-1)
    for n in reversed(names):
        if not producers[n] and consumers[n]:
            level[n] = min(level[c] for c in consumers[n]) - 1
    return level


def _chain(edge: tuple[str, str], level: dict[str, int], size: dict[str, float]) -> list[str]:
    """The edge's ends, and a bend in each layer between."""
    a, b = edge
    bends = [f"{a}\0{b}\0{k}" for k in range(level[a] + 1, level[b])]
    for k, bend in enumerate(bends, level[a] + 1):
        level[bend], size[bend] = k, BEND
    return [a, *bends, b]


def _order(layers: list[list[str]], above: Mapping[str, list[str]], below: Mapping[str, list[str]]) -> None:
    place = {n: k for layer in layers for k, n in enumerate(layer)}
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            means = {n: _mean([place[m] for m in near[n]], place[n]) for n in layer}
            layer.sort(key=lambda n: means[n])
            place.update({n: k for k, n in enumerate(layer)})


def _places(
    layers: list[list[str]], above: Mapping[str, list[str]], below: Mapping[str, list[str]], size: Mapping[str, float]
) -> dict[str, float]:
    x: dict[str, float] = {}
    for layer in layers:
        _spread(layer, dict.fromkeys(layer, 0.0), size, x)
    for sweep in range(2 * SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = {n: _mean([x[m] for m in (*above[n], *below[n])], x[n]) for n in layer}
            _spread(layer, wanted, size, x)
    return x


def _spread(layer: Sequence[str], wanted: Mapping[str, float], size: Mapping[str, float], x: dict[str, float]) -> None:
    """Place nodes near their wanted positions, in order and apart: the mean of pushing right and of pushing left."""
    right: dict[str, float] = {}
    left: dict[str, float] = {}
    for places, names, sign in ((right, list(layer), 1.0), (left, list(reversed(layer)), -1.0)):
        end = -1e9
        for n in names:
            places[n] = sign * max(sign * wanted[n], end + GAP + size[n] / 2)
            end = sign * places[n] + size[n] / 2
    x.update({n: (right[n] + left[n]) / 2 for n in layer})


def _mean(values: Iterable[float], otherwise: float) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else otherwise
