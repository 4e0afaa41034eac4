"""SciPy's uniform filter."""

import numpy as np
from scipy import ndimage

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """What bytes become on the way is float32, and rounded at the end."""
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        mean = ndimage.uniform_filter(img, (5, 5, 1), output=np.float32, mode="nearest")
        np.rint(mean, out=mean)
        out[...] = mean

    return compute
