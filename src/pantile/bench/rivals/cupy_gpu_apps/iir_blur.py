"""The recursive blur: a thread filters a column down and up, sixteen rows of loads at a time; tiles transpose."""

import cupy
import numpy as np

from ..gpu_worker import Array, Inputs, Program, Shapes

ALPHA = 0.5
THREADS, TILE = 32, 32

SOURCE = r"""
extern "C" __global__ void columns(
    const float* __restrict__ image, float* __restrict__ result, int rows, int width, float alpha
) {
    int x = blockIdx.x * 32 + threadIdx.x;
    if (x >= width) return;
    const float* from = image + (long long)blockIdx.y * rows * width + x;
    float* to = result + (long long)blockIdx.y * rows * width + x;
    float value = from[0];
    to[0] = value;
    int y = 1;
    for (; y + 16 <= rows; y += 16) {
        float loaded[16];
        #pragma unroll
        for (int k = 0; k < 16; k++) loaded[k] = from[(y + k) * width];
        #pragma unroll
        for (int k = 0; k < 16; k++) {
            value = (1.0f - alpha) * value + alpha * loaded[k];
            to[(y + k) * width] = value;
        }
    }
    for (; y < rows; y++) {
        value = (1.0f - alpha) * value + alpha * from[y * width];
        to[y * width] = value;
    }
    y = rows - 2;
    for (; y >= 15; y -= 16) {
        float loaded[16];
        #pragma unroll
        for (int k = 0; k < 16; k++) loaded[k] = to[(y - k) * width];
        #pragma unroll
        for (int k = 0; k < 16; k++) {
            value = (1.0f - alpha) * value + alpha * loaded[k];
            to[(y - k) * width] = value;
        }
    }
    for (; y >= 0; y--) {
        value = (1.0f - alpha) * value + alpha * to[y * width];
        to[y * width] = value;
    }
}

extern "C" __global__ void transpose(const float* __restrict__ from, float* __restrict__ to, int rows, int width) {
    __shared__ float tile[32][33];
    long long plane = (long long)blockIdx.z * rows * width;
    int left = blockIdx.x * 32, top = blockIdx.y * 32;
    for (int i = threadIdx.y; i < 32; i += 8)
        if (top + i < rows && left + threadIdx.x < width)
            tile[i][threadIdx.x] = from[plane + (top + i) * width + left + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8)
        if (left + i < width && top + threadIdx.x < rows)
            to[plane + (left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
}
"""


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    module = cupy.RawModule(code=SOURCE, options=("--std=c++17",))
    filter_columns, transpose = map(module.get_function, ("columns", "transpose"))
    image, (planes, rows, width) = inputs["img"], shapes[0]
    filtered, turned, result = (cupy.empty(image.size, np.float32) for _ in range(3))

    def turned_blur(source: Array, into: Array, height: int, across: int) -> None:
        size = np.int32(height), np.int32(across)
        filter_columns((-(-across // THREADS), planes), (THREADS,), (source, filtered, *size, np.float32(ALPHA)))
        transpose((-(-across // TILE), -(-height // TILE), planes), (32, 8), (filtered, into, *size))

    def compute() -> Array:
        turned_blur(image, turned, rows, width)
        turned_blur(turned, result, width, rows)
        return result.reshape(shapes[0])

    return compute
