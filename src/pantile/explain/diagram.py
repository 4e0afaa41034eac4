"""The stages of a pipeline and their reads as SVG; stages of one group share a colour.

Nodes are laid out in layers, producers above consumers, with few crossings:

1. A node is one layer below the lowest of its producers (a source is just above its consumers).
2. An edge across several layers gets a bend in each, which is placed like a node.
3. The nodes of each layer are ordered by the mean position of their neighbours, in several sweeps down and up.
4. Then nodes move towards their neighbours, as far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ..dataclass import dataclass
from ..graph.nodes import Graph
from .markup import Markup, join, tag

MOST_WITH_INLINED = 36  # stages; in larger graphs, inlined ones are left out
_LONGEST = 22  # characters of a name
_CHARACTER, _PADDING, _HEIGHT, _PITCH = 6.7, 16.0, 34.0, 62.0
SWEEPS = 6
GAP, BEND = 14.0, 10.0  # between nodes; the width of a bend


@dataclass(frozen=True)
class Look:
    """The look of a stage: the hue of its group, if any, and a word below its name."""

    hue: int | None
    word: str


def diagram(graph: Graph, looks: Mapping[str, Look]) -> Markup:
    """The diagram of a graph; `looks` has the computed stages, and all others are inlined."""
    shown, edges = _shown(graph, looks)
    widths = {n: _PADDING + _CHARACTER * max(len(_short(n)), len(looks[n].word) if n in looks else 0) for n in shown}
    where = layout(widths, edges)
    height = where.layers * _PITCH - _PITCH + _HEIGHT
    drawn = [_edge(where.place[a], where.bends[a, b], where.place[b]) for a, b in edges]
    drawn += [_node(graph, n, looks.get(n), *where.place[n], widths[n]) for n in shown]
    margin = 6.0
    box = f"{-margin} {-margin} {where.width + 2 * margin:.0f} {height + 2 * margin:.0f}"
    size = {"width": where.width + 2 * margin, "height": height + 2 * margin}
    return tag("svg", *drawn, viewBox=box, class_="graph", role="img", aria_label="stages", **size)


def _shown(graph: Graph, looks: Mapping[str, Look]) -> tuple[list[str], list[tuple[str, str]]]:
    """The visible nodes, producers first, and the edges between them."""
    few = len(graph.stages) <= MOST_WITH_INLINED
    names = [i.name for i in graph.arguments] + [s.name for s in graph.stages if few or s.name in looks]
    nodes = set(names)
    edges: dict[tuple[str, str], None] = {}
    for name in names:
        pending, seen = list(graph.consumers[name]), set[str]()
        while pending:
            reader = pending.pop(0)
            if reader in nodes:
                edges[name, reader] = None
            elif reader not in seen:
                seen.add(reader)
                pending += graph.consumers[reader]
    used = {n for edge in edges for n in edge} | {s.name for s in graph.stages}
    return [n for n in names if n in used], list(edges)


def _edge(a: tuple[float, int], bends: list[tuple[float, int]], b: tuple[float, int]) -> Markup:
    """A curve down from one node to another, through its bends."""
    between = [(x, k * _PITCH + _HEIGHT / 2) for x, k in bends]
    points = [(a[0], a[1] * _PITCH + _HEIGHT), *between, (b[0], b[1] * _PITCH)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return tag("path", d=path, class_="edge")


def _node(graph: Graph, name: str, look: Look | None, x: float, level: int, width: float) -> Markup:
    kind = "input" if name in graph.input else "inlined" if look is None else "stage"
    if name in graph.output:
        kind += " output"
    word = {"input": "input", "inlined": "inlined"}.get(kind.split()[0], look.word if look else "")
    y = level * _PITCH
    hue = None if look is None or look.hue is None else f"--h:{look.hue}"
    rectangle = tag("rect", x=x - width / 2, y=y, width=width, height=_HEIGHT, rx=6, class_=kind, style=hue)
    title = tag("title", f"{name}: {word}")
    texts = (tag("text", _short(name), x=x, y=y + 14), tag("text", word, x=x, y=y + 27, class_="word"))
    return tag("g", join(title, rectangle, *texts))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


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
