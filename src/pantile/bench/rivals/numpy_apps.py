"""Apps as calls of NumPy, whose matrix products are those of the BLAS it was built with, or of SciPy.

SciPy's BLAS takes matrices by columns: it is given transposed views, and a triangle's other side.
"""

import numpy as np

from .library_worker import Array, Inputs, Outputs, Program

ALPHA, BETA = 1.5, 1.2


def set_threads(threads: int) -> None:
    """The BLAS has read it from the environment; everything else in NumPy runs on one thread."""
    del threads


def copy(inputs: Inputs, outputs: Outputs) -> Program:
    """A copy of a matrix, on one thread."""
    img, (out,) = inputs["img"], outputs
    return lambda: np.copyto(out, img)


def covariance(inputs: Inputs, outputs: Outputs) -> Program:
    """A product of centred data with itself, which NumPy's BLAS computes one triangle of."""
    data, (out,) = inputs["data"], outputs
    centred = np.empty_like(data)

    def compute() -> Array:
        np.subtract(data, data.mean(axis=0), out=centred)
        np.matmul(centred.T, centred, out=out)
        return np.divide(out, len(data) - 1, out=out)

    return compute


def doitgen(inputs: Inputs, outputs: Outputs) -> Program:
    """All matrices as one tall one, times the other, by the BLAS that NumPy comes with."""
    a, c, (out,) = inputs["a"], inputs["c"], outputs
    tall, result = a.reshape(-1, a.shape[2]), out.reshape(-1, c.shape[1])

    def compute() -> None:
        np.matmul(tall, c, out=result)

    return compute


def gemm(inputs: Inputs, outputs: Outputs) -> Program:
    """A product and a sum of the BLAS that NumPy comes with."""
    a, b, c, (out,) = inputs["a"], inputs["b"], inputs["c"], outputs
    scaled = np.empty_like(c)

    def compute() -> Array:
        np.matmul(a, b, out=out)
        np.multiply(out, ALPHA, out=out)
        np.multiply(c, BETA, out=scaled)
        return np.add(out, scaled, out=out)

    return compute


def gemver(inputs: Inputs, outputs: Outputs) -> Program:
    """Products of a matrix and vectors by the BLAS that NumPy comes with."""
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


def mask(inputs: Inputs, outputs: Outputs) -> Program:
    """Bitwise and, on one thread."""
    img, mask, (out,) = inputs["img"], inputs["mask"], outputs
    return lambda: np.bitwise_and(img, mask, out=out)


def matmul(inputs: Inputs, outputs: Outputs) -> Program:
    """The matrix product of the BLAS that NumPy comes with."""
    a, b, (out,) = inputs["a"], inputs["b"], outputs
    return lambda: np.matmul(a, b, out=out)


def matmul_half(inputs: Inputs, outputs: Outputs) -> Program:
    """The product of matrices of halves, which are brought to single precision for the BLAS."""
    a, b, (out,) = inputs["a"], inputs["b"], outputs
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)

    def compute() -> Array:
        np.copyto(wide_a, a)
        np.copyto(wide_b, b)
        return np.matmul(wide_a, wide_b, out=out)

    return compute


def mm2(inputs: Inputs, outputs: Outputs) -> Program:
    """Two products of the BLAS that NumPy comes with, and a sum."""
    a, b, c, d, (out,) = inputs["a"], inputs["b"], inputs["c"], inputs["d"], outputs
    left, scaled = np.empty((a.shape[0], b.shape[1]), a.dtype), np.empty_like(d)

    def compute() -> Array:
        np.matmul(a, b, out=left)
        np.multiply(left, ALPHA, out=left)
        np.matmul(left, c, out=out)
        np.multiply(d, BETA, out=scaled)
        return np.add(out, scaled, out=out)

    return compute


def mm3(inputs: Inputs, outputs: Outputs) -> Program:
    """Three products of the BLAS that NumPy comes with."""
    a, b, c, d, (out,) = inputs["a"], inputs["b"], inputs["c"], inputs["d"], outputs
    left, right = np.empty((a.shape[0], b.shape[1]), a.dtype), np.empty((c.shape[0], d.shape[1]), c.dtype)

    def compute() -> Array:
        np.matmul(a, b, out=left)
        np.matmul(c, d, out=right)
        return np.matmul(left, right, out=out)

    return compute


def syr2k(inputs: Inputs, outputs: Outputs) -> Program:
    """One triangle of two products, by the BLAS that SciPy comes with."""
    from scipy.linalg import blas

    a, b, c, (out,) = inputs["a"], inputs["b"], inputs["c"], outputs

    def compute() -> None:
        np.copyto(out, c)
        blas.ssyr2k(ALPHA, a.T, b.T, BETA, out.T, trans=1, lower=0, overwrite_c=1)

    return compute


def syrk(inputs: Inputs, outputs: Outputs) -> Program:
    """One triangle of a product, by the BLAS that SciPy comes with."""
    from scipy.linalg import blas

    a, c, (out,) = inputs["a"], inputs["c"], outputs

    def compute() -> None:
        np.copyto(out, c)
        blas.ssyrk(ALPHA, a.T, BETA, out.T, trans=1, lower=0, overwrite_c=1)

    return compute


def tp(inputs: Inputs, outputs: Outputs) -> Program:
    """A copy of the transposed view, on one thread."""
    img, (out,) = inputs["img"], outputs
    return lambda: np.copyto(out, img.T)


def tpm(inputs: Inputs, outputs: Outputs) -> Program:
    """Bitwise and with the transposed view, on one thread."""
    img, mask, (out,) = inputs["img"], inputs["mask"], outputs
    return lambda: np.bitwise_and(img.T, mask, out=out)


def trmm(inputs: Inputs, outputs: Outputs) -> Program:
    """The product with a triangle, by the BLAS that SciPy comes with."""
    from scipy.linalg import blas

    a, b, (out,) = inputs["a"], inputs["b"], outputs

    def compute() -> None:
        np.copyto(out, b)
        blas.strmm(ALPHA, a.T, out.T, side=1, lower=0, trans_a=1, diag=1, overwrite_b=1)

    return compute
