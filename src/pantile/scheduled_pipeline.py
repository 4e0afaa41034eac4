"""A pipeline with its schedule and its kernels: one per variant, compiled when a call first needs it.

If the last axis of a picture is short, its extent, the number of channels, is treated as known. Calls with such a
picture have a pipeline in which it is a constant, so they have their own schedule and kernels, with unrolled loops over
channels.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Hashable, Mapping

from .backends import Executable, backend_of
from .compile import Options, compile_kernel, kernel_key, lowered, memory_of_blocks, to_loops, to_plan, trace_of
from .cost_model import Cost, Sizes, plan_cost
from .dataclass import cached_property, memoized
from .errors import UserError
from .expr.nodes import Number
from .graph.nodes import Graph
from .ir.nodes import Program
from .machine import Cpu
from .progress import doing
from .runtime import kernels
from .schedule.default import complete, places_like
from .schedule.kernel_keys import kernel_keys
from .schedule.refuse import warn_smaller
from .schedule.schedule import Schedule
from .target.kinds import Memory
from .variant import Variant, Variants

TIMINGS_VARIABLE = "PANTILE_TIMINGS"
Known = tuple[tuple[str, int], ...]  # extents by name, such as ("img.shape.2", 3)
CallClass = tuple[Known, int]  # calls that share a schedule: their known extents, and their size class
Timings = dict[str, float]


class ScheduledPipeline:
    """A graph, its schedule (completed for the target and checked), and the compiled kernels."""

    def __init__(
        self,
        graph: Graph,
        requested: Schedule,
        options: Options,
        timings: Timings,
        like: Schedule | None = None,
        by_hand: bool = False,
    ) -> None:
        completed = complete(graph, requested, options.target, strict=options.strict, like=like)
        self.graph, self.options = graph, options
        # Copies and stages of partial results are not in the graph yet; unknown names are rejected below.
        later = {**places_like(requested, like), **requested}
        self.schedule = Schedule(*completed.values(), *(s for name, s in later.items() if name not in completed))
        self._resolved, self._plan = to_plan(graph, self.schedule, options)
        # Panels and strips extend beyond the required region, and copies may need bounds that their source, if it is
        # not stored, does not need. In these cases, calls are also checked on the resolved graph.
        changed = self.schedule.has("panels", "strips", "clone_in", "copy_in", "copy_out")
        self.computed = self._resolved if changed else None
        self.requested, self._written = requested, requested if by_hand else Schedule()
        self.stored = frozenset(self._plan.stages)
        self._timings = timings  # of the last compilation, by this object or others that share the dict

    @cached_property
    def whole(self) -> Schedule:
        """The schedule, including the defaults for copies and for stages of partial results."""
        made = (s for name, s in self._plan.schedule.items() if name not in self.schedule)
        return Schedule(*self.schedule.values(), *made)

    @cached_property
    def variants(self) -> Variants:
        """The variants of the code."""
        return Variants(self.graph, self._plan)

    @memoized
    def kernel(self, variant: Variant) -> Executable:
        """The code of a variant, compiled if necessary."""
        backend = backend_of(self.options.target)
        backend.check(self.options.target)
        trace = trace_of(self.options)
        key = trace.run("key", lambda: kernel_key(self.graph, self.schedule, variant, self.options))
        with doing(f"compiling {self.graph.name}"):
            loaded = kernels.kernel(
                key,
                lambda: compile_kernel(self._resolved, self._plan, variant, self.options, trace),
                backend.loaded,
                trace.run,
            )
        self._timings.clear()
        self._timings.update(trace.seconds)
        if os.environ.get(TIMINGS_VARIABLE, "0") != "0":
            print(_table(self.graph.name, trace.seconds), file=sys.stderr)
        for r in sorted(trace.refused):
            if r.stage in self._written and r.stage in self.graph.stage:
                warn_smaller(self.graph.stage[r.stage], self._written[r.stage], r.definition, r.loop, r.verb)
        return loaded

    def predict_cost(self, sizes: Sizes, machine: Cpu) -> Cost:
        """The predicted cost of a call with these sizes."""
        return plan_cost(self._resolved, self._plan, sizes, machine)

    def program(self) -> Program:
        """The loops for large arrays in C order."""
        return to_loops(self._resolved, self._plan, self.variants.usual, self.options, trace_of(self.options))

    def kernels(self, variant: Variant, asked: Collection[str] | None = None) -> Program:
        """The host part and the kernels of a variant or, if `asked` is given, only of these stages at root."""
        return lowered(self._resolved, self._plan, variant, self.options, trace_of(self.options), asked)

    @cached_property
    def kernel_keys(self) -> dict[str, Hashable]:
        """For each stage at root, a key of everything that determines its kernels."""
        return kernel_keys(self._resolved, self._plan)

    def memory_of_blocks(self, scalars: Mapping[str, Number], asked: Collection[str]) -> dict[str, int | UserError]:
        """The bytes of shared memory per block, for the blocks that compute the stages in `asked`, by stage, for inputs
        with these extents. An error says why a block cannot have its memory. Registers of blocks are also checked for
        large inputs, which may need more of them."""
        variant, known = self.variants.in_c_order(scalars), (self._resolved, self._plan)
        kept = {p.compute.stage for p in self._plan.stages.values() if p.compute and p.memory is Memory.REGISTER}
        more = kept.intersection(asked)
        needed = memory_of_blocks(*known, self.variants.usual, self.options, more) if variant.small and more else {}
        needed = {stage: why for stage, why in needed.items() if isinstance(why, UserError)}
        return {**memory_of_blocks(*known, variant, self.options, asked), **needed}


def _table(name: str, seconds: Mapping[str, float]) -> str:
    lines = [f"  {1000 * s:8.2f} ms  {what}" for what, s in seconds.items()]
    return "\n".join([f"compiled {name} in {1000 * sum(seconds.values()):.2f} ms", *lines])
