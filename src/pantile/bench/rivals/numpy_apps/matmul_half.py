"""The product of matrices of halves, which are brought to single precision for the BLAS."""

import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    a, b, (out,) = inputs["a"], inputs["b"], outputs
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)

    def compute() -> Array:
        np.copyto(wide_a, a)
        np.copyto(wide_b, b)
        return np.matmul(wide_a, wide_b, out=out)

    return compute
