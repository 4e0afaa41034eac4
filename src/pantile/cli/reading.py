"""Pictures are read as deep as their files: with Pillow, deep TIFF with tifffile, arrays with NumPy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .picture import Array, Picture, pillow, tifffile

TIFF = (".tif", ".tiff")
_ORIENTATION = 0x0112  # a tag of Exif and TIFF
_PHOTOMETRIC = 0x0106  # a tag of TIFF: 0 if the number 0 is white
_HEAD = 1 << 14  # bytes that contain the headers
_PNG_DEPTH = 24
_SGI_BYTES = 3
_JPEG2000_SIZES, _JPEG2000_DEPTH = b"\xff\x51", 40  # a marker, and the offset of the depth from it
_AVIF_DEPTHS, _AVIF_DEPTH = b"pixi", 9
_TIFF_BITS = 258  # a tag


def read(path: Path) -> Picture:
    """The picture of a file; an error describes in a sentence what is wrong with the file."""
    if not path.exists():
        raise OSError(f"there is no file {path}")
    if path.is_dir():
        raise OSError(f"{path} is a folder, not a picture")
    if not path.is_file():
        raise OSError(f"{path} is not a file of pixels that could be read as a whole")
    values = _load(path) if path.suffix.lower() == ".npy" else _decode(path)
    if not values.size:
        raise OSError(f"{path} has no pixels")
    return Picture(path, values)


def _load(path: Path) -> Array:
    try:
        values = np.load(path, allow_pickle=False)
    except Exception as error:
        raise OSError(f"{path} cannot be read as an array of NumPy: {_sentence(error)}") from error
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        raise OSError(f"{path} does not hold an array of numbers")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _decode(path: Path) -> Array:
    """The decoded file. Libraries raise all kinds of errors for broken files."""
    library = pillow("reading pictures")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about harmless oddities and large pictures
            with library.open(path) as image:
                return _pixels(path, image)
    except library.UnidentifiedImageError as error:
        if path.suffix.lower() in TIFF:  # a mode that Pillow does not support
            return _deep_tiff(path)
        raise OSError(f"{path} is not a picture that Pillow can read") from error
    except library.DecompressionBombError as error:
        raise OSError(f"{path} is too large: {_sentence(error)}") from error
    except TooDeep:
        raise
    except Exception as error:
        raise OSError(f"{path} cannot be read: {_sentence(error)}") from error


class TooDeep(OSError):
    """A file with more bits than the installed libraries can read."""


def _pixels(path: Path, image: Any) -> Array:
    """The pixels [y, x, channel], as deep as in the file."""
    bits = bits_per_channel(path, image)
    if image.mode.startswith("I;16") or (image.mode == "I" and bits <= 16):
        values = np.asarray(image).astype(np.uint16)
        if image.format == "TIFF" and image.tag_v2.get(_PHOTOMETRIC) == 0:  # which Pillow handles for bytes only
            values = np.uint16(65535) - values
    elif image.mode in ("I", "F"):
        values = np.array(image)
    elif bits <= 8:
        values = np.asarray(_common(image))
    elif image.format == "PNG":
        values = sixteen_bits(path)
    elif image.format == "TIFF":
        return _deep_tiff(path)
    else:
        raise TooDeep(
            f"{path} has {bits} bits per channel, of which Pillow reads 8; convert it to PNG or TIFF of 16 bits"
        )
    return _upright(values if values.ndim == 3 else values[..., None], image.getexif().get(_ORIENTATION, 1))


def _common(image: Any) -> Any:
    """The image as grey, RGB or RGB with opacity."""
    if image.mode in ("L", "RGB", "RGBA"):
        return image
    clear = image.mode in ("LA", "La", "PA", "RGBa") or "transparency" in image.info
    return image.convert("RGBA" if clear else "L" if image.mode == "1" else "RGB")


def _deep_tiff(path: Path) -> Array:
    library = tifffile()
    if library is None:
        raise TooDeep(f"{path} has pixels that Pillow cannot read; install tifffile: pip install 'pantile[images]'")
    try:
        with library.TiffFile(path) as file:
            page = file.pages[0]
            values = np.asarray(page.asarray())
            orientation, planar = page.tags.valueof(_ORIENTATION, 1), page.planarconfig == 2
    except Exception as error:
        raise TooDeep(f"{path} cannot be read: {_sentence(error)}") from error
    if values.ndim == 3 and planar:
        values = np.moveaxis(values, 0, -1)
    values = values if values.ndim == 3 else values[..., None]
    if values.ndim != 3 or values.shape[2] not in (1, 3, 4) or values.dtype.kind not in "biuf":
        raise TooDeep(f"{path} is not a picture in grey or RGB: it holds {values.dtype}{list(values.shape)}")
    return _upright(values, orientation)


def _upright(a: Array, orientation: int) -> Array:
    """The picture rotated upright, by the orientation that cameras store in the file."""
    if orientation in (5, 6, 7, 8):
        a = a.swapaxes(0, 1)
    a = a[:, ::-1] if orientation in (2, 3, 6, 7) else a
    return a[::-1] if orientation in (3, 4, 7, 8) else a


def _sentence(error: Exception) -> str:
    """The message of a library's error, or the error's name."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


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
