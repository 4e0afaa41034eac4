"""The stages of a pipeline and their reads as SVG; stages of one group share a colour."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from ..dataclass import dataclass
from ..graph.nodes import Graph
from .layers import layout
from .markup import Markup, join, tag

MOST_WITH_INLINED = 36  # stages; in larger graphs, inlined ones are left out
_LONGEST = 22  # characters of a name
_CHARACTER, _PADDING, _HEIGHT, _PITCH = 6.7, 16.0, 34.0, 62.0


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
