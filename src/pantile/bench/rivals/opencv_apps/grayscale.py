"""OpenCV's own conversion."""

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.cvtColor(img, cv2.COLOR_RGB2GRAY, dst=out)
