"""The matrix product of the BLAS that NumPy comes with."""

from collections.abc import Callable, Mapping

import numpy as np

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Into memory that exists."""
    a, b, (out,) = inputs["a"], inputs["b"], outputs
    return lambda: np.matmul(a, b, out=out)
