"""OpenCV's own."""

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    clahe = cv2.createCLAHE(clipLimit=2.0, tileGridSize=(8, 8))
    return lambda: clahe.apply(img, dst=out)
