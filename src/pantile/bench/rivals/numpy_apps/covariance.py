"""A product of centred data with itself, which NumPy's BLAS computes one triangle of."""

from collections.abc import Callable, Mapping

import numpy as np

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Into memory that exists."""
    data, (out,) = inputs["data"], outputs
    centred = np.empty_like(data)

    def compute() -> Array:
        np.subtract(data, data.mean(axis=0), out=centred)
        np.matmul(centred.T, centred, out=out)
        return np.divide(out, len(data) - 1, out=out)

    return compute
