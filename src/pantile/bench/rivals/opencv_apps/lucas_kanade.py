"""Gradients, box filters and arithmetic."""

import cv2
import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program

SIDE = (9, 9)
RIDGE = np.float32(10)
REPLICATE = cv2.BORDER_REPLICATE


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    before, after, (out,) = inputs["before"], inputs["after"], outputs
    dx, dy, dt, product, xx, xy, yy, xt, yt = (np.empty(before.shape, np.float32) for _ in range(9))

    def mean(f: Array, g: Array, target: Array) -> None:
        cv2.multiply(f, g, dst=product)
        cv2.blur(product, SIDE, dst=target, borderType=REPLICATE)

    def combination(p: Array, q: Array, r: Array, s: Array, target: Array) -> Array:
        """p*q - r*s, which may take the place of p or q."""
        cv2.multiply(r, s, dst=product)
        cv2.multiply(p, q, dst=target)
        return cv2.subtract(target, product, dst=target)

    def compute() -> None:
        cv2.Sobel(before, cv2.CV_32F, 1, 0, dst=dx, ksize=1, scale=0.5, borderType=REPLICATE)
        cv2.Sobel(before, cv2.CV_32F, 0, 1, dst=dy, ksize=1, scale=0.5, borderType=REPLICATE)
        cv2.subtract(after, before, dst=dt, dtype=cv2.CV_32F)
        for f, g, target in ((dx, dx, xx), (dx, dy, xy), (dy, dy, yy), (dx, dt, xt), (dy, dt, yt)):
            mean(f, g, target)
        np.add(xx, RIDGE, out=xx)
        np.add(yy, RIDGE, out=yy)
        determinant = combination(xx, yy, xy, xy, dx)
        u = combination(xy, yt, yy, xt, dy)
        v = combination(xy, xt, xx, yt, dt)
        cv2.divide(u, determinant, dst=u)
        cv2.divide(v, determinant, dst=v)
        cv2.merge([u, v], dst=out)

    return compute
