"""Every app's mathematics, one file per app."""

from __future__ import annotations

from ..case import Case
from . import bilateral_grid, blur, copies, harris, iir_blur, unsharp

CASES: dict[str, Case] = {
    **bilateral_grid.CASES,
    **blur.CASES,
    **copies.CASES,
    **harris.CASES,
    **iir_blur.CASES,
    **unsharp.CASES,
}
