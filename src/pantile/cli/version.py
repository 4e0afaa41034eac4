"""Which version this is."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """That of the installed package."""
    try:
        return metadata.version("pantile")
    except metadata.PackageNotFoundError:
        return "(not installed)"
