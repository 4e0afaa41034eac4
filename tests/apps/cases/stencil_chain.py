"""Thirty-two times a sum of 5x5 pixels with weights 1 to 5 in each direction, modulo 2**16."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case

STAGES = 32


def stencil_chain(img: Array, stages: int = STAGES) -> Array:
    """Only the image's own edges repeat, so that every stage is four pixels smaller than the one before."""
    now = np.pad(img, 2 * stages, mode="edge").astype(np.int64)
    weights = np.outer(np.arange(1, 6), np.arange(1, 6))
    for _ in range(stages):
        h, w = now.shape[0] - 4, now.shape[1] - 4
        now = sum(weights[j, i] * now[j : j + h, i : i + w] for j in range(5) for i in range(5)) % 2**16
    return now.astype(np.uint16)


CASES = {
    "stencil_chain": Case(
        stencil_chain,
        odd=({"img": (1, 1)}, {"img": (3, 37)}, {"img": (23, 11)}),
        large={"img": (71, 57)},
        slow=True,
    ),
}
