"""Unsharp masking of planes, one function after the other."""

import math

import cv2
import numpy as np

from ..library_worker import Inputs, Outputs, Program

SIGMA = 1.5


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    red, green, blue = img = inputs["img"]
    (out,) = outputs
    gray, blurred = np.empty_like(red), np.empty_like(red)
    density = [math.exp(-(i**2) / (2 * SIGMA**2)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(-3, 4)]
    kernel = np.array(density, np.float32)

    def compute() -> None:
        cv2.addWeighted(red, 0.299, green, 0.587, 0, dst=gray)
        cv2.scaleAdd(blue, 0.114, gray, dst=gray)
        cv2.sepFilter2D(gray, cv2.CV_32F, kernel, kernel, dst=blurred, borderType=cv2.BORDER_REPLICATE)
        cv2.addWeighted(gray, 2, blurred, -1, 0, dst=blurred)
        ratio = cv2.divide(blurred, gray, dst=blurred)
        for channel in range(3):
            cv2.multiply(img[channel], ratio, dst=out[channel])

    return compute
