"""Every app's mathematics, one file per app."""

from __future__ import annotations

from ..case import Case
from . import (
    bilateral_grid,
    blur,
    camera_pipe,
    conv2d,
    conv_bn_relu,
    conv_layer,
    copies,
    equake,
    harris,
    hist_eq,
    iir_blur,
    interpolate,
    local_laplacian,
    matmul,
    max_filter,
    minifluxdiv,
    multigrid,
    products,
    statistics,
    unsharp,
    vdsr,
    vgg16,
)

CASES: dict[str, Case] = {
    **bilateral_grid.CASES,
    **blur.CASES,
    **camera_pipe.CASES,
    **conv2d.CASES,
    **conv_layer.CASES,
    **copies.CASES,
    **equake.CASES,
    **harris.CASES,
    **hist_eq.CASES,
    **iir_blur.CASES,
    **matmul.CASES,
    **max_filter.CASES,
    **minifluxdiv.CASES,
    **multigrid.CASES,
    **products.CASES,
    **statistics.CASES,
    **local_laplacian.CASES,
    **interpolate.CASES,
    **unsharp.CASES,
    **vdsr.CASES,
    **vgg16.CASES,
    **conv_bn_relu.CASES,
}
