"""An explanation as a self-contained HTML page, without network access or scripts."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import backends
from ..analysis.interval import Interval
from ..analysis.regions import required
from ..cost_model import Causes, StageCost
from ..cost_model.result import named, time
from ..errors import Location, UserError, shown
from ..graph.nodes import Graph
from ..schedule.schedule import Group, groups
from .diagram import Look, diagram
from .differences import differences
from .explanation import Explanation, Timing
from .markup import STYLE, Markup, join, tag
from .text import bound, sizes, waited
from .windows import picture, tiles

MOST_BARS, MOST_PICTURES = 14, 6
_HUE = 47  # degrees between the hues of neighbouring groups
MOST_LINES, MOST_SOURCE = 3000, 12
_PRODUCE = re.compile(r"\s*produce (\S+):")
_LOOP = re.compile(r"\s*(?:\w+ )*for (\S+?)\.(?:u(\d+)\.)?[^ .]")


def as_page(e: Explanation, loops: str) -> str:
    """The HTML of the page."""
    all_groups = groups(e.scheduled.schedule)
    hues: dict[str, int | None] = {n: k * _HUE % 360 for k, g in enumerate(all_groups) for n in (g.root, *g.members)}
    parts = [_head(e), *_times(e.timing, hues), *_kernels(e.launched), _graph(e, all_groups, hues)]
    parts += [*_pictures(e, all_groups, hues), *_losers(e), _loops(e, loops, hues), *_words(e)]
    title = f"{e.name} explained"
    head = tag(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('main', *parts)), lang='en')}\n"


def write_page(file: Any, page: str) -> None:
    """Write the page to the user's file."""
    try:
        file = os.fspath(file)
        Path(file).write_text(page, encoding="utf-8")
    except (TypeError, ValueError):
        raise UserError(f"html={shown(file)} is not a file; pass a path such as html='explained.html'") from None
    except OSError as error:
        raise UserError(f"html={shown(file)} cannot be written: {error.strerror or error}") from None


def _head(e: Explanation) -> Markup:
    parts = [tag("h1", e.name)]
    t = e.timing
    if t is not None:
        threads = f"{t.threads} thread{'' if t.threads == 1 else 's'}"
        parts.append(tag("p", f"{sizes(t.arguments)}; {threads}"))
        figures = [("predicted", time(t.cost.seconds))]
        if t.measured is not None:
            figures.insert(0, (f"measured, best of {t.measured.calls}", time(t.measured.seconds)))
        figures.append((f"bound by {t.limits.by}", time(t.limits.least)))
        each = [tag("div", tag("b", value), tag("span", what)) for what, value in figures]
        parts += [tag("div", *each, class_="figures"), tag("p", bound(t))]
    if e.launched is not None:
        parts += [tag("p", e.launched.head), *([] if e.measured is None else [tag("p", waited(e.measured))])]
    return tag("header", *parts)


def _kernels(launched: backends.LaunchReport | None) -> Iterator[Markup]:
    """The kernels that a call launches on a GPU."""
    if launched is not None:
        head, *others = launched.rows
        rows = [tag("tr", *(tag("td", cell) for cell in row)) for row in others]
        yield tag("h2", "Kernels")
        yield tag("div", tag("table", tag("tr", *(tag("th", h) for h in head)), *rows, class_="plain"), class_="scroll")
        yield tag("p", launched.memory)


# ---- bars


def _times(t: Timing | None, hues: Mapping[str, int | None]) -> Iterator[Markup]:
    if t is None:
        return
    yield tag("h2", "Where the time goes")
    names = [name for name, _ in named(Causes())]
    keys = [tag("span", tag("i", class_=f"c{k}"), name) for k, name in enumerate(names)]
    yield tag("p", *keys, class_="key")
    stages = sorted(t.cost.stages, key=lambda s: -s.seconds)
    longest = max((s.seconds for s in stages), default=0.0) or 1.0
    rows = [_bar("all", t.cost.seconds, t.cost.causes, 1.0, "below: stages, relative to the longest one")]
    rows += [_stage_bar(s, s.seconds / longest, t.cost.seconds) for s in stages[:MOST_BARS]]
    if len(stages) > MOST_BARS:
        rest = sum(s.seconds for s in stages[MOST_BARS:])
        rows.append(tag("tr", tag("td", f"{len(stages) - MOST_BARS} more"), tag("td", time(rest)), tag("td")))
    yield tag("table", *rows, class_="bars")


