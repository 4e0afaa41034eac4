"""`explain(html=FILE)`: one page that needs nothing else, and shows stages, tiles, loops and costs."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

import pantile as pt
from pantile.analysis.interval import Interval
from pantile.analysis.regions import required
from pantile.explain.diagram import GAP, layout
from pantile.explain.markup import Markup, join, tag
from pantile.explain.windows import Window, tiles
from pantile.machine import named
from pantile.schedule.schedule import groups

MACHINE = named("neoverse-n1")
Y, X = pt.vars("y x")


def blurred(stages: int = 3) -> pt.Pipeline:
    """Windows of three in both directions, one after the other."""
    img = pt.Input("img", "float32", 2)
    before, funcs = pt.edge(img), []
    for k in range(stages):
        f = pt.Func(f"f{k}")
        f[Y, X] = before[Y, X] + pt.select(X < 1000, before[Y + 1, X + 1], 0)  # </td><script>alert("mine")</script>
        before = f
        funcs.append(f)
    return pt.Pipeline(funcs[-1], shape=img.shape)


TILED = pt.Schedule(
    pt.on("f0").compute_at("f2", "xo"),
    pt.on("f1").compute_inline(),
    pt.on("f2").tile("y", "x", "yo", "xo", "yi", "xi", 16, 32).parallel("yo"),
)


class Parsed(HTMLParser):
    """What is open is closed in its turn."""

    VOID = ("meta",)

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, name: str, attributes: object) -> None:
        self.tags[name] += 1
        if name not in self.VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("pages") / "page.html"
    p = blurred().with_schedule(TILED, estimates={"img": (200, 300)}, machine=MACHINE)
    assert p.explain(html=file) == p.explain(html=str(file)) == p.explain()
    return file.read_text()


def test_it_is_whole_and_needs_nothing(page: str) -> None:
    parsed = Parsed(page)
    assert parsed.tags["svg"] == 3  # the stages, an image, a tile
    assert not parsed.tags["script"] and not parsed.tags["link"] and not parsed.tags["img"]
    assert not re.search(r"https?:|url\(|@import|src=", page)
    assert "prefers-color-scheme: dark" in page


def test_it_shows_what_the_text_says(page: str) -> None:
    text = Parsed(page).text
    for shown in ("img 200x300", "bound by", "arithmetic", "f0, f2, tiles y 16 × x 32", "130 tiles", "f2 16 × 32",
                  "f0 18 × 34", " are inlined", 'pt.on("f1").compute_inline()', "produce f0:"):  # fmt: skip
        assert shown in text, shown


def test_loops_stand_beside_their_lines(page: str) -> None:
    (row,) = [row for row in page.split("<tr") if ">    " in row and "produce f2:" in row.split("</td>")[0]]
    assert "test_page.py:" in row and "f[Y, X] = before[Y, X] + pt.select(X &lt; 1000" in row


def test_text_from_anywhere_is_escaped() -> None:
    assert tag("td", '<b>"', title='<">') == '<td title="&lt;&quot;&gt;">&lt;b&gt;&quot;</td>'
    assert join("<", Markup("<i>")) == "&lt;<i>"


def test_without_sizes_there_are_no_times(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    blurred().with_schedule(TILED).explain(html=file)
    parsed = Parsed(file.read_text())
    assert parsed.tags["svg"] == 1 and "Where the time goes" not in parsed.text


def test_windows_are_what_a_tile_reads() -> None:
    p = blurred().with_schedule(TILED, estimates={"img": (200, 300)}, machine=MACHINE)
    problem = p.problem(img=(200, 300))
    scope = {name: Interval.point(value) for name, value in problem.scalars.items()}
    boxes = required(problem.graph, {"f2": (Interval(0, 199), Interval(0, 299))}, scope)
    inlined = {s.name for s in problem.graph.stages} - {"f0", "f2"}
    found = tiles(problem.graph, groups(TILED)[0], boxes, problem.scalars, inlined)
    assert found is not None and (found.image, found.tile) == ((200, 300), (16, 32))
    assert Window("f0", 18, 34) in found.windows


def test_nodes_do_not_overlap_and_edges_go_down() -> None:
    names = [f"n{k}" for k in range(60)]
    edges = [(names[k // 3], names[k]) for k in range(1, 60)] + [(names[k], names[59]) for k in (2, 7, 30)]
    found = layout({n: 40.0 + 3 * len(n) for n in names}, edges)
    for a in names:
        for b in names:
            (xa, ya), (xb, yb) = found.place[a], found.place[b]
            assert a == b or ya != yb or abs(xa - xb) >= 40 + GAP - 1e-6
    assert all(found.place[a][1] < found.place[b][1] for a, b in edges)
    assert all(len(found.bends[a, b]) == found.place[b][1] - found.place[a][1] - 1 for a, b in edges)
