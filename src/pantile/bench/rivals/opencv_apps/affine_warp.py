"""OpenCV's own warp."""

from collections.abc import Callable, Mapping

import cv2

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Make a function that calls OpenCV once and returns the result."""
    img, matrix, (out,) = inputs["img"], inputs["matrix"], outputs
    size = (out.shape[1], out.shape[0])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP

    def compute() -> Array:
        cv2.warpAffine(img, matrix, size, dst=out, flags=flags, borderMode=cv2.BORDER_REPLICATE)
        return out

    return compute