def _stage_bar(s: StageCost, part: float, whole: float) -> Markup:
    again = f", {100 * s.redundant:.0f} % computed again" if s.redundant >= 0.005 else ""
    return _bar(s.name, s.seconds, s.causes, part, f"{100 * s.seconds / whole:.0f} %{again}")


def _bar(name: str, seconds: float, causes: Causes, part: float, word: str) -> Markup:
    """A bar in the colours of the causes, in proportion to the longest one."""
    total = max(causes.seconds, 1e-12)
    pieces = [
        tag("i", class_=f"c{k}", style=f"width:{60 * part * s / total:.2f}%", title=f"{cause} {s / total:.0%}")
        for k, (cause, s) in enumerate(named(causes))
        if s > 0.002 * total
    ]
    return tag("tr", tag("td", name), tag("td", time(seconds)), tag("td", *pieces, tag("span", word)))


# ---- groups


def _graph(e: Explanation, all_groups: list[Group], hues: Mapping[str, int | None]) -> Markup:
    graph = e.scheduled.graph
    seconds = {} if e.timing is None else {s.name: s.seconds for s in e.timing.cost.stages}
    looks = {n: Look(hue, time(seconds[n]) if n in seconds else "") for n, hue in hues.items()}
    legend = []
    for g in all_groups:
        members = (*g.members, g.root)
        cut = ", tiles " + " × ".join(f"{loop} {n}" for loop, n in g.tiles) if g.tiles else ""
        took = sum(seconds.get(n, 0.0) for n in members)
        chip = tag("i", class_="chip", style=f"--h:{hues[g.root]}")
        legend.append(tag("li", chip, ", ".join(members), tag("small", f"{cut}{f', {time(took)}' if took else ''}")))
    drawn = tag("div", diagram(graph, looks), class_="scroll")
    inlined = sum(s.name not in looks for s in graph.stages)
    count = f"{inlined} of {len(graph.stages)}"
    word = f"Stages of one colour are computed together. {count} are inlined where they are read."
    return tag("section", tag("h2", "Stages"), tag("p", word), drawn, tag("ul", *legend, class_="legend"))


def _pictures(e: Explanation, all_groups: list[Group], hues: Mapping[str, int | None]) -> Iterator[Markup]:
    """The pictures of the groups that take longest."""
    t = e.timing
    if t is None:
        return
    graph = e.scheduled.graph
    scope = {name: Interval.point(value) for name, value in t.scalars.items()}
    whole = {name: tuple(Interval(0, n - 1) for n in shape) for name, shape in t.shapes.items()}
    boxes = required(graph, whole, scope)
    seconds = {s.name: s.seconds for s in t.cost.stages}
    slowest = sorted(all_groups, key=lambda g: -sum(seconds.get(n, 0.0) for n in (g.root, *g.members)))
    inlined = {s.name for s in graph.stages if s.name not in hues}
    drawn = []
    for g in slowest[:MOST_PICTURES]:
        shown = tiles(graph, g, boxes, t.scalars, inlined)
        if shown is not None:
            drawn.append(tag("figure", tag("figcaption", g.root), picture(shown, hues, g.root)))
    if drawn:
        yield tag("h2", "Tiles and windows")
        yield tag("p", "Images in tiles, and what one tile needs of all that it is computed from, in rows × columns.")
        yield tag("div", *drawn, class_="pictures")


# ---- words


def _losers(e: Explanation) -> Iterator[Markup]:
    if e.report is not None and e.report.alternatives:
        mine = e.scheduled.schedule
        cells = [(time(a.seconds), a.name, a.why, differences(mine, a.schedule)) for a in e.report.alternatives]
        rows = [tag("tr", *(tag("td", cell) for cell in row)) for row in cells]
        head = tag("tr", *(tag("th", h) for h in ("predicted", "from", "why it lost", "what it does otherwise")))
        yield tag("h2", "Next best")
        yield tag("div", tag("table", head, *rows, class_="plain"), class_="scroll")


def _loops(e: Explanation, loops: str, hues: Mapping[str, int | None]) -> Markup:
    return tag("section", tag("h2", "Loops"), listing(loops, e.scheduled.graph, hues))


def _words(e: Explanation) -> Iterator[Markup]:
    yield tag("h2", "Schedule")
    yield tag("pre", repr(e.scheduled.schedule))
    if e.report is not None:
        yield tag("details", tag("summary", "what the strategy reports"), tag("pre", str(e.report)))
    if e.rewritten.changes:
        yield tag("details", tag("summary", "what algebra has changed"), tag("pre", str(e.rewritten)), open="")


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
