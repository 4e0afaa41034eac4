"""SciPy's Gaussian filter."""

import numpy as np
from scipy import ndimage

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """What bytes become on the way is float32, and rounded at the end."""
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        blurred = ndimage.gaussian_filter(img, (1.5, 1.5, 0), output=np.float32, mode="nearest", radius=(3, 3, 0))
        np.rint(blurred, out=blurred)
        out[...] = blurred

    return compute
