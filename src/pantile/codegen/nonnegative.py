"""Lower bounds of indices. Divisions of nonnegative indices are unsigned, which takes one LLVM instruction, not six.

before:  for y in -14..64:  (2*y + 1) % 3
after:   for y in -14..64:  (2*y + 28) % 3, unsigned, since 2*y + 1 is at least -27, which is a multiple of 3
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..expr.nodes import Const, Expr, Op, Var
from ..expr.types import INDEX
from ..ir.nodes import For, Launch, Let, Program, Stmt
from ..ir.visit import children

_Lows = dict[str, int]  # lower bounds of scalars; nothing is known about other scalars


def least(e: Expr, lows: Mapping[str, int]) -> int | None:
    """A lower bound of an index, given those of its variables."""
    return _Least(lows).of(e)


class _Least:
    """Computes lower bounds, visiting each node once."""

    def __init__(self, lows: Mapping[str, int]) -> None:
        self._lows = lows
        self._known: dict[int, int | None] = {}

    def of(self, e: Expr) -> int | None:
        if isinstance(e, Const):
            return int(e.value)
        if isinstance(e, Var):
            return self._lows.get(e.name)
        if not isinstance(e, Op) or e.lanes != 1 or e.op not in _BOUNDED:
            return None
        if id(e) not in self._known:
            self._known[id(e)] = _of_operation(e, [self.of(a) for a in e.args])
        return self._known[id(e)]


def _of_operation(e: Op, lows: list[int | None]) -> int | None:
    """A lower bound of an operation, given those of its operands."""
    a, b = lows
    if e.op == "max":
        return max((low for low in lows if low is not None), default=None)
    if e.op == "mod":
        return 0 if b is not None and b >= 0 else None
    if e.op == "sub":
        return a - int(e.args[1].value) if a is not None and isinstance(e.args[1], Const) else None
    return None if a is None or b is None else _OF_BOTH[e.op](e, a, b)


def _product(e: Op, a: int, b: int) -> int | None:
    return a * b if (a >= 0 and b >= 0) or any(isinstance(x, Const) and x.value >= 0 for x in e.args) else None


def _quotient(e: Op, a: int, b: int) -> int | None:
    """A lower bound of a quotient. Division by 0 yields 0."""
    if b < 0:
        return None
    return a // b if isinstance(e.args[1], Const) and b > 0 else min(a, 0)


_OF_BOTH: dict[str, Callable[[Op, int, int], int | None]] = {
    "add": lambda e, a, b: a + b,
    "mul": _product,
    "floordiv": _quotient,
    "min": lambda e, a, b: min(a, b),
}
_BOUNDED = frozenset({"sub", "mod", "max", *_OF_BOTH})


def _inside(lows: _Lows, s: Stmt) -> _Lows:
    """The lower bounds inside a statement, which may bind an index."""
    if isinstance(s, For):
        return _with(lows, s.var, least(s.min, lows))
    if isinstance(s, Let):
        return _with(lows, s.name, least(s.value, lows) if s.value.dtype.kind == INDEX.kind else None)
    return lows


def _with(lows: _Lows, name: str, low: int | None) -> _Lows:
    others = {k: v for k, v in lows.items() if k != name}
    return others if low is None else {**others, name: low}


def least_of_kernels(program: Program) -> dict[str, _Lows]:
    """Lower bounds of each kernel's scalars over all of its launches. Kernels are visited before those that they
    launch."""
    by_kernel: dict[str, _Lows] = {}
    scalars = {k.name: k.scalars for k in program.kernels}
    for body, lows in _bodies(program, by_kernel):
        for launch, here in _launches(body, lows):
            pairs = zip(scalars[launch.kernel], launch.scalars, strict=True)
            given = {v.name: least(e, here) for v, e in pairs if v.dtype is INDEX}
            before = by_kernel.get(launch.kernel)
            by_kernel[launch.kernel] = {
                name: low if before is None else min(low, before[name])
                for name, low in given.items()
                if low is not None and (before is None or name in before)
            }
    return by_kernel


def least_of_arguments(program: Program) -> _Lows:
    """Lower bounds of arguments, since extents are not negative."""
    return {b.extent(axis): 0 for b in program.buffers for axis in range(b.ndim)}


def _bodies(program: Program, by_kernel: Mapping[str, _Lows]) -> Iterator[tuple[Stmt, _Lows]]:
    yield program.body, least_of_arguments(program)
    for kernel in reversed(program.kernels):
        lows = by_kernel.get(kernel.name, {})
        yield kernel.body, _with(lows, kernel.var, least(kernel.min, lows))


def _launches(s: Stmt, lows: _Lows) -> Iterator[tuple[Launch, _Lows]]:
    """All launches, each with the lower bounds known there."""
    pending = [(s, lows)]
    while pending:
        s, lows = pending.pop()
        if isinstance(s, Launch):
            yield s, lows
        pending += [(c, _inside(lows, s)) for c in children(s)]
