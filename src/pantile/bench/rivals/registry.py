"""The rivals by name."""

from __future__ import annotations

from . import halide
from .library import library, on_gpu
from .process import programs
from .rival import Rival

RIVALS: dict[str, Rival] = {
    "halide": Rival(halide.SCHEDULES, programs("halide"), halide.find_python, halide.enter),
    "opencv": library("opencv", "cv2", "opencv-python-headless"),
    "numba": library("numba", "numba", "numba", schedule="loops"),
    "torch": library("torch", "torch", "torch"),
    "numpy": library("numpy", "numpy", "numpy"),
    "scipy": library("scipy", "scipy", "scipy"),
    "skimage": library("skimage", "skimage", "scikit-image"),
}

GPU_RIVALS: dict[str, Rival] = {
    "halide": Rival(halide.GPU_SCHEDULES, programs("halide"), halide.find_python, halide.enter_on_gpu),
    "torch": on_gpu("torch", "torch", "torch", schedule="compile"),
    "cupy": on_gpu("cupy", "cupy", "cupy-cuda13x", schedule="kernels"),
    "triton": on_gpu("triton", "triton", "triton", schedule="kernels"),
}
