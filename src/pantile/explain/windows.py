"""The tiles of an image, and the windows that size tile needs of every stage and input, as SVG."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ..analysis.interval import Interval
from ..analysis.regions import required
from ..dataclass import dataclass
from ..expr.nodes import Number
from ..graph.nodes import Graph
from ..schedule.schedule import Group
from .markup import Markup, join, tag

_IMAGE, _ZOOM = 160.0, 230.0  # the longer side of the image; the tile when drawn large
_MOST_LINES = 48  # of a grid; more would be a grey area
_STEP = 13.0  # by which a larger window extends beyond the tile, at least
_MOST_WINDOWS = 7
_SHORT = 16  # shorter axes are not those of an image
_CHARACTER = 7.4  # the width of a character


@dataclass(frozen=True)
class Window:
    """The region of a stage or input that size tile requires, along the image's two axes."""

    name: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Tiles:
    """The tiles of an image, reduced to its last two axes."""

    image: tuple[int, int]
    tile: tuple[int, int]
    windows: Sequence[Window]


def tiles(
    graph: Graph,
    group: Group,
    boxes: Mapping[str, Sequence[Interval]],
    scalars: Mapping[str, Number],
    inlined: Collection[str],
) -> Tiles | None:
    """The tiles of a group whose root is an image; `boxes` are the required regions of a call."""
    stage = graph.stage.get(group.root)
    if stage is None or group.root not in boxes or stage.ndim < 2:
        return None
    whole = boxes[group.root]
    extents = [_extent(r) for r in whole]
    cut = dict(reversed(group.tiles))  # the outermost split of a loop counts
    tile = [min(n, cut.get(dim, n)) for dim, n in zip(stage.dims, extents, strict=True)]
    middle = tuple(_middle(r, n, t) for r, n, t in zip(whole, extents, tile, strict=True))
    scope = {name: Interval.point(value) for name, value in scalars.items()}
    # Stages of other groups are stored, and read like inputs.
    mine = {group.root, *group.members, *inlined}
    part = replace(graph, stages=tuple(s for s in graph.stages if s.name in mine))
    windows: list[Window] = []
    for buffer, box in required(part, {group.root: middle}, scope).items():
        name = graph.producer[buffer].name if buffer in graph.producer else buffer
        if name != group.root and name not in inlined and name in boxes:
            windows += _window(name, box, _axes(boxes[name]))
    y, x = _axes(whole)
    return Tiles((extents[y], extents[x]), (tile[y], tile[x]), windows)


def _middle(whole: Interval, extent: int, tile: int) -> Interval:
    """The middle tile along an axis."""
    if not whole.bounded or extent <= tile:
        return whole
    first = int(whole.low) + (extent // 2 // tile) * tile
    return Interval(first, first + tile - 1)


def _axes(whole: Sequence[Interval]) -> tuple[int, int]:
    """The rows and columns of an image: its last two long axes."""
    long = [k for k, r in enumerate(whole) if _extent(r) > _SHORT][-2:]
    y, x = long if len(long) == 2 else (len(whole) - 2, len(whole) - 1)
    return y, x


def _window(name: str, box: Sequence[Interval], axes: tuple[int, int]) -> Iterator[Window]:
    if len(box) >= 2 and all(box[k].bounded for k in axes):
        yield Window(name, *(_extent(box[k]) for k in axes))


def _extent(r: Interval) -> int:
    return int(r.high) - int(r.low) + 1 if r.bounded else 1


# ---- drawing


def picture(t: Tiles, hues: Mapping[str, int | None], root: str) -> Markup:
    """The image with its tiles to scale, and size tile with its windows and their sizes."""
    image = _image(t)
    zoom = _zoomed(t, hues, root)
    return tag("div", image, zoom, class_="tiles")


def _image(t: Tiles) -> Markup:
    rows, columns = t.image
    scale = _IMAGE / max(rows, columns)
    height, width = max(8.0, rows * scale), max(8.0, columns * scale)
    lines = []
    for n, size, vertical in ((columns, t.tile[1], True), (rows, t.tile[0], False)):
        count = -(-n // size)
        step = size * (width / columns if vertical else height / rows)
        for k in range(1, count) if count <= _MOST_LINES else ():
            at = k * step
            path = f"M{at:.1f} 0V{height:.1f}" if vertical else f"M0 {at:.1f}H{width:.1f}"
            lines.append(tag("path", d=path, class_="grid"))
    position = [(n // 2 // size) * size / n if n > size else 0.0 for n, size in zip(t.image, t.tile, strict=True)]
    shape = [max(3.0, size / n * full) for n, size, full in zip(t.image, t.tile, (height, width), strict=True)]
    tile = tag("rect", x=position[1] * width, y=position[0] * height, width=shape[1], height=shape[0], class_="tile")
    count = -(-rows // t.tile[0]) * -(-columns // t.tile[1])
    caption = f"{rows} × {columns}: " + ("one piece" if count == 1 else f"{count} tiles of {t.tile[0]} × {t.tile[1]}")
    frame = tag("rect", x=0, y=0, width=width, height=height, class_="image")
    text = tag("text", caption, x=0, y=height + 18)
    full_width = max(width, _CHARACTER * len(caption))
    box = f"-3 -3 {full_width + 6:.0f} {height + 30:.0f}"
    return tag("svg", frame, *lines, tile, text, viewBox=box, width=full_width + 6, height=height + 30, role="img")


def _zoomed(t: Tiles, hues: Mapping[str, int | None], root: str) -> Markup:
    """Windows around the tile, the largest at the bottom; larger ones extend beyond the tile, not to scale."""
    largest = sorted(t.windows, key=lambda w: w.rows * w.columns)[-_MOST_WINDOWS:]
    shown = [Window(root, *t.tile), *largest]
    steps = [sorted({s[k] for w in shown if (s := (w.rows, w.columns))[k] > t.tile[k]}) for k in (0, 1)]
    full = [
        max(40.0, _ZOOM * min(0.62, t.tile[0] / t.tile[1])),
        max(60.0, _ZOOM * min(1.0, t.tile[1] / t.tile[0])),
    ]
    height, width = (full[k] + 2 * _STEP * len(steps[k]) for k in (0, 1))
    drawn = []
    for w in sorted(shown, key=lambda w: (-w.rows * w.columns, w.name == root)):
        size = [_drawn(n, t.tile[k], full[k], steps[k]) for k, n in enumerate((w.rows, w.columns))]
        hue = hues.get(w.name)
        drawn.append(
            tag(
                "rect",
                tag("title", f"{w.name}: {w.rows} × {w.columns}"),
                x=(width - size[1]) / 2,
                y=(height - size[0]) / 2,
                width=size[1],
                height=size[0],
                style=None if hue is None else f"--h:{hue}",
                class_="tile" if w.name == root else "window" if hue is not None else "window input",
            )
        )
    words = [f"{w.name} {w.rows} × {w.columns}" for w in shown]
    texts = [tag("text", word, x=width + 14, y=14 + 17 * k) for k, word in enumerate(words)]
    full_width, tall = width + 22 + _CHARACTER * max(map(len, words)), max(height, 17.0 * len(words) + 6)
    box = f"-3 -3 {full_width + 6:.0f} {tall + 6:.0f}"
    return tag("svg", join(*drawn, *texts), viewBox=box, width=full_width + 6, height=tall + 6, role="img")


def _drawn(n: int, tile: int, full: float, steps: Sequence[int]) -> float:
    """The drawn length of `n` pixels, next to a tile of length `full`."""
    if n > tile:
        return full + 2 * _STEP * (1 + steps.index(n))
    return max(10.0, full * n / tile)
