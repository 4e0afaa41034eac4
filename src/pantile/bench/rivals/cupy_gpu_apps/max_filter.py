"""The maximum over a disc: a kernel for each power of two of rows, and one that takes two of these per column."""

import math

import cupy
import numpy as np

from ..gpu_worker import Array, Inputs, Program, Shapes

RADIUS = 26
HEIGHTS = [sum(dx * dx + k * k < (RADIUS + 0.25) ** 2 for k in range(RADIUS + 1)) for dx in range(RADIUS + 1)]
MARGIN = max(HEIGHTS)
LEVELS = int(math.log2(2 * MARGIN + 1)) + 1
THREADS = (32, 8)

SOURCE = r"""
// Tables have `margin` rows more above and below, which repeat the image's edges.
extern "C" __global__ void single(const float* __restrict__ image, float* __restrict__ table, int rows, int width) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, plane = blockIdx.z;
    int tall = rows + 2 * MARGIN;
    if (x >= width || y >= tall) return;
    int from = min(max(y - MARGIN, 0), rows - 1);
    table[(plane * tall + y) * width + x] = image[(plane * rows + from) * width + x];
}

extern "C" __global__ void doubled(
    const float* __restrict__ before, float* __restrict__ table, int rows, int width, int half
) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, plane = blockIdx.z;
    int tall = rows + 2 * MARGIN;
    if (x >= width || y >= tall) return;
    int other = min(y + half, tall - 1), at = plane * tall;
    table[(at + y) * width + x] = fmaxf(before[(at + y) * width + x], before[(at + other) * width + x]);
}

extern "C" __global__ void discs(const float* __restrict__ tables, float* __restrict__ result, int rows, int width) {
    const int heights[RADIUS + 1] = HEIGHTS, levels[RADIUS + 1] = LEVELS;
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, plane = blockIdx.z;
    int tall = rows + 2 * MARGIN, size = gridDim.z * tall * width;
    if (x >= width || y >= rows) return;
    float found = -1e38f;
    #pragma unroll
    for (int dx = -RADIUS; dx <= RADIUS; dx++) {
        const int k = dx < 0 ? -dx : dx;
        int column = min(max(x + dx, 0), width - 1);
        const float* at = tables + levels[k] * size + (plane * tall + y + MARGIN) * width + column;
        found = fmaxf(found, fmaxf(at[-heights[k] * width], at[(heights[k] + 1 - (1 << levels[k])) * width]));
    }
    result[(plane * rows + y) * width + x] = found;
}
"""


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    levels = [int(math.log2(2 * height + 1)) for height in HEIGHTS]
    constants = {"RADIUS": RADIUS, "MARGIN": MARGIN, "HEIGHTS": _listed(HEIGHTS), "LEVELS": _listed(levels)}
    defined = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    module = cupy.RawModule(code=defined + SOURCE, options=("--std=c++17",))
    single, doubled, discs = map(module.get_function, ("single", "doubled", "discs"))
    image, (planes, rows, width) = inputs["img"], shapes[0]
    tables = cupy.empty((LEVELS, planes, rows + 2 * MARGIN, width), np.float32)
    result, size = cupy.empty(shapes[0], np.float32), (np.int32(rows), np.int32(width))

    def grid(height: int) -> tuple[int, int, int]:
        return -(-width // THREADS[0]), -(-height // THREADS[1]), planes

    def compute() -> Array:
        single(grid(rows + 2 * MARGIN), THREADS, (image, tables[0], *size))
        for k in range(1, LEVELS):
            doubled(grid(rows + 2 * MARGIN), THREADS, (tables[k - 1], tables[k], *size, np.int32(2 ** (k - 1))))
        discs(grid(rows), THREADS, (tables, result, *size))
        return result

    return compute


def _listed(values: list[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"
