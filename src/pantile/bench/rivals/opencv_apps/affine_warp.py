"""OpenCV's own warp."""

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    img, matrix, (out,) = inputs["img"], inputs["matrix"], outputs
    size = (out.shape[1], out.shape[0])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return lambda: cv2.warpAffine(img, matrix, size, dst=out, flags=flags, borderMode=cv2.BORDER_REPLICATE)
