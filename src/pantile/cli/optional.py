"""Libraries for picture files, which need not be installed."""

from __future__ import annotations

from typing import Any


def pillow(purpose: str) -> Any:
    """PIL.Image, with all formats that it has."""
    try:
        from PIL import Image
    except ImportError:
        raise OSError(f"{purpose} needs Pillow: pip install 'pantile[images]'") from None
    Image.init()
    return Image


def tifffile() -> Any | None:
    """The package, if it is there: Pillow has no TIFF of several channels with more than 8 bits."""
    try:
        import tifffile
    except ImportError:
        return None
    return tifffile
