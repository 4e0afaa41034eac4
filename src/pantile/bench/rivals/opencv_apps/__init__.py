"""Apps as calls of OpenCV's functions, on planes or in its own interleaved layout, whichever it is faster on."""

import cv2


def set_threads(threads: int) -> None:
    """How many it runs on."""
    cv2.setNumThreads(threads)
