"""Unsharp masking: tiles of 32 by 32 whose luma, with a margin, and vertical sums are in shared memory."""

import math

import cupy
import numpy as np

from ..gpu_worker import Inputs, Program, Shapes
from ._launching import kernel

SIGMA = 1.5
TILE, THREADS = (32, 32), (32, 8)
WEIGHTS = [math.exp(-i * i / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(4)]

SOURCE = r"""
#define BLURRED(a, at, step) (W0 * a[at] + W1 * (a[at - step] + a[at + step]) \
    + W2 * (a[at - 2 * step] + a[at + 2 * step]) + W3 * (a[at - 3 * step] + a[at + 3 * step]))

extern "C" __global__ void unsharp(
    const float* __restrict__ image, float* __restrict__ result, int rows, int columns
) {
    __shared__ float gray[38 * 38], down[32 * 38];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, thread = threadIdx.y * 32 + threadIdx.x;
    int plane = rows * columns;
    for (int k = thread; k < 38 * 38; k += 256) {
        int y = min(max(top + k / 38 - 3, 0), rows - 1), x = min(max(left + k % 38 - 3, 0), columns - 1);
        const float* at = image + y * columns + x;
        gray[k] = 0.299f * at[0] + 0.587f * at[plane] + 0.114f * at[2 * plane];
    }
    __syncthreads();
    for (int k = thread; k < 32 * 38; k += 256) {
        int at = k + 3 * 38;
        down[k] = BLURRED(gray, at, 38);
    }
    __syncthreads();
    int x = left + threadIdx.x;
    for (int i = threadIdx.y; i < 32; i += 8) {
        int y = top + i;
        if (x >= columns || y >= rows) continue;
        int at = i * 38 + threadIdx.x + 3;
        float here = gray[at + 3 * 38], ratio = (2.0f * here - (BLURRED(down, at, 1))) / here;
        for (int c = 0; c < 3; c++) {
            int place = c * plane + y * columns + x;
            result[place] = ratio * image[place];
        }
    }
}
"""


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    weights = "".join(f"#define W{k} {weight:.9e}f\n" for k, weight in enumerate(WEIGHTS))
    result = cupy.empty(shapes[0], np.float32)
    return kernel(weights + SOURCE, "unsharp", inputs["img"], result, TILE, THREADS)
