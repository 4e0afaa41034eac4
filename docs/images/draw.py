"""Draws the pictures of the documentation: `python docs/images/draw.py` (needs Pillow)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pantile.cli.contrast import local_contrast
from pantile.cli.scenery import scenery

FOLDER = Path(__file__).parent
WHITE, INK = (255, 255, 255), (40, 40, 48)
CLAY = ((196, 98, 68), (172, 80, 54), (214, 122, 88))


def main() -> None:
    """Both pictures."""
    demo().save(FOLDER / "demo.png", optimize=True)
    tiles().save(FOLDER / "tiles.png", optimize=True)


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
