"""Grey, a binomial blur, and OpenCV's detector with both thresholds alike, so that its hysteresis adds nothing."""

import cv2
import numpy as np

from ..library_worker import Inputs, Outputs, Program

THRESHOLD = 60


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    gray, smooth = np.empty_like(out), np.empty_like(out)

    def compute() -> None:
        cv2.cvtColor(img, cv2.COLOR_RGB2GRAY, dst=gray)
        cv2.GaussianBlur(gray, (5, 5), 0, dst=smooth)
        cv2.Canny(smooth, THRESHOLD, THRESHOLD, edges=out)

    return compute
