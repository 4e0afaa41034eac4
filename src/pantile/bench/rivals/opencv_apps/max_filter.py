"""Dilation of each plane by a disc."""

import cv2
import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program

RADIUS = 26


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """The disc is one pixel taller than round on every column, as the app's is."""
    img = inputs["img"]
    (out,) = outputs
    disc = _disc()

    def compute() -> None:
        for source, target in zip(img, out, strict=True):
            cv2.dilate(source, disc, dst=target)

    return compute


def _disc() -> Array:
    column = np.arange(-RADIUS, RADIUS + 1)
    rows = np.arange(RADIUS + 1)
    half_heights = (column[:, None] ** 2 + rows**2 < (RADIUS + 0.25) ** 2).sum(axis=1)
    rows = np.arange(-RADIUS - 1, RADIUS + 2)
    return (np.abs(rows)[:, None] <= half_heights).astype(np.uint8)
