"""SciPy's Sobel."""

from scipy import ndimage

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: ndimage.sobel(img, axis=1, output=out, mode="nearest")
