"""PNG files, written with the standard library alone."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

Picture = np.ndarray[Any, np.dtype[np.uint8]]  # [y, x, c], c one of red, green, blue

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BIT_RGB = bytes([8, 2, 0, 0, 0])
_FILTER_UP = 2


def write_png(path: Path, picture: Picture) -> None:
    """Write an RGB picture of 8 bits per channel."""
    height, width, _ = picture.shape
    rows = picture.reshape(height, width * 3)
    lines = np.empty((height, width * 3 + 1), np.uint8)
    lines[:, 0] = _FILTER_UP  # each row as its difference from the one above compresses well
    lines[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=lines[1:, 1:])
    header = struct.pack(">II", width, height) + _EIGHT_BIT_RGB
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b"")]
    path.write_bytes(_SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
