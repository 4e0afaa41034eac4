"""scikit-image's median filter."""

import numpy as np
from skimage import filters

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs

    def compute() -> None:
        filters.median(img, np.ones((5, 5, 1), bool), out=out, mode="nearest")

    return compute
