"""Storage: memory for the computed region of a stage, at the site that the plan says.

before:  produce f over f.y.min..f.y.max; ...     after:  realize f: [f.y.min..f.y.max + 1] in memory of the plan's kind
                                                              produce f ...; ...

The kind stays as the plan has it, AUTO too: `flatten` decides where that lies. Dims that slide become circular in
`fold_storage`.
"""

from __future__ import annotations

from ...analysis.interval import Interval
from ...analysis.load_boxes import Box
from ...expr.linear import Facts, simplify
from ...expr.nodes import Expr, const
from ...expr.types import INDEX
from ...graph.nodes import Stage
from ...ir.nodes import Realize, Stmt
from ...schedule.plan import StagePlan
from .regions import Region


def realize(stage: Stage, p: StagePlan, box: Box, region: Region | None, facts: Facts, body: Stmt) -> Stmt:
    """Allocate a box of the stage during `body`; `region` is what is computed of it at a time."""
    clipped = region.clipped if region is not None and p.compute == p.store else {}
    sides = tuple((side.low, _extent(side, clipped.get(k), facts)) for k, side in enumerate(box))
    for buffer, dtype in reversed(list(zip(stage.buffers, stage.dtypes, strict=True))):
        body = Realize(buffer, dtype, sides, p.memory, body)
    return body


def _extent(side: Interval, before: int | None, facts: Facts) -> Expr:
    """The extent of the memory along one dim: that before clipping if it is constant, which is simpler."""
    return simplify(side.high - side.low + 1, facts) if before is None else const(before, INDEX)
