"""Three products of the BLAS that NumPy comes with."""

import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    a, b, c, d, (out,) = inputs["a"], inputs["b"], inputs["c"], inputs["d"], outputs
    left, right = np.empty((a.shape[0], b.shape[1]), a.dtype), np.empty((c.shape[0], d.shape[1]), c.dtype)

    def compute() -> Array:
        np.matmul(a, b, out=left)
        np.matmul(c, d, out=right)
        return np.matmul(left, right, out=out)

    return compute
