"""Apps as calls of OpenCV's functions, on planes or in its own interleaved layout, whichever it is faster on."""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import cv2
import numpy as np

from .library_worker import Array, Inputs, Outputs, Program

LEVELS = 6  # of the pyramids of `blend`
REPLICATE = cv2.BORDER_REPLICATE
DIFFERS = {
    "blur": "OpenCV rounds the mean of nine pixels to the nearest; the app divides by three twice, rounding down",
    "hist_eq": "OpenCV rounds luma and chroma to 8 bits, and starts its cumulative histogram at the first level in use",
    "undistort": "OpenCV interpolates between pixels in steps of 1/32; the app takes places as they are",
}


def set_threads(threads: int) -> None:
    """How many it runs on."""
    cv2.setNumThreads(threads)


def affine_warp(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own warp."""
    img, matrix, (out,) = inputs["img"], inputs["matrix"], outputs
    size = (out.shape[1], out.shape[0])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return lambda: cv2.warpAffine(img, matrix, size, dst=out, flags=flags, borderMode=REPLICATE)


def bicubic_resize(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own interpolation."""
    img, (out,) = inputs["img"], outputs
    size = (out.shape[1], out.shape[0])
    return lambda: cv2.resize(img, size, dst=out, interpolation=cv2.INTER_CUBIC)


def bilateral(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own bilateral filter."""
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.bilateralFilter(img, 9, 30, 3, dst=out, borderType=REPLICATE)


def blend(inputs: Inputs, outputs: Outputs) -> Program:
    """Pyramids by `pyrDown` and `pyrUp`, which use one thread: one for each picture. `blendLinear` mixes them."""
    a, b, mask, (out,) = inputs["a"], inputs["b"], inputs["mask"], outputs
    weights, others, firsts, seconds = _levels(mask.shape), _levels(mask.shape), _levels(a.shape), _levels(b.shape)
    ups, more_ups = _levels(a.shape), _levels(a.shape)
    pool = ThreadPoolExecutor(cv2.getNumThreads())

    def weigh() -> None:
        cv2.multiply(mask, 1 / 255, dst=weights[0], dtype=cv2.CV_32F)
        _gaussian(weights)
        for weight, other in zip(weights, others, strict=True):
            cv2.subtract(1.0, weight, dst=other)

    def compute() -> None:
        tasks = [pool.submit(_details, a, firsts, ups), pool.submit(_details, b, seconds, more_ups), pool.submit(weigh)]
        for task in tasks:
            task.result()
        for first, second, weight, other in zip(firsts, seconds, weights, others, strict=True):
            cv2.blendLinear(first, second, weight, other, dst=first)
        for n in reversed(range(LEVELS)):
            cv2.pyrUp(firsts[n + 1], dst=ups[n], dstsize=_size(ups[n]))
            cv2.add(ups[n], firsts[n], dst=firsts[n] if n else out, dtype=cv2.CV_32F if n else cv2.CV_8U)

    return compute


def _levels(shape: tuple[int, ...]) -> list[Array]:
    """Room for a pyramid."""
    levels = [np.empty(shape, np.float32)]
    for _ in range(LEVELS):
        height, width, *channels = levels[-1].shape
        levels.append(np.empty(((height + 1) // 2, (width + 1) // 2, *channels), np.float32))
    return levels


def _size(a: Array) -> tuple[int, int]:
    return a.shape[1], a.shape[0]


def _details(picture: Array, levels: list[Array], ups: list[Array]) -> None:
    """The Laplacian pyramid of a picture; `ups` is room for it."""
    np.copyto(levels[0], picture)
    _gaussian(levels)
    for (fine, coarse), up in zip(pairwise(levels), ups, strict=False):
        cv2.pyrUp(coarse, dst=up, dstsize=_size(up))
        cv2.subtract(fine, up, dst=fine)


def _gaussian(levels: list[Array]) -> None:
    for fine, coarse in pairwise(levels):
        cv2.pyrDown(fine, dst=coarse, dstsize=_size(coarse), borderType=REPLICATE)


def blur(inputs: Inputs, outputs: Outputs) -> Program:
    """The 3x3 box filter. Blur all of the image; the app's result has no border."""
    del outputs
    img = inputs["img"]
    blurred = np.empty_like(img)

    def compute() -> Array:
        cv2.blur(img, (3, 3), dst=blurred)
        return blurred[1:-1, 1:-1]

    return compute


def box_filter(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own mean."""
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.blur(img, (5, 5), dst=out, borderType=REPLICATE)


def canny(inputs: Inputs, outputs: Outputs) -> Program:
    """Grey, a binomial blur, and OpenCV's detector with both thresholds alike, so that its hysteresis adds nothing."""
    img, (out,) = inputs["img"], outputs
    gray, smooth = np.empty_like(out), np.empty_like(out)

    def compute() -> None:
        cv2.cvtColor(img, cv2.COLOR_RGB2GRAY, dst=gray)
        cv2.GaussianBlur(gray, (5, 5), 0, dst=smooth)
        cv2.Canny(smooth, 60, 60, edges=out)

    return compute


def chamfer(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own distance transform, by a 3x3 chamfer."""
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.distanceTransform(img, cv2.DIST_L2, 3, dst=out)


def clahe(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own histogram equalization of tiles, with a limit on contrast."""
    img, (out,) = inputs["img"], outputs
    clahe = cv2.createCLAHE(clipLimit=2.0, tileGridSize=(8, 8))
    return lambda: clahe.apply(img, dst=out)


def gaussian(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own Gaussian, in fixed point."""
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.GaussianBlur(img, (7, 7), 1.5, dst=out, borderType=REPLICATE)


def grayscale(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own conversion."""
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.cvtColor(img, cv2.COLOR_RGB2GRAY, dst=out)


def guided_filter(inputs: Inputs, outputs: Outputs) -> Program:
    """Box filters and arithmetic in place, on values from 0 to 255. Sums of bytes and of their squares are exact."""
    img, (out,) = inputs["img"], outputs
    mean, variance, slope, total = (np.empty(img.shape, np.float32) for _ in range(4))

    def compute() -> None:
        cv2.boxFilter(img, cv2.CV_32F, (17, 17), dst=mean, borderType=REPLICATE)
        cv2.sqrBoxFilter(img, cv2.CV_32F, (17, 17), dst=variance, borderType=REPLICATE)
        cv2.multiply(mean, mean, dst=total)
        cv2.subtract(variance, total, dst=variance)
        np.add(variance, np.float32((0.1 * 255) ** 2), out=total)
        cv2.divide(variance, total, dst=slope)
        cv2.multiply(mean, slope, dst=total)
        cv2.subtract(mean, total, dst=mean)  # the offset
        cv2.blur(slope, (17, 17), dst=total, borderType=REPLICATE)
        cv2.blur(mean, (17, 17), dst=variance, borderType=REPLICATE)
        cv2.multiply(total, img, dst=total, dtype=cv2.CV_32F)
        cv2.add(total, variance, dst=out, dtype=cv2.CV_8U)

    return compute


def harris(inputs: Inputs, outputs: Outputs) -> Program:
    """Grey, then OpenCV's corner detector, whose gradients are scaled by 1/12 as in the app; that has no border."""
    del outputs
    red, green, blue = inputs["img"]
    gray, response = np.empty_like(red), np.empty_like(red)

    def compute() -> Array:
        cv2.addWeighted(red, 0.299, green, 0.587, 0, dst=gray)
        cv2.scaleAdd(blue, 0.114, gray, dst=gray)
        cv2.cornerHarris(gray, 3, 3, 0.04, dst=response)
        return response[3:-3, 3:-3]

    return compute


def hist_eq(inputs: Inputs, outputs: Outputs) -> Program:
    """Histogram equalization of the luma of an interleaved image. The image is interleaved beforehand."""
    del outputs
    img = np.ascontiguousarray(np.moveaxis(inputs["img"], 0, -1))
    converted, out = np.empty_like(img), np.empty_like(img)
    luma = np.empty(img.shape[:2], np.uint8)

    def compute() -> Array:
        cv2.cvtColor(img, cv2.COLOR_RGB2YCrCb, dst=converted)
        cv2.extractChannel(converted, 0, dst=luma)
        cv2.equalizeHist(luma, dst=luma)
        cv2.insertChannel(luma, converted, 0)
        cv2.cvtColor(converted, cv2.COLOR_YCrCb2RGB, dst=out)
        return np.moveaxis(out, -1, 0)

    return compute


def large_kernel(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's filter takes Fourier transforms for such kernels, on one thread: each gets a strip of rows.

    Strips overlap by what the kernel reads beyond them.
    """
    img, kernel, (out,) = inputs["img"], inputs["kernel"], outputs
    rows, threads, reach = img.shape[0], cv2.getNumThreads(), kernel.shape[0] // 2
    pool = ThreadPoolExecutor(threads)

    def strip(number: int) -> None:
        first, last = number * rows // threads, (number + 1) * rows // threads
        top, bottom = max(first - reach, 0), min(last + reach, rows)
        filtered = cv2.filter2D(img[top:bottom], -1, kernel, borderType=REPLICATE)
        out[first:last] = filtered[first - top : last - top]

    def compute() -> None:
        list(pool.map(strip, range(threads)))

    return compute


def lucas_kanade(inputs: Inputs, outputs: Outputs) -> Program:
    """Gradients, box filters and arithmetic."""
    before, after, (out,) = inputs["before"], inputs["after"], outputs
    dx, dy, dt, product, xx, xy, yy, xt, yt = (np.empty(before.shape, np.float32) for _ in range(9))

    def mean(f: Array, g: Array, target: Array) -> None:
        cv2.multiply(f, g, dst=product)
        cv2.blur(product, (9, 9), dst=target, borderType=REPLICATE)

    def combination(p: Array, q: Array, r: Array, s: Array, target: Array) -> Array:
        """p*q - r*s, which may take the place of p or q."""
        cv2.multiply(r, s, dst=product)
        cv2.multiply(p, q, dst=target)
        return cv2.subtract(target, product, dst=target)

    def compute() -> None:
        cv2.Sobel(before, cv2.CV_32F, 1, 0, dst=dx, ksize=1, scale=0.5, borderType=REPLICATE)
        cv2.Sobel(before, cv2.CV_32F, 0, 1, dst=dy, ksize=1, scale=0.5, borderType=REPLICATE)
        cv2.subtract(after, before, dst=dt, dtype=cv2.CV_32F)
        for f, g, target in ((dx, dx, xx), (dx, dy, xy), (dy, dy, yy), (dx, dt, xt), (dy, dt, yt)):
            mean(f, g, target)
        np.add(xx, np.float32(10), out=xx)
        np.add(yy, np.float32(10), out=yy)
        determinant = combination(xx, yy, xy, xy, dx)
        u = combination(xy, yt, yy, xt, dy)
        v = combination(xy, xt, xx, yt, dt)
        cv2.divide(u, determinant, dst=u)
        cv2.divide(v, determinant, dst=v)
        cv2.merge([u, v], dst=out)

    return compute


def max_filter(inputs: Inputs, outputs: Outputs) -> Program:
    """Dilation of each plane by a disc. The disc is one pixel taller than round on every column, as the app's is."""
    img = inputs["img"]
    (out,) = outputs
    disc = _disc()

    def compute() -> None:
        for source, target in zip(img, out, strict=True):
            cv2.dilate(source, disc, dst=target)

    return compute


def _disc() -> Array:
    radius = 26
    column = np.arange(-radius, radius + 1)
    rows = np.arange(radius + 1)
    half_heights = (column[:, None] ** 2 + rows**2 < (radius + 0.25) ** 2).sum(axis=1)
    rows = np.arange(-radius - 1, radius + 2)
    return (np.abs(rows)[:, None] <= half_heights).astype(np.uint8)


def median(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own median."""
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.medianBlur(img, 5, dst=out)


def sobel(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's own Sobel."""
    img, (out,) = inputs["img"], outputs
    return lambda: cv2.Sobel(img, cv2.CV_16S, 1, 0, dst=out, ksize=3, borderType=REPLICATE)


def undistort(inputs: Inputs, outputs: Outputs) -> Program:
    """OpenCV's remap, with maps that are made once, in the format that it is fastest with."""
    img, (out,) = inputs["img"], outputs
    rows, columns, _ = img.shape
    v, u = (np.arange(rows) - rows / 2)[:, None] / (columns / 2), (np.arange(columns) - columns / 2) / (columns / 2)
    far = u * u + v * v
    scale = 1 - 0.12 * far + 0.03 * far * far
    across, down = (u * scale + 1) * (columns / 2), v * scale * (columns / 2) + rows / 2
    places, parts = cv2.convertMaps(across.astype(np.float32), down.astype(np.float32), cv2.CV_16SC2)
    return lambda: cv2.remap(img, places, parts, cv2.INTER_LINEAR, dst=out, borderMode=REPLICATE)


def unsharp(inputs: Inputs, outputs: Outputs) -> Program:
    """Unsharp masking of planes, one function after the other."""
    red, green, blue = img = inputs["img"]
    (out,) = outputs
    gray, blurred = np.empty_like(red), np.empty_like(red)
    sigma = 1.5
    density = [math.exp(-(i**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma) for i in range(-3, 4)]
    kernel = np.array(density, np.float32)

    def compute() -> None:
        cv2.addWeighted(red, 0.299, green, 0.587, 0, dst=gray)
        cv2.scaleAdd(blue, 0.114, gray, dst=gray)
        cv2.sepFilter2D(gray, cv2.CV_32F, kernel, kernel, dst=blurred, borderType=REPLICATE)
        cv2.addWeighted(gray, 2, blurred, -1, 0, dst=blurred)
        ratio = cv2.divide(blurred, gray, dst=blurred)
        for channel in range(3):
            cv2.multiply(img[channel], ratio, dst=out[channel])

    return compute
