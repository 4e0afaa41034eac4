"""What formulas of colour images share."""

from __future__ import annotations

import numpy as np

from ..case import Array


def luma(img: Array) -> Array:
    """Brightness of planar red, green and blue."""
    return np.tensordot([0.299, 0.587, 0.114], img.astype(np.float64), 1)
