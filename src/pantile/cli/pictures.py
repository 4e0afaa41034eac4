"""Picture files: read and written with Pillow, where it is installed; PNG is also written without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .png import write_png

Picture = np.ndarray[Any, Any]

_NEEDS_PILLOW = "{} needs Pillow: pip install 'pantile[images]'"


def read(path: Path) -> Picture:
    """Any picture that Pillow can read, as float32 [y, x, channel] in 0 .. 1: grey, RGB or RGB with opacity."""
    pillow = _pillow("reading pictures")
    if not path.exists():
        raise OSError(f"there is no file {path}")
    if path.is_dir():
        raise OSError(f"{path} is a folder, not a picture")
    try:
        with pillow.open(path) as image:
            return _pixels(_upright(image))
    except pillow.UnidentifiedImageError:
        raise OSError(f"{path} is not a picture that Pillow can read") from None


def read_rgb(path: Path) -> Picture:
    """The same as uint8 [y, x, channel], always red, green and blue."""
    picture = read(path)
    colours = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture[..., :3]
    return np.ascontiguousarray(np.rint(255 * colours), np.uint8)


def check_target(path: Path, sources: list[Path]) -> None:
    """Complain about a file that cannot or must not be written, before any work is done for it."""
    if path.is_dir():
        raise OSError(f"{path} is a folder; name a file in it, such as {path / 'out.png'}")
    if not path.parent.is_dir():
        raise OSError(f"there is no folder {path.parent} to write {path.name} to")
    if any(path.exists() and source.exists() and path.samefile(source) for source in sources):
        raise OSError(f"{path} is an input; it would be overwritten, so name another --output")
    if path.suffix.lower() != ".png":
        known = _pillow(f"writing {path.suffix or 'files without a suffix'}").registered_extensions()
        if path.suffix.lower() not in known:
            raise OSError(f"{path.name} has no suffix of a picture, such as .png or .jpg")


def write(path: Path, picture: Picture) -> None:
    """Write uint8 [y, x, channel]; the suffix says in which format."""
    if path.suffix.lower() == ".png":
        write_png(path, np.ascontiguousarray(np.broadcast_to(picture, (*picture.shape[:2], 3))))
    else:
        squeezed = picture[..., 0] if picture.shape[2] == 1 else picture
        _pillow("writing pictures").fromarray(squeezed).save(path)


def _pixels(image: Any) -> Picture:
    if image.mode.startswith("I"):  # 16 bits of grey, maybe in 32
        return np.asarray(image, np.float32)[..., None] / 65535
    if image.mode == "F":
        return np.asarray(image, np.float32)[..., None]
    if image.mode not in ("L", "RGB", "RGBA"):
        clear = image.mode in ("LA", "PA") or "transparency" in image.info
        image = image.convert("RGBA" if clear else "L" if image.mode == "1" else "RGB")
    values = np.asarray(image, np.float32) / 255
    return values[..., None] if values.ndim == 2 else values


def _upright(image: Any) -> Any:
    """Cameras that are held upright turn the picture by a note in the file."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def _pillow(purpose: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise OSError(_NEEDS_PILLOW.format(purpose)) from None
    return Image
