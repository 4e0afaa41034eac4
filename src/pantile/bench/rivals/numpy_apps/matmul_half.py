"""The product of matrices of halves, which are brought to single precision for the BLAS."""

from collections.abc import Callable, Mapping

import numpy as np

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Into memory that exists."""
    a, b, (out,) = inputs["a"], inputs["b"], outputs
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)

    def compute() -> Array:
        np.copyto(wide_a, a)
        np.copyto(wide_b, b)
        return np.matmul(wide_a, wide_b, out=out)

    return compute
