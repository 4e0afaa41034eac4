"""Halide's programs with as few stages as tests/apps/short.py has of ours; whole with PANTILE_FUZZ=long."""

from __future__ import annotations

from ..apps.short import CHAIN, INTERPOLATE_DEPTH, LAPLACIAN_DEPTH
from ..long import LONG

# App -> constants of its program.
FEWER: dict[str, dict[str, int]] = (
    {
        "stencil_chain": {"STAGES": CHAIN, "STORED": CHAIN - 1},
        "local_laplacian": {"DEPTH": LAPLACIAN_DEPTH},
        "interpolate": {"DEPTH": INTERPOLATE_DEPTH},
    }
    if not LONG
    else {}
)


def setting(app: str) -> str:
    """What a process runs before it builds the program of an app."""
    if app not in FEWER:
        return ""
    return f"import rivals.halide_apps.{app} as program; vars(program).update({FEWER[app]})"
