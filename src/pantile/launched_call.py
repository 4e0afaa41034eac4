"""A call on a GPU: its launches and their predicted times, without running them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from . import backends
from . import machine as machines
from .backends.backend import Values
from .dataclass import dataclass
from .runtime.arguments import AnyArray, element_strides
from .runtime.launches import LaunchPlan, WideIndicesNeeded, check_near, launches, resident_blocks, scalars_of
from .scheduled_pipeline import ScheduledPipeline
from .variant import Variant


@dataclass(frozen=True)
class LaunchedCall:
    """A call whose arguments have been checked. `variant` returns the variant of the code for its arrays, given whether
    memory between stages needs indices wider than 32 bits."""

    name: str
    scheduled: ScheduledPipeline
    arrays: Mapping[str, AnyArray]  # inputs and outputs, as the code sees them
    numbers: Values
    variant: Callable[[bool], Variant]
    is_empty: bool  # whether no output has an element

    def report(self, gpu: machines.Gpu, asked: Collection[str] | None = None) -> backends.LaunchReport:
        """The report on the launches or, if `asked` is given, only on those of these stages at root."""
        plan = LaunchPlan((), ())
        if not self.is_empty:
            try:
                plan = self._plan(asked, far=False)
            except WideIndicesNeeded:
                plan = self._plan(asked, far=True)
        sizes = {name: a.size * a.dtype.itemsize for name, a in self.arrays.items()}
        return backends.launched(self.name, self.scheduled.options.target, gpu, plan, sizes)

    def _plan(self, asked: Collection[str] | None, far: bool) -> LaunchPlan:
        variant = self.variant(far)
        program, arrays = self.scheduled.kernels(variant, asked), self.arrays.values()
        strides = [element_strides(a) for a in arrays]
        scalars = scalars_of(program, [a.shape for a in arrays], strides, self.numbers)
        plan = launches(program, scalars, partial(resident_blocks, machines.of_target(self.scheduled.options.target)))
        if not variant.far:
            check_near(plan)
        return plan
