"""Pipelines as readable examples, each with a schedule written by hand."""

from __future__ import annotations

from . import (
    bilateral_grid,
    blur,
    camera_pipe,
    conv2d,
    conv_bn_relu,
    conv_layer,
    copies,
    covariance,
    equake,
    gemver,
    harris,
    hist_eq,
    iir_blur,
    interpolate,
    lens_blur,
    local_laplacian,
    matmul,
    max_filter,
    minifluxdiv,
    multigrid,
    nl_means,
    products,
    pyramid_blend,
    stencil_chain,
    transposes,
    triangles,
    unsharp,
    vdsr,
    vgg16,
)
from .app import SCHEDULES, App
from .photo import Layout, Photo

_MODULES = (
    bilateral_grid,
    blur,
    unsharp,
    harris,
    hist_eq,
    iir_blur,
    copies,
    transposes,
    matmul,
    conv_layer,
    products,
    triangles,
    covariance,
    gemver,
    conv2d,
    equake,
    max_filter,
    minifluxdiv,
    multigrid,
    camera_pipe,
    local_laplacian,
    interpolate,
    vdsr,
    vgg16,
    conv_bn_relu,
    nl_means,
    pyramid_blend,
    lens_blur,
    stencil_chain,
)

APPS: dict[str, App] = {app.name: app for module in _MODULES for app in module.APPS}

__all__ = ["APPS", "SCHEDULES", "App", "Layout", "Photo"]
