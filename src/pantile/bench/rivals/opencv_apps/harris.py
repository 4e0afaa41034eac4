"""Grey, then OpenCV's own corner detector, which scales its gradients by 1/12 as the app does."""

import cv2
import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """All of the image; the app's result has no border."""
    del outputs
    red, green, blue = inputs["img"]
    gray, response = np.empty_like(red), np.empty_like(red)

    def compute() -> Array:
        cv2.addWeighted(red, 0.299, green, 0.587, 0, dst=gray)
        cv2.scaleAdd(blue, 0.114, gray, dst=gray)
        cv2.cornerHarris(gray, 3, 3, 0.04, dst=response)
        return response[3:-3, 3:-3]

    return compute
