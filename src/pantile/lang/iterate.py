"""Time-iterated definitions: the same step applied again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from ..errors import UserError, UserTypeError, here, shown
from .func import Func, Values
from .inputs import Input
from .math import cast as to_type
from .variables import Param, Var, suffixed

State = TypeVar("State")


def iterate(state: State, step: Callable[[State], State], times: int | Param) -> State:
    """`step(step(...step(state)))`, `times` of them: a chain of stages, such as the sweeps of a smoother.

    A state is a Func (or a tuple of Funcs). Names of Funcs made in the k-th step end in `_k`:

        def sweep(u):
            v = pt.Func("v")
            v[y, x] = (u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1]) / 4
            return v

        result = pt.iterate(start, sweep, times=10)      # v_1, v_2, ..., v_10

    A Param says at the call how many there are. The pipeline is then made for each number that it is called with, once,
    as if that were written here, so there should not be many.
    """
    if isinstance(times, Param):
        return cast(State, _repeated(_Steps(state, step), times))
    if isinstance(times, bool) or not isinstance(times, int) or times < 0:
        raise UserError(
            f"pt.iterate cannot apply a step {times!r} times; write a number that is not negative, or a Param"
        )
    return cast(State, _Steps(state, step).after(times))


class _Steps:
    """The states before and after each step, computed on demand."""

    def __init__(self, state: Any, step: Callable[[Any], Any]) -> None:
        self._step = step
        self._states = [state]

    def after(self, times: int) -> Any:
        while len(self._states) <= times:
            k = len(self._states)
            with suffixed(f"_{k}"):
                state = self._step(self._states[-1])
            if state is None:
                raise UserError(f"step {k} of pt.iterate returned nothing; end it with 'return' and the new Func")
            self._states.append(state)
        return self._states[times]


class IteratedFunc(Func):
    """A Func of the state after as many steps as a Param says; until a pipeline is built, the state after one step."""

    def __init__(self, steps: _Steps, times: Param, which: int | None) -> None:
        self.steps, self.times, self.which = steps, times, which
        first = self._state(1)
        Func.__init__(self, first.name.removesuffix("_1") + "_iterated")
        self.named, self.helper = False, True
        self.domain = first.domain
        self.channels = first.channels
        self._dims = tuple(Var(d) for d in first.dims)
        self._types = first.dtypes
        self._made_at = here()
        self.apply(1)

    def apply(self, times: int) -> None:
        """Become the state after `times` steps."""
        state = self._state(times)
        read = state[self._dims] if state.ndim == len(self._dims) else None
        values = tuple(read) if isinstance(read, Values) else (read,)
        types = tuple(v.dtype for v in values if v is not None)
        if len(types) != len(self._types) or (times and types != self._types):
            raise UserError(
                f"a step of pt.iterate changes the kind of its state: {state} does not have the dimensions and types "
                "of the state after one step; every step must return a state like its argument",
                self._made_at,
            )
        self.equations, reader, self.used_by = [], self.used_by, None
        self[self._dims] = tuple(to_type(t, v) for t, v in zip(self._types, values, strict=True))
        self.equations = [replace(self.equations[0], where=self._made_at)]
        self.used_by, self.where = reader, self._made_at

    def _state(self, times: int) -> Any:
        state = self.steps.after(times)
        state = state if self.which is None else state[self.which]
        if not isinstance(state, (Func, Input)) or (times and not isinstance(state, Func)):
            raise UserTypeError(
                f"the state of pt.iterate is {shown(state)}; with times=Param it is a Func, or a tuple of Funcs"
            )
        return state


def _repeated(steps: _Steps, times: Param) -> Any:
    if not times.dtype.is_int:
        raise UserTypeError(
            f"the number of steps of pt.iterate is Param {times.name!r}, of type {times.dtype}; make it int32"
        )
    first = steps.after(1)
    if not isinstance(first, (tuple, list)):
        return IteratedFunc(steps, times, None)
    return tuple(IteratedFunc(steps, times, k) for k in range(len(first)))


def apply_steps(funcs: Callable[[], list[Func]], counts: Mapping[str, int]) -> list[Func]:
    """All Funcs that are needed, after the steps of each `IteratedFunc` were applied as often as its Param says. What a
    chain of steps needs, such as another chain, is known only after it was applied."""
    applied: set[int] = set()
    while True:
        order = funcs()
        pending = [f for f in order if isinstance(f, IteratedFunc) and id(f) not in applied]
        if not pending:
            return order
        for func in pending:
            func.apply(counts[func.times.name])
            applied.add(id(func))
