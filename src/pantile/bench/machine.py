"""The machine and the software that times were measured with, for the JSON file."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from ..machine import detect

PACKAGES = ("pantile", "llvmlite", "numpy")


def describe() -> dict[str, object]:
    """Processor, caches, system, versions, and how busy the machine is."""
    return {
        **asdict(detect()),
        "os": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "load": _load(),
    }


def _version(package: str) -> str | None:
    """None if it runs from its sources, not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _load() -> float | None:
    """Processes that wanted to run, on average over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
