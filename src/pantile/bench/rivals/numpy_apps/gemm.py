"""A product and a sum of the BLAS that NumPy comes with."""

import numpy as np

from ..library_worker import Array, Inputs, Outputs, Program

ALPHA, BETA = np.float32(1.5), np.float32(1.2)


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    a, b, c, (out,) = inputs["a"], inputs["b"], inputs["c"], outputs
    scaled = np.empty_like(c)

    def compute() -> Array:
        np.matmul(a, b, out=out)
        np.multiply(out, ALPHA, out=out)
        np.multiply(c, BETA, out=scaled)
        return np.add(out, scaled, out=out)

    return compute
