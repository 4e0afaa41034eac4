"""Products of a matrix and vectors by the BLAS that NumPy comes with."""

import numpy as np

from ..library_worker import Inputs, Outputs, Program

ALPHA, BETA = 1.5, 1.2


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """The updated matrix is kept in memory that exists."""
    a, u1, v1, u2, v2 = (inputs[name] for name in ("a", "u1", "v1", "u2", "v2"))
    w, x, y, z = (inputs[name] for name in "wxyz")
    x_out, w_out = outputs
    vectors_down, vectors_across = np.stack([u1, u2], axis=1), np.stack([v1, v2])
    updated = np.empty_like(a)

    def compute() -> None:
        np.matmul(vectors_down, vectors_across, out=updated)
        np.add(updated, a, out=updated)
        np.matmul(y, updated, out=x_out)
        np.add(x + z, BETA * x_out, out=x_out)
        np.matmul(updated, x_out, out=w_out)
        np.add(w, ALPHA * w_out, out=w_out)

    return compute
