"""Box filters and arithmetic, on values from 0 to 255."""

import cv2
import numpy as np

from ..library_worker import Inputs, Outputs, Program

SIDE = (17, 17)
SMOOTHNESS = (0.1 * 255) ** 2
REPLICATE = cv2.BORDER_REPLICATE


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """Everything in place, in arrays that exist already. Sums of the bytes and of their squares are exact."""
    img, (out,) = inputs["img"], outputs
    mean, variance, slope, total = (np.empty(img.shape, np.float32) for _ in range(4))

    def compute() -> None:
        cv2.boxFilter(img, cv2.CV_32F, SIDE, dst=mean, borderType=REPLICATE)
        cv2.sqrBoxFilter(img, cv2.CV_32F, SIDE, dst=variance, borderType=REPLICATE)
        cv2.multiply(mean, mean, dst=total)
        cv2.subtract(variance, total, dst=variance)
        np.add(variance, np.float32(SMOOTHNESS), out=total)
        cv2.divide(variance, total, dst=slope)
        cv2.multiply(mean, slope, dst=total)
        cv2.subtract(mean, total, dst=mean)  # the offset
        cv2.blur(slope, SIDE, dst=total, borderType=REPLICATE)
        cv2.blur(mean, SIDE, dst=variance, borderType=REPLICATE)
        cv2.multiply(total, img, dst=total, dtype=cv2.CV_32F)
        cv2.add(total, variance, dst=out, dtype=cv2.CV_8U)

    return compute
