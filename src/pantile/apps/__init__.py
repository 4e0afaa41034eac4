"""Pipelines as readable examples: those of the literature with schedules written by hand, everyday filters without."""

from __future__ import annotations

from importlib import import_module

from . import everyday, library
from .app import SCHEDULES, App, Layout, Photo

_MODULES = (
    "bilateral_grid blur unsharp harris hist_eq iir_blur copies transposes matmul conv_layer products "
    "covariance gemver conv2d equake max_filter minifluxdiv multigrid camera_pipe local_laplacian interpolate vdsr "
    "vgg16 conv_bn_relu nl_means pyramid_blend lens_blur stencil_chain everyday library"
)
APPS: dict[str, App] = {
    app.name: app for module in _MODULES.split() for app in import_module(f".{module}", __name__).APPS
}
# Names for several apps: filters as new users write them, and what libraries have as one call.
GROUPS = {
    "everyday": tuple(app.name for app in everyday.APPS),
    "library": (
        *(app.name for app in library.APPS), "median", "bicubic_resize", "affine_warp", "large_kernel", "clahe",
    ),
}  # fmt: skip

__all__ = ["APPS", "GROUPS", "SCHEDULES", "App", "Layout", "Photo"]
