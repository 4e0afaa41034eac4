"""Everyday filters as a new user would write them: plain formulas on pictures as everybody has them, no schedule."""

from __future__ import annotations

from importlib import import_module

from ..app import App

_MODULES = (
    "guided_filter canny lucas_kanade clahe demosaic blend median chamfer large_kernel temporal_denoise bicubic_resize "
    "affine_warp undistort colour_table"
)
APPS: tuple[App, ...] = tuple(app for module in _MODULES.split() for app in import_module(f".{module}", __name__).APPS)
