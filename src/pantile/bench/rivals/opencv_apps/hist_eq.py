"""Histogram equalization of the luma of an interleaved image."""

import cv2
import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program

DIFFERS = "OpenCV rounds luma and chroma to 8 bits, and starts its cumulative histogram at the first level in use"


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """The image is interleaved beforehand."""
    del outputs
    img = np.ascontiguousarray(np.moveaxis(inputs["img"], 0, -1))
    converted, out = np.empty_like(img), np.empty_like(img)
    luma = np.empty(img.shape[:2], np.uint8)

    def compute() -> Array:
        cv2.cvtColor(img, cv2.COLOR_RGB2YCrCb, dst=converted)
        cv2.extractChannel(converted, 0, dst=luma)
        cv2.equalizeHist(luma, dst=luma)
        cv2.insertChannel(luma, converted, 0)
        cv2.cvtColor(converted, cv2.COLOR_YCrCb2RGB, dst=out)
        return np.moveaxis(out, -1, 0)

    return compute
