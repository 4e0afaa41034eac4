"""One triangle of a product, by the BLAS that SciPy comes with."""

import numpy as np
from scipy.linalg import blas

from ..library_worker import Inputs, Outputs, Program

ALPHA, BETA = 1.5, 1.2


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """SciPy's BLAS takes matrices by columns: it is given transposed views, and a triangle's other side."""
    a, c, (out,) = inputs["a"], inputs["c"], outputs

    def compute() -> None:
        np.copyto(out, c)
        blas.ssyrk(ALPHA, a.T, BETA, out.T, trans=1, lower=0, overwrite_c=1)

    return compute
