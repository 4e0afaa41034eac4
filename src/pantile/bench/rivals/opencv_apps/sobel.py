"""OpenCV's own Sobel."""

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.Sobel(img, cv2.CV_16S, 1, 0, dst=out, ksize=3, borderType=cv2.BORDER_REPLICATE)
