"""Apps as calls of SciPy's ndimage, which runs on one thread."""

import numpy as np
from scipy import ndimage

from .library_worker import Inputs, Outputs, Program


def set_threads(threads: int) -> None:
    """There is one."""
    del threads


def box_filter(inputs: Inputs, outputs: Outputs) -> Program:
    """SciPy's uniform filter. What bytes become on the way is float32, and rounded at the end."""
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        mean = ndimage.uniform_filter(img, (5, 5, 1), output=np.float32, mode="nearest")
        np.rint(mean, out=mean)
        out[...] = mean

    return compute


def gaussian(inputs: Inputs, outputs: Outputs) -> Program:
    """SciPy's Gaussian filter. What bytes become on the way is float32, and rounded at the end."""
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        blurred = ndimage.gaussian_filter(img, (1.5, 1.5, 0), output=np.float32, mode="nearest", radius=(3, 3, 0))
        np.rint(blurred, out=blurred)
        out[...] = blurred

    return compute


def median(inputs: Inputs, outputs: Outputs) -> Program:
    """SciPy's median filter."""
    img, (out,) = inputs["img"], outputs
    return lambda: ndimage.median_filter(img, (5, 5, 1), output=out, mode="nearest")


def sobel(inputs: Inputs, outputs: Outputs) -> Program:
    """SciPy's Sobel filter, along rows."""
    img, (out,) = inputs["img"], outputs
    return lambda: ndimage.sobel(img, axis=1, output=out, mode="nearest")
