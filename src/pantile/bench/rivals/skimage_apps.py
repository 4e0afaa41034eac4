"""Apps as calls of scikit-image, which runs on one thread."""

import numpy as np
from skimage import filters

from .library_worker import Inputs, Outputs, Program


def set_threads(threads: int) -> None:
    """There is one."""
    del threads


def gaussian(inputs: Inputs, outputs: Outputs) -> Program:
    """scikit-image's Gaussian filter."""
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        blurred = filters.gaussian(img, 1.5, mode="nearest", preserve_range=True, truncate=2.0, channel_axis=-1)
        out[...] = np.rint(blurred)

    return compute


def median(inputs: Inputs, outputs: Outputs) -> Program:
    """scikit-image's median filter."""
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        filters.median(img, np.ones((5, 5, 1), bool), out=out, mode="nearest")

    return compute
