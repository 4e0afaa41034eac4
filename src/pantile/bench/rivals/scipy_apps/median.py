"""SciPy's median filter."""

from scipy import ndimage

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: ndimage.median_filter(img, (5, 5, 1), output=out, mode="nearest")
