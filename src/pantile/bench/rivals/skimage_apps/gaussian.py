"""scikit-image's Gaussian filter."""

from collections.abc import Callable, Mapping

import numpy as np
from skimage import filters

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Make a function that calls the library once and returns the result."""
    img, (out,) = inputs["img"], outputs

    def compute() -> Array:
        found = filters.gaussian(img, 1.5, mode="nearest", preserve_range=True, truncate=2.0, channel_axis=-1)
        out[...] = np.rint(found)
        return out

    return compute
