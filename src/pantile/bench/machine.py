"""The machine and the software that times were measured with, for the JSON file."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

import pantile as pt

from ..machine.host import governor

PACKAGES = ("pantile", "llvmlite", "numpy")


def describe() -> dict[str, object]:
    """Processor, caches, system and versions."""
    host = pt.machine.detect()
    return {
        "cpu": host.name,
        **asdict(host),
        "governor": governor(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    """None if it runs from its sources, not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
