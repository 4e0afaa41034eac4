"""A product of centred data with itself, which NumPy's BLAS computes one triangle of."""

import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    data, (out,) = inputs["data"], outputs
    centred = np.empty_like(data)

    def compute() -> Array:
        np.subtract(data, data.mean(axis=0), out=centred)
        np.matmul(centred.T, centred, out=out)
        return np.divide(out, len(data) - 1, out=out)

    return compute
