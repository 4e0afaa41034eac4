"""What only lowering can see to be impossible."""

from __future__ import annotations

from ..errors import UserError
from ..graph.nodes import Stage


def different_regions(stage: Stage, host: Stage) -> UserError:
    """Two stages that cannot share loops."""
    return UserError(
        f'pt.on("{stage.name}").compute_with("{host.name}", ...): {stage.name} and {host.name} (defined at '
        f"{host.where}) are needed over different regions, so their loops cannot be shared; compute them one after "
        "the other",
        stage.where,
    )


def unbounded(stage: Stage, k: int) -> UserError:
    """A read whose region cannot be known."""
    return UserError(
        f"{stage.name} is read at a position along {stage.dims[k]} that has no known bounds; limit the index with "
        f"pt.clamp(index, low, high) or promise its range with pt.within(index, low, high)",
        stage.where,
    )
