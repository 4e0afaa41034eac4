"""Optional libraries for picture files."""

from __future__ import annotations

from typing import Any


def pillow(purpose: str) -> Any:
    """PIL.Image, with all its formats."""
    try:
        from PIL import Image
    except ImportError:
        raise OSError(f"{purpose} needs Pillow: pip install 'pantile[images]'") from None
    Image.init()
    return Image


def tifffile() -> Any | None:
    """The package tifffile, if installed: Pillow has no TIFF of several channels with more than 8 bits."""
    try:
        import tifffile
    except ImportError:
        return None
    return tifffile
