"""OpenCV's filter, which takes Fourier transforms for such kernels, on one thread: so each gets a strip of rows."""

from concurrent.futures import ThreadPoolExecutor

import cv2

from ..library_worker import Inputs, Outputs, Program


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """Strips overlap by what the kernel reads beyond them."""
    img, kernel, (out,) = inputs["img"], inputs["kernel"], outputs
    rows, threads, reach = img.shape[0], cv2.getNumThreads(), kernel.shape[0] // 2
    pool = ThreadPoolExecutor(threads)

    def strip(number: int) -> None:
        first, last = number * rows // threads, (number + 1) * rows // threads
        top, bottom = max(first - reach, 0), min(last + reach, rows)
        filtered = cv2.filter2D(img[top:bottom], -1, kernel, borderType=cv2.BORDER_REPLICATE)
        out[first:last] = filtered[first - top : last - top]

    def compute() -> None:
        list(pool.map(strip, range(threads)))

    return compute
