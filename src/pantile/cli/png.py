"""PNG files, written with the standard library alone."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

Pixels = np.ndarray[Any, Any]  # [y, x, channel] of uint8 or uint16, with 1, 3 or 4 channels

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPE = {1: 0, 3: 2, 4: 6}  # grey, RGB, RGB with opacity
_FILTER_UP = 2


def write_png(path: Path, picture: Pixels) -> None:
    """Write a picture of 8 or 16 bits per channel."""
    height, width, channels = picture.shape
    depth = 8 * picture.dtype.itemsize
    rows = np.ascontiguousarray(picture, ">u2" if depth == 16 else np.uint8).view(np.uint8).reshape(height, -1)
    lines = np.empty((height, rows.shape[1] + 1), np.uint8)
    lines[:, 0] = _FILTER_UP  # each row as its difference from the one above compresses well
    lines[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=lines[1:, 1:])
    header = struct.pack(">II", width, height) + bytes([depth, _COLOUR_TYPE[channels], 0, 0, 0])
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b"")]
    path.write_bytes(_SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
