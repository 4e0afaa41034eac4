"""Every app's mathematics, one file per app."""

from __future__ import annotations

from ..case import Case
from . import blur, copies, harris, iir_blur, unsharp

CASES: dict[str, Case] = {
    **blur.CASES,
    **copies.CASES,
    **harris.CASES,
    **iir_blur.CASES,
    **unsharp.CASES,
}
