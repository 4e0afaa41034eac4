"""Every app's mathematics, one file per app."""

from __future__ import annotations

from ..case import Case
from . import bilateral_grid, blur, conv_layer, copies, harris, iir_blur, matmul, unsharp

CASES: dict[str, Case] = {
    **bilateral_grid.CASES,
    **blur.CASES,
    **conv_layer.CASES,
    **copies.CASES,
    **harris.CASES,
    **iir_blur.CASES,
    **matmul.CASES,
    **unsharp.CASES,
}
