"""scikit-image's Gaussian filter."""

import numpy as np
from skimage import filters

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        blurred = filters.gaussian(img, 1.5, mode="nearest", preserve_range=True, truncate=2.0, channel_axis=-1)
        out[...] = np.rint(blurred)

    return compute
