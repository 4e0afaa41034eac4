"""The chain of stencils: a kernel per stage, with tiles of 64 by 16 and their sums along rows in shared memory."""

import cupy
import numpy as np

from ..gpu_worker import Array, Inputs, Program, Shapes

STAGES, RADIUS = 32, 2
TILE, THREADS = (64, 16), (32, 8)

SOURCE = r"""
// A stage of rows by columns from one that has two more on every side; the first one repeats the image's edges.
extern "C" __global__ void stencil(
    const unsigned short* __restrict__ before, unsigned short* __restrict__ after, int rows, int columns, int beyond,
    int height, int width
) {
    __shared__ unsigned short tile[20][68];
    __shared__ unsigned short across[20][64];
    int left = blockIdx.x * 64, top = blockIdx.y * 16, thread = threadIdx.y * 32 + threadIdx.x;
    for (int k = thread; k < 20 * 68; k += 256) {
        int y = min(max(top + k / 68 - beyond, 0), height - 1), x = min(max(left + k % 68 - beyond, 0), width - 1);
        tile[k / 68][k % 68] = before[y * width + x];
    }
    __syncthreads();
    for (int k = thread; k < 20 * 64; k += 256) {
        const unsigned short* at = &tile[k / 64][k % 64];
        across[k / 64][k % 64] = at[0] + 2 * at[1] + 3 * at[2] + 4 * at[3] + 5 * at[4];
    }
    __syncthreads();
    for (int k = thread; k < 16 * 64; k += 256) {
        int i = k / 64, j = k % 64;
        const unsigned short* at = &across[i][j];
        if (top + i < rows && left + j < columns)
            after[(top + i) * columns + left + j] = at[0] + 2 * at[64] + 3 * at[128] + 4 * at[192] + 5 * at[256];
    }
}
"""


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    """Into the same arrays at every call; each stage has two rows and columns fewer on every side."""
    stencil = cupy.RawKernel(SOURCE, "stencil", options=("--std=c++17",))
    margins = [2 * RADIUS * left for left in reversed(range(STAGES))]
    stages = [cupy.empty([n + margin for n in shapes[0]], np.uint16) for margin in margins]
    launches = []
    for before, after in zip([inputs["img"], *stages], stages, strict=False):
        rows, columns = after.shape
        beyond = STAGES * RADIUS if before is inputs["img"] else 0
        grid = (-(-columns // TILE[0]), -(-rows // TILE[1]))
        launches.append((grid, (before, after, *map(np.int32, (rows, columns, beyond, *before.shape)))))

    def compute() -> Array:
        for grid, given in launches:
            stencil(grid, THREADS, given)
        return stages[-1]

    return compute
