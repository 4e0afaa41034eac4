"""Bitwise and, on one thread."""

from collections.abc import Callable, Mapping

import numpy as np

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Into memory that exists."""
    img, mask, (out,) = inputs["img"], inputs["mask"], outputs
    return lambda: np.bitwise_and(img, mask, out=out)
