"""The number of bits per channel of a file, which Pillow may silently reduce to 8, and PNG with all 16 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .optional import pillow
from .picture import Array

_HEAD = 1 << 14  # bytes that contain the headers
_PNG_DEPTH = 24
_SGI_BYTES = 3
_JPEG2000_SIZES, _JPEG2000_DEPTH = b"\xff\x51", 40  # a marker, and the offset of the depth from it
_AVIF_DEPTHS, _AVIF_DEPTH = b"pixi", 9
_TIFF_BITS = 258  # a tag


def bits_per_channel(path: Path, image: Any) -> int:
    """The number of bits per channel of the file that an image was opened from."""
    if image.format == "TIFF":
        return int(max(image.tag_v2.get(_TIFF_BITS, (1,))))
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if image.format == "PNG":
        return head[_PNG_DEPTH]
    if image.format == "PPM":
        return _netpbm_bits(head)
    if image.format == "SGI":
        return 8 * head[_SGI_BYTES]
    if image.format == "JPEG2000":
        return (head[head.find(_JPEG2000_SIZES) + _JPEG2000_DEPTH] & 0x7F) + 1
    if image.format == "AVIF" and _AVIF_DEPTHS in head:
        return head[head.find(_AVIF_DEPTHS) + _AVIF_DEPTH]
    return 8


def _netpbm_bits(head: bytes) -> int:
    """The depth by the fourth word, the largest value: P1 and P4 have single bits, PF and Pf floats."""
    words = b"\n".join(line.split(b"#")[0] for line in head.split(b"\n")).split(None, 4)
    has_largest = words[0] in (b"P2", b"P3", b"P5", b"P6")
    return int(words[3]).bit_length() if has_largest else 8


def sixteen_bits(path: Path) -> Array:
    """The pixels of a 16-bit PNG in colour or with opacity. Pillow has no such mode. It is asked for the upper bytes,
    as usual, and for the lower ones, as if they were the upper ones in the other byte order. Grey with opacity has four
    bytes per pixel, read as if they were four channels."""
    layout = _raw_mode(path)
    if layout == "LA;16B":
        bytes_of = _read_as(path, "RGBA")
        grey, opacity = bytes_of[..., 0] << 8 | bytes_of[..., 1], bytes_of[..., 2] << 8 | bytes_of[..., 3]
        return np.stack([grey, grey, grey, opacity], axis=-1)
    return _read_as(path, layout) << 8 | _read_as(path, layout.replace("16B", "16L"))


def _raw_mode(path: Path) -> str:
    with pillow("reading pictures").open(path) as image:
        return str(image.tile[0][3])


def _read_as(path: Path, raw_mode: str) -> Array:
    with pillow("reading pictures").open(path) as image:
        image.tile = [(codec, box, offset, raw_mode) for codec, box, offset, _ in image.tile]
        return np.asarray(image).astype(np.uint16)
