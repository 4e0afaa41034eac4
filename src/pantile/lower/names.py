"""Names that several passes agree on."""

from __future__ import annotations

from ..expr.nodes import Var, var


def region_names(stage: str, dim: str) -> tuple[Var, Var]:
    """The names of the first and last coordinate a stage is computed over."""
    return var(f"{stage}.{dim}.min"), var(f"{stage}.{dim}.max")
