"""OpenCV's own interpolation."""

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    size = (out.shape[1], out.shape[0])
    return lambda: cv2.resize(img, size, dst=out, interpolation=cv2.INTER_CUBIC)
