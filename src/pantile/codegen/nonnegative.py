"""Lower bounds of indices: divisions of nonnegative indices are unsigned, which is one instruction for LLVM in place of
six.

    for y in -14..64:   (2*y + 1) % 3    ->    2*y + 1 is at least -27; so many rows on, the remainder is the same
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..expr.nodes import Const, Expr, Op, Var
from ..expr.types import INDEX
from ..ir.nodes import For, Launch, Let, Program, Stmt
from ..ir.visit import children

_Lows = dict[str, int]  # lower bounds of scalars; nothing is known of others


def least(e: Expr, lows: Mapping[str, int]) -> int | None:
    """A lower bound of an index, given those of its variables."""
    return _Least(lows).of(e)


class _Least:
    """Computes lower bounds, visiting each node once."""

    def __init__(self, lows: Mapping[str, int]) -> None:
        self._lows = lows
        self._found: dict[int, int | None] = {}

    def of(self, e: Expr) -> int | None:
        if isinstance(e, Const):
            return int(e.value)
        if isinstance(e, Var):
            return self._lows.get(e.name)
        if not isinstance(e, Op) or e.lanes != 1 or e.op not in _RULES:
            return None
        if id(e) not in self._found:
            self._found[id(e)] = _RULES[e.op](e, [self.of(a) for a in e.args])
        return self._found[id(e)]


def _sum(e: Op, lows: list[int | None]) -> int | None:
    a, b = lows
    return None if a is None or b is None else a + b


def _difference(e: Op, lows: list[int | None]) -> int | None:
    return lows[0] - int(e.args[1].value) if lows[0] is not None and isinstance(e.args[1], Const) else None


def _product(e: Op, lows: list[int | None]) -> int | None:
    a, b = lows
    if a is None or b is None:
        return None
    return a * b if (a >= 0 and b >= 0) or any(isinstance(x, Const) and x.value >= 0 for x in e.args) else None


def _quotient(e: Op, lows: list[int | None]) -> int | None:
    """A lower bound of a quotient; a division by 0 gives 0."""
    a, b = lows
    if a is None or b is None or b < 0:
        return None
    return a // b if isinstance(e.args[1], Const) and b > 0 else min(a, 0)


def _rest(e: Op, lows: list[int | None]) -> int | None:
    return 0 if lows[1] is not None and lows[1] >= 0 else None


def _smaller(e: Op, lows: list[int | None]) -> int | None:
    a, b = lows
    return None if a is None or b is None else min(a, b)


def _larger(e: Op, lows: list[int | None]) -> int | None:
    return max((low for low in lows if low is not None), default=None)


_RULES: dict[str, Callable[[Op, list[int | None]], int | None]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "floordiv": _quotient,
    "mod": _rest,
    "min": _smaller,
    "max": _larger,
}


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
    """Lower bounds of the scalars of kernels over all their launches; kernels that launch others come first."""
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
    """Lower bounds of arguments: extents are not negative."""
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
