"""Bitwise and with the transposed view, on one thread."""

import numpy as np

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, mask, (out,) = inputs["img"], inputs["mask"], outputs
    return lambda: np.bitwise_and(img.T, mask, out=out)
