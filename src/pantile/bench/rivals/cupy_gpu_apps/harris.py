"""The corner response: tiles of 32 by 16 whose luma and gradients, with margins, are in shared memory."""

import cupy
import numpy as np

from ..gpu_worker import Inputs, Program, Shapes
from ._launching import kernel

TILE, THREADS = (32, 16), (32, 8)

SOURCE = r"""
extern "C" __global__ void harris(
    const float* __restrict__ image, float* __restrict__ result, int rows, int columns
) {
    // The result starts at pixel (3, 3) of the image: luma is needed from (1, 1) on, gradients from (2, 2) on.
    __shared__ float gray[20 * 36], along_x[18 * 34], along_y[18 * 34];
    int left = blockIdx.x * 32, top = blockIdx.y * 16, thread = threadIdx.y * 32 + threadIdx.x;
    int width = columns + 6, height = rows + 6, plane = height * width;
    for (int k = thread; k < 20 * 36; k += 256) {
        int y = min(top + k / 36 + 1, height - 1), x = min(left + k % 36 + 1, width - 1);
        const float* at = image + y * width + x;
        gray[k] = 0.299f * at[0] + 0.587f * at[plane] + 0.114f * at[2 * plane];
    }
    __syncthreads();
    for (int k = thread; k < 18 * 34; k += 256) {
        const float* g = gray + (k / 34 + 1) * 36 + k % 34 + 1;
        along_x[k] = ((g[-35] - g[-37]) + 2.0f * (g[1] - g[-1]) + (g[37] - g[35])) * (1.0f / 12.0f);
        along_y[k] = ((g[35] - g[-37]) + 2.0f * (g[36] - g[-36]) + (g[37] - g[-35])) * (1.0f / 12.0f);
    }
    __syncthreads();
    int x = left + threadIdx.x;
    for (int i = threadIdx.y; i < 16; i += 8) {
        int y = top + i;
        if (x >= columns || y >= rows) continue;
        float sxx = 0.0f, syy = 0.0f, sxy = 0.0f;
        #pragma unroll
        for (int dy = 0; dy < 3; dy++) {
            #pragma unroll
            for (int dx = 0; dx < 3; dx++) {
                float gx = along_x[(i + dy) * 34 + threadIdx.x + dx], gy = along_y[(i + dy) * 34 + threadIdx.x + dx];
                sxx += gx * gx;
                syy += gy * gy;
                sxy += gx * gy;
            }
        }
        float trace = sxx + syy;
        result[y * columns + x] = sxx * syy - sxy * sxy - 0.04f * trace * trace;
    }
}
"""


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    result = cupy.empty(shapes[0], np.float32)
    return kernel(SOURCE, "harris", inputs["img"], result, TILE, THREADS)
