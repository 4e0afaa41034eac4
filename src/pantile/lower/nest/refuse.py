"""What only lowering can see to be impossible."""

from __future__ import annotations

from ...analysis.messages import readable
from ...errors import UserError
from ...expr.nodes import Expr
from ...graph.nodes import Stage
from ...schedule.plan import Loop
from ...schedule.refuse import refuse
from ...target.kinds import Kind


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


def not_constant(stage: Stage, loop: Loop, extent: Expr) -> UserError:
    """A vector or unrolled loop of which nobody knows how many iterations it has."""
    verb = "unroll" if loop.kind is Kind.UNROLL else "vectorize"
    return refuse(stage, loop.mark, f"the extent of loop {loop.name} is not constant where {stage.name} is computed: "
                  f"it is {readable(extent)}", f'split it by a constant, as in .{verb}("{loop.name}", 8)')  # fmt: skip


def too_many_values(stage: Stage, loop: Loop, lanes: int, copies: int) -> UserError:
    """Vectors and unrolled loops that would be very much code."""
    return refuse(stage, loop.mark, f"{copies} copies of {lanes} lanes would be too much code where {stage.name} is "
                  "computed", "split it by a smaller constant")  # fmt: skip
