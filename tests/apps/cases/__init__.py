"""Every app's mathematics, one file per app."""

from __future__ import annotations

from ..case import Case
from . import blur, harris, unsharp

CASES: dict[str, Case] = {
    **blur.CASES,
    **harris.CASES,
    **unsharp.CASES,
}
