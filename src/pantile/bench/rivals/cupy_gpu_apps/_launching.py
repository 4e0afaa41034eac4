"""Kernels over pictures."""

from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np

from ..gpu_worker import Array


def kernel(
    source: str, name: str, image: Array, result: Array, tile: tuple[int, int], block: tuple[int, int]
) -> Callable[[], Array]:
    """`name(image, result, rows, columns)`, a block of threads for each tile of the result's last two axes (rows and
    columns); `tile` and `block` are columns and rows."""
    compiled = cupy.RawKernel(source, name, options=("--std=c++17",))
    rows, columns = result.shape[-2:]
    grid = (-(-columns // tile[0]), -(-rows // tile[1]))
    given: Sequence[Any] = (image, result, np.int32(rows), np.int32(columns))

    def compute() -> Array:
        compiled(grid, block, given)
        return result

    return compute
