"""Time-iterated definitions: the same step applied again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import UserError
from .names import suffixed

State = TypeVar("State")


def iterate(state: State, step: Callable[[State], State], times: int) -> State:
    """`step(step(...step(state)))`, `times` of them: a chain of stages, such as the sweeps of a smoother.

    A state is a Func (or a tuple of Funcs). Names of Funcs made in the k-th step end in `_k`:

        def sweep(u):
            v = pt.Func("v")
            v[y, x] = (u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1]) / 4
            return v

        result = pt.iterate(start, sweep, times=10)      # v_1, v_2, ..., v_10
    """
    if isinstance(times, bool) or not isinstance(times, int) or times < 0:
        raise UserError(f"pt.iterate applies a step {times!r} times; write how often, as a number that is not negative")
    for k in range(1, times + 1):
        with suffixed(f"_{k}"):
            state = step(state)
        if state is None:
            raise UserError(f"step {k} of pt.iterate returned nothing; end it with 'return' and the new Func")
    return state
