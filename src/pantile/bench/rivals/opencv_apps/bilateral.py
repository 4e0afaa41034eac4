"""OpenCV's own bilateral filter."""

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.bilateralFilter(img, 9, 30, 3, dst=out, borderType=cv2.BORDER_REPLICATE)
