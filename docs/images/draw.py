"""Draws the pictures of the documentation: `python docs/images/draw.py` (needs Pillow)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pantile.cli.demo import local_contrast
from pantile.cli.scenery import scenery

FOLDER = Path(__file__).parent
WHITE, INK = (255, 255, 255), (40, 40, 48)
PALE = (238, 204, 188)
CLAY = ((196, 98, 68), (172, 80, 54), (214, 122, 88))


def main() -> None:
    """All pictures."""
    demo().save(FOLDER / "demo.png", optimize=True)
    tiles().save(FOLDER / "tiles.png", optimize=True)
    block().save(FOLDER / "block.png", optimize=True)


def demo() -> Image.Image:
    """The demo's picture: before on the left, after on the right."""
    before = scenery(1280, 1920)
    after = local_contrast()(img=before, amount=1.6)
    joined = np.concatenate([before[:, :960], after[:, 960:]], axis=1)
    image = Image.fromarray(joined).resize((640, 427), Image.Resampling.LANCZOS)
    ImageDraw.Draw(image).line([(320, 0), (320, 427)], fill=WHITE, width=2)
    return image.quantize(256)


def tiles(scale: int = 3) -> Image.Image:
    """Tiles of a consumer, and the larger, overlapping tiles of its producer that they read."""
    image = Image.new("RGB", (620 * scale, 215 * scale), WHITE)
    tile, overlap = 76 * scale, 11 * scale
    for k, (left, title) in enumerate(((20, "what each tile reads"), (340, "what it computes"))):
        for row in range(2):
            for column in range(3):
                box = _box((left + 12) * scale, 34 * scale, tile, row, column)
                _tile(image, box, overlap if k == 0 else 0, CLAY[(row + column) % 3])
        ImageDraw.Draw(image).text(((left + 12) * scale, 8 * scale), title, fill=INK, font_size=15 * scale)
    _arrow(image, (285 * scale, 118 * scale), 40 * scale, 2 * scale)
    return image.resize((620, 215), Image.Resampling.LANCZOS).quantize(64)


def block(scale: int = 3) -> Image.Image:
    """A block of a GPU: its tile of the picture, what lies in shared memory, and what a thread holds in registers."""
    image = Image.new("RGB", (800 * scale, 240 * scale), WHITE)
    draw = ImageDraw.Draw(image)

    def text(x: int, y: int, words: str) -> None:
        draw.text((x * scale, y * scale), words, fill=INK, font_size=14 * scale)

    def cells(left: int, top: int, rows: int, columns: int, colour: tuple[int, int, int], width: int = 24) -> None:
        for k in range(rows * columns):
            x, y = left + k % columns * width, top + k // columns * 24
            box = (x * scale, y * scale, (x + width) * scale, (y + 24) * scale)
            draw.rectangle(box, fill=colour, outline=INK, width=scale // 2)

    text(20, 8, "blocks of 4 by 8 pixels")
    cells(20, 40, 6, 3, WHITE, 48)
    cells(20 + 48, 40 + 48, 1, 1, CLAY[0], 48)
    text(20, 192, "each is computed")
    text(20, 212, "by 32 threads")
    text(230, 8, "shared memory: the tile, and two rows more")
    cells(230, 40, 4, 8, CLAY[2])
    cells(230, 40 + 4 * 24, 2, 8, PALE)
    text(230, 192, "48 points for 32 threads:")
    text(230, 212, "some compute two, then all wait")
    text(560, 8, "registers: 4 rows of a thread")
    cells(570, 40, 6, 1, CLAY[2])
    cells(690, 64, 4, 1, CLAY[0])
    for row in range(4):
        for read in range(3):
            ends = [(596 * scale, (52 + 24 * (row + read)) * scale), (688 * scale, (76 + 24 * row) * scale)]
            draw.line(ends, fill=INK, width=scale // 2)
    text(560, 192, "6 values for 4 results,")
    text(560, 212, "nobody waits")
    _arrow(image, (180 * scale, 112 * scale), 30 * scale, scale)
    return image.resize((800, 240), Image.Resampling.LANCZOS).quantize(64)


def _box(left: int, top: int, size: int, row: int, column: int) -> tuple[int, int, int, int]:
    return (left + column * size, top + row * size, left + (column + 1) * size, top + (row + 1) * size)


def _tile(image: Image.Image, box: tuple[int, int, int, int], overlap: int, colour: tuple[int, int, int]) -> None:
    """A tile that reaches `overlap` beyond its own box to the right and below, seen through."""
    layer = Image.new("RGBA", image.size, (0, 0, 0, 0))
    left, top, right, bottom = box
    ImageDraw.Draw(layer).rectangle(
        (left, top, right + overlap, bottom + overlap), fill=(*colour, 150), outline=(*INK, 255), width=3
    )
    image.paste(layer, mask=layer)


def _arrow(image: Image.Image, start: tuple[int, int], length: int, width: int) -> None:
    x, y = start
    draw = ImageDraw.Draw(image)
    draw.line([(x, y), (x + length, y)], fill=INK, width=2 * width)
    draw.polygon([(x + length + 5 * width, y), (x + length, y - 4 * width), (x + length, y + 4 * width)], fill=INK)


if __name__ == "__main__":
    main()
