"""The loops of a pipeline, line by line, next to the source lines that they come from."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import Location
from ..graph.nodes import Graph
from .markup import Markup, join, tag

MOST_LINES, MOST_SOURCE = 3000, 12
_PRODUCE = re.compile(r"\s*produce (\S+):")
_LOOP = re.compile(r"\s*(?:\w+ )*for (\S+?)\.(?:u(\d+)\.)?[^ .]")


def listing(loops: str, graph: Graph, hues: Mapping[str, int | None]) -> Markup:
    """A row per line; a pure definition is next to `produce`, an update next to its outermost loop."""
    rows, told = [], set[tuple[str, int]]()
    lines = loops.splitlines()
    for line in lines[:MOST_LINES]:
        definition = _defined(line)
        where = _where(graph, *definition) if definition is not None and definition not in told else None
        hue = None
        if definition is not None:
            told.add(definition)
            hue = hues.get(definition[0])
        style = None if hue is None or where is None else f"--h:{hue}"
        source = "" if where is None else _source(where)
        kind = None if style is None else "starts"
        rows.append(tag("tr", tag("td", line, title=line), tag("td", source), class_=kind, style=style))
    if len(lines) > MOST_LINES:
        rows.append(tag("tr", tag("td", f"... and {len(lines) - MOST_LINES} more lines"), tag("td")))
    head = tag("tr", tag("th", "loops"), tag("th", "your program"))
    return tag("div", tag("table", head, *rows), class_="listing")


def _defined(line: str) -> tuple[str, int] | None:
    """The stage whose definition starts at this line, and the number of the definition."""
    produced = _PRODUCE.match(line)
    if produced:
        return produced[1], 0
    loop = _LOOP.match(line)
    return (loop[1], int(loop[2])) if loop and loop[2] else None


def _where(graph: Graph, name: str, definition: int) -> Location | None:
    stage = graph.stage.get(name)
    if stage is None or definition >= len(stage.definitions):
        return None
    return stage.definitions[definition].where


def _source(where: Location) -> Markup:
    """A source line, and its continuation lines inside of brackets."""
    text = ""
    for k in range(MOST_SOURCE):
        text = f"{text} {linecache.getline(where.file, where.line + k).strip()}".strip()
        if sum(text.count(c) for c in "([{") <= sum(text.count(c) for c in ")]}"):
            break
    return join(tag("span", f"{Path(where.file).name}:{where.line} ", class_="at"), text)
