"""Writing arrays to files in the format of the suffix, never with fewer bits than the pictures."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .picture import Array, pillow, quantized, tifffile
from .reading import TIFF

_CHANNELS = (1, 3, 4)
_DEEP = "name a .npy file, which holds any array"
Pixels = np.ndarray[Any, Any]  # [y, x, channel] of uint8 or uint16, with 1, 3 or 4 channels

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPE = {1: 0, 3: 2, 4: 6}  # grey, RGB, RGB with opacity
_FILTER_UP = 2


def check_place(path: Path, sources: list[Path]) -> None:
    """Raise an error if a file cannot or must not be written, before any work is done for it."""
    if path.is_dir():
        raise OSError(f"{path} is a folder; name a file in it, such as {path / 'out.png'}")
    if not path.parent.is_dir():
        raise OSError(f"there is no folder {path.parent} to write {path.name} to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OSError(f"{path} cannot be written: permission denied")
    if any(path.exists() and source.exists() and path.samefile(source) for source in sources):
        raise OSError(f"{path} is an input; it would be overwritten, so name another --output")
    suffix = path.suffix.lower()
    if suffix in (".png", ".npy"):
        return
    library = pillow(f"writing {path.suffix or 'files without a suffix'}")
    if library.registered_extensions().get(suffix) not in library.SAVE:
        raise OSError(f"{path.name} has no suffix of a picture that can be written, such as .png, .jpg or .tif")


def type_in_file(path: Path, dtype: np.dtype[Any], ndim: int, deepest: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the numbers in the file for such an array; `deepest` is the type that pixels of the inputs need.
    Floats become integers only in formats without floats, and with as many bits as the inputs."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return dtype
    if ndim not in (2, 3):
        axes = f"{ndim} ax{'is' if ndim == 1 else 'es'}"
        raise OSError(f"{path.name} cannot hold an array of {axes}; write it to a .npy file, such as {path.stem}.npy")
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    supported = _supported(suffix, ndim)
    if dtype.kind == "f" and not any(t.startswith("float") for t in supported):
        wanted = deepest
    else:
        wanted = np.dtype(np.float32) if dtype == np.float16 else dtype
    if wanted.name not in supported:
        needs = f"what is written is {wanted}" if wanted == dtype else f"the pictures that are read are {wanted}"
        raise OSError(f"{path.name} holds {_listed(supported)}, and {needs}; {_advice(suffix, wanted)}")
    return wanted


def write(path: Path, array: Array, dtype: np.dtype[Any]) -> list[str]:
    """Write an array with the type of `type_in_file`, and return lines that describe what was written."""
    if path.suffix.lower() == ".npy":
        with path.open("wb") as file:  # np.save would add a suffix to .NPY
            np.save(file, array)
        return [f"{path.resolve()}, {array.dtype}{list(array.shape)}"]
    values = _oriented(path, array)
    height, width, _ = values.shape
    lines = [f"{path.resolve()}, {width} x {height}" + ("" if dtype == np.uint8 else f", {dtype}")]
    if values.dtype.kind == "b":
        values = values * np.uint8(255)
    elif values.dtype.kind == "f" and dtype.kind != "f":
        lines += _range_warnings(values)
        values = quantized(values, dtype)
    _encode(path, np.ascontiguousarray(values, dtype))
    return lines


def _oriented(path: Path, array: Array) -> Array:
    """The array as [y, x, channel]; channels may come first."""
    values = array[..., None] if array.ndim == 2 else array
    if values.shape[2] not in _CHANNELS and values.shape[0] in _CHANNELS:
        values = np.moveaxis(values, 0, -1)
    if values.shape[2] not in _CHANNELS:
        raise OSError(
            f"{path.name} cannot hold an array of shape {array.shape}: a picture has 1, 3 or 4 channels; {_DEEP}"
        )
    if not values.size:
        raise OSError(f"{path.name} is not written: the result has no pixels (its shape is {array.shape})")
    return values


def _range_warnings(values: Array) -> list[str]:
    """Floats are written as brightness from 0 to 1; warnings say if they are outside."""
    numbers = values[~np.isnan(values)]
    lines = ["some values are not numbers (NaN), and are written as 0"] if numbers.size < values.size else []
    least, most = float(numbers.min(initial=0)), float(numbers.max(initial=0))
    if least < -1 or most > 2:
        lines += [f"values from {least:.4g} to {most:.4g} are cut off at 0 and 1; .tif and .npy hold them as they are"]
    return lines


def _supported(suffix: str, ndim: int) -> tuple[str, ...]:
    """The number types that a format supports."""
    if suffix == ".png":
        return ("uint8", "uint16")
    if suffix not in TIFF:
        return ("uint8",)
    if tifffile() is not None:
        integers = tuple(f"{kind}{bits}" for kind in ("uint", "int") for bits in (8, 16, 32, 64))
        return (*integers, "float32", "float64")
    return ("uint8", "uint16", "int32", "float32") if ndim == 2 else ("uint8",)


def _advice(suffix: str, wanted: np.dtype[Any]) -> str:
    if suffix in TIFF:
        return "install tifffile (pip install 'pantile[images]'), or " + _DEEP
    if wanted == np.uint16:
        return "name a .png, .tif or .npy file"
    if wanted.kind == "f":
        return "name a .tif or .npy file"
    return 'cast it, such as by pt.saturating_cast("uint8", ...), or ' + _DEEP


def _encode(path: Path, values: Array) -> None:
    """Write [y, x, channel] in a type that the format supports."""
    if path.suffix.lower() == ".png":
        write_png(path, values)
        return
    pixels = values[..., 0] if values.shape[2] == 1 else values
    library = tifffile() if values.dtype != np.uint8 else None
    if path.suffix.lower() in TIFF and library is not None:
        library.imwrite(path, pixels, photometric="minisblack" if pixels.ndim == 2 else "rgb")
        return
    try:
        pillow("writing pictures").fromarray(pixels).save(path)
    except (OSError, ValueError, KeyError) as error:
        raise OSError(f"{path.name} cannot be written: {error}") from error


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)


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
