"""OpenCV's remap, with maps that are made once, in the format that it is fastest with."""

import cv2
import numpy as np

from ..library_worker import Inputs, Outputs, Program

K1, K2 = -0.12, 0.03
DIFFERS = "OpenCV interpolates between pixels in steps of 1/32; the app takes places as they are"


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, (out,) = inputs["img"], outputs
    rows, columns, _ = img.shape
    v, u = (np.arange(rows) - rows / 2)[:, None] / (columns / 2), (np.arange(columns) - columns / 2) / (columns / 2)
    far = u * u + v * v
    scale = 1 + K1 * far + K2 * far * far
    across, down = (u * scale + 1) * (columns / 2), v * scale * (columns / 2) + rows / 2
    places, parts = cv2.convertMaps(across.astype(np.float32), down.astype(np.float32), cv2.CV_16SC2)
    return lambda: cv2.remap(img, places, parts, cv2.INTER_LINEAR, dst=out, borderMode=cv2.BORDER_REPLICATE)
