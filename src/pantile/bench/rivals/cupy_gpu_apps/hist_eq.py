"""Histogram equalization: blocks count by atomic additions in shared memory, then in the whole; one block sums up."""

import cupy
import numpy as np

from ..gpu_worker import Array, Inputs, Program, Shapes

THREADS, BLOCKS = 256, 1056

SOURCE = r"""
__device__ float luma(const unsigned char* image, int plane, int k) {
    return 0.299f * image[k] + 0.587f * image[k + plane] + 0.114f * image[k + 2 * plane];
}

__device__ float byte_range(float value) { return fminf(fmaxf(value, 0.0f), 255.0f); }

extern "C" __global__ void count(const unsigned char* __restrict__ image, int* counts, int plane) {
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int k = blockIdx.x * 256 + threadIdx.x; k < plane; k += gridDim.x * 256)
        atomicAdd(&own[(int)byte_range(luma(image, plane, k))], 1);
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void share(int* counts, float* equal, int plane) {
    __shared__ int below[256];
    int own = counts[threadIdx.x];
    counts[threadIdx.x] = 0;  // for the next call
    below[threadIdx.x] = own;
    for (int step = 1; step < 256; step *= 2) {
        __syncthreads();
        int more = threadIdx.x >= step ? below[threadIdx.x - step] : 0;
        __syncthreads();
        below[threadIdx.x] += more;
    }
    equal[threadIdx.x] = byte_range(below[threadIdx.x] * (255.0f / plane));
}

extern "C" __global__ void equalize(
    const unsigned char* __restrict__ image, const float* __restrict__ equal, unsigned char* __restrict__ result,
    int plane
) {
    __shared__ float table[256];
    table[threadIdx.x] = equal[threadIdx.x];
    __syncthreads();
    for (int k = blockIdx.x * 256 + threadIdx.x; k < plane; k += gridDim.x * 256) {
        float gray = luma(image, plane, k), even = table[(int)byte_range(gray)];
        float red = 0.713f * (image[k] - gray), blue = 0.564f * (image[k + 2 * plane] - gray);
        result[k] = byte_range(even + 1.4f * red);
        result[k + plane] = byte_range(even - 0.343f * blue - 0.711f * red);
        result[k + 2 * plane] = byte_range(even + 1.765f * blue);
    }
}
"""


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    module = cupy.RawModule(code=SOURCE, options=("--std=c++17",))
    count, share, equalize = map(module.get_function, ("count", "share", "equalize"))
    image, plane = inputs["img"], np.int32(shapes[0][1] * shapes[0][2])
    counts, equal, result = cupy.zeros(256, np.int32), cupy.empty(256, np.float32), cupy.empty(shapes[0], np.uint8)

    def compute() -> Array:
        count((BLOCKS,), (THREADS,), (image, counts, plane))
        share((1,), (THREADS,), (counts, equal, plane))
        equalize((BLOCKS,), (THREADS,), (image, equal, result, plane))
        return result

    return compute
