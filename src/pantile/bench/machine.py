"""The machine and the software that times were measured with, for the JSON file."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pantile as pt

from ..machine.host import governor

GPU_PACKAGES = ("torch", "triton", "cupy-cuda13x", "cuda-bindings", "halide")
UNKNOWN_GPU = "unknown GPU"
PACKAGES = ("pantile", "llvmlite", "numpy")


def describe(on_gpu: bool = False) -> dict[str, object]:
    """Processor, caches, system and versions; and the GPU, if asked for."""
    host = pt.machine.detect()
    return {
        "cpu": host.name,
        **asdict(host),
        "governor": governor(),
        **(gpu() if on_gpu else {}),
        "os": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def run() -> dict[str, object]:
    """When, from which commit and by which command something is measured. The commit is None outside a checkout."""
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": _commit(),
        "command": shlex.join(["pantile", *sys.argv[1:]]),
    }


def _commit() -> str | None:
    """The commit of the checkout that this package runs from, marked if files differ from it."""
    describe = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(
            describe, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def gpu() -> dict[str, object]:
    """What nvidia-smi says of the first GPU, and the packages that run on it."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
    try:
        fields = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    except (OSError, subprocess.CalledProcessError, IndexError):
        fields = [UNKNOWN_GPU]
    name, *more = fields
    return {
        "gpu": name,
        **dict(zip(("gpu_driver", "gpu_memory", "gpu_clock"), more, strict=False)),
        "gpu_versions": {package: _version(package) for package in GPU_PACKAGES},
    }


def _version(package: str) -> str | None:
    """None if it runs from its sources, not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
