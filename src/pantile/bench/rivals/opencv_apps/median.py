"""OpenCV's own median."""

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.medianBlur(img, 5, dst=out)
