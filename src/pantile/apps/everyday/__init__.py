"""Everyday filters as a new user would write them: plain formulas on pictures as everybody has them, no schedule."""

from __future__ import annotations

from . import (
    affine_warp,
    bicubic_resize,
    blend,
    canny,
    chamfer,
    clahe,
    colour_table,
    demosaic,
    guided_filter,
    large_kernel,
    lucas_kanade,
    median,
    temporal_denoise,
    undistort,
)

_MODULES = (
    guided_filter, canny, lucas_kanade, clahe, demosaic, blend, median, chamfer, large_kernel, temporal_denoise,
    bicubic_resize, affine_warp, undistort, colour_table,
)  # fmt: skip

APPS = tuple(app for module in _MODULES for app in module.APPS)
