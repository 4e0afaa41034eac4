"""One statement inside its loops, as sioutas-thesis chapter 4 looks at it: output[..] = f(inputs[..]).

Every definition of a stage is one. It knows which of its loops may be interchanged and shared among threads.
"""

from __future__ import annotations

from ...cached import cached_property
from ...dataclass import dataclass
from ...expr.visit import variables
from ...graph.nodes import Definition, Stage
from ...schedule.stage_default import lanes
from ...schedule.updates import accumulation, is_independent
from ..common.facts import Extents
from ..strategy import Problem
from .references import Reference, read, written

FEWEST_ITERATIONS = 8  # of a reduction loop that is worth tiling; the windows of convolutions are not


@dataclass(frozen=True, eq=False)
class Statement:
    """output[..] = f(inputs[..]) inside loops: one definition of a stage."""

    problem: Problem
    stage: Stage
    number: int  # of the definition
    extents: Extents  # B: of its loops, outermost first
    output: Reference
    inputs: tuple[Reference, ...]

    @staticmethod
    def of(problem: Problem, stage: Stage, number: int) -> Statement:
        d = stage.definitions[number]
        extents = problem.facts.loops(stage.name, number)
        return Statement(problem, stage, number, extents, written(stage, d, extents), read(stage, d, extents))

    @property
    def references(self) -> tuple[Reference, ...]:
        return (self.output, *self.inputs)

    @property
    def definition(self) -> Definition:
        return self.stage.definitions[self.number]

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The loops whose iterations are independent of each other."""
        return tuple(n for n in self.extents if is_independent(self.stage, self.definition, n))

    @cached_property
    def lanes(self) -> int:
        return lanes(self.stage, self.definition, self.problem.target)

    @cached_property
    def column(self) -> str | None:
        """The loop of the leading dimension, if it can be a vector. That of a few channels is none."""
        last = self.stage.dims[-1] if self.stage.dims and self.stage.name not in self.problem.channels else None
        return last if last in self.free and self.extents[last] >= self.lanes else None

    @property
    def vector(self) -> str:
        """The column of a statement that has one."""
        assert self.column is not None
        return self.column

    @property
    def has_masked_lanes(self) -> bool:
        """Whether a condition differs along the column."""
        condition = self.definition.condition
        return condition is not None and self.column in variables(condition)

    @cached_property
    def tileable(self) -> tuple[str, ...]:
        """The loops that are long enough, and may be interchanged with all others."""
        sums = accumulation(self.stage, self.definition)
        any_order = sums is not None and not (self.problem.strict and not all(f.is_exact for f in sums))
        return tuple(
            n for n, extent in self.extents.items() if n in self.free or (any_order and extent >= FEWEST_ITERATIONS)
        )

    @property
    def is_tileable(self) -> bool:
        pure = [d for d in self.stage.dims if d in self.extents]
        return self.column is not None and len(self.tileable) > 1 and all(d in self.free for d in pure)
