"""Pantile runs on Linux, whose system calls its threads make. Elsewhere an import says so before all else fails."""

from __future__ import annotations

import sys

if sys.platform != "linux":
    raise ImportError(
        f"Pantile runs on Linux, and this is {sys.platform}; on Windows use WSL, elsewhere a container or a virtual "
        "machine"
    )
