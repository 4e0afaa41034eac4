"""Narrow indices: vectors of data-dependent indices are computed in 32 bits where they certainly fit.

before:  f[max(min(index(left) + 1, x4(w - 1)), 0)] * float32(ramp(x, 1, 4))
after:   f[index(max(min(left, x4(int32(w - 2))), -1)) + 1] * float32(int32(ramp(x, 1, 4)))

Indices have 64 bits, so a vector holds half as many of them, and few targets have vector minima, maxima and conversions
to floats for 64-bit integers. 32-bit data that is clamped to the range of an array still fits in 32 bits, whatever the
ends of the range are. Extents of arrays fit, and so do most coordinates, which are then converted to floats from 32
bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ..expr.build import broadcast, cast, maximum, minimum
from ..expr.linear import Facts, linear
from ..expr.nodes import Cast, Const, Expr, Op, Ramp, Var, const, op, var
from ..expr.types import INDEX, INT32
from ..expr.visit import Key, key, loaded, names, substitute, transform, walk
from ..ir import visit as ir
from ..ir.nodes import For, Let, Stmt

_FIRST, _LAST = 0, 1
_UNKNOWN = var("?")  # nothing is known about it
_MOST_CONDITIONS = 2


def narrow_indices(body: Stmt, facts: Facts, shapes: Iterable[Expr]) -> Stmt:
    """Compute indices in 32 bits where they fit, as the array extents in `shapes` do."""
    known = {name: (low, INT32.max) for name, (low, _) in facts.bounds.items()}
    for extent in shapes:
        for name in names(extent) & known.keys():
            low, most = known[name]
            known[name] = low, min(most, _most(extent, name))
    return _IndexNarrower(Facts(known)).statement(body)


def _most(extent: Expr, name: str) -> int:
    """The largest extent of an input for which another extent, computed from it, fits in 32 bits."""
    if len(names(extent)) > 1 or not _grows(extent):
        return INT32.max
    low, high = 0, INT32.max + 1  # invariant: `low` fits, `high` does not
    while high - low > 1:
        middle = (low + high) // 2
        value = substitute(extent, {name: const(middle, INDEX)})
        fits = isinstance(value, Const) and value.value <= INT32.max
        low, high = (middle, high) if fits else (low, middle)
    return low


def _grows(e: Expr) -> bool:
    """Whether an expression is monotonically non-decreasing in a name."""
    if not isinstance(e, Op):
        return isinstance(e, (Var, Const))
    if e.op == "add":
        return all(map(_grows, e.args))
    by = e.args[1]
    return e.op in ("mul", "floordiv") and isinstance(by, Const) and int(by.value) > 0 and _grows(e.args[0])


class _IndexNarrower:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts  # facts about the extents of arrays
        self.bound: dict[str, For | Expr] = {}  # name -> the loop or let value that binds it
        self.ends: dict[tuple[Key, int], Expr] = {}  # memo of `end`

    def statement(self, s: Stmt) -> Stmt:
        expressions = ir.expressions(s)
        if any(_is_data(e) or _is_limit(e) for e in walk(*expressions)):
            memo: dict[int, Expr] = {}
            expressions = tuple([transform(e, self.tightened, memo) for e in expressions])
        if isinstance(s, For):
            self.binds(s.var, s)
        elif isinstance(s, Let) and s.value.dtype is INDEX and s.value.lanes == 1:
            self.binds(s.name, s.value)
        return ir.rebuild(s, expressions, tuple([self.statement(c) for c in ir.children(s)]))

    def binds(self, name: str, to: For | Expr) -> None:
        self.ends = {}
        self.bound[name] = to

    def tightened(self, e: Expr) -> Expr | None:
        if isinstance(e, Cast) and _is_data(e) and self.fits(e.value):
            return cast(e.dtype, cast(INT32, e.value))
        return _clamp(e) if isinstance(e, Op) and _is_limit(e) else None

    def fits(self, place: Expr) -> bool:
        """Whether a coordinate certainly fits in 32 bits in every lane."""
        first = last = place
        if isinstance(place, Ramp):
            first, last = place.base, place.base + place.stride * (place.lanes - 1)
        if first.lanes > 1 or loaded(first):
            return False
        lows = [self.facts.lower(e) for e in _cases(self.end(first, _FIRST))]
        highs = [self.facts.upper(e) for e in _cases(self.end(last, _LAST))]
        return all(n is not None and INT32.min <= n <= INT32.max for n in (*lows, *highs))

    def end(self, e: Expr, side: int) -> Expr:
        """A lower or upper bound of an index over all loops around it."""
        if (known := self.ends.get((key(e), side))) is not None:
            return known
        form = linear(e)
        total: Expr = const(form.constant, INDEX)
        for atom, times in form.terms.values():
            total = total + self.end_of(atom, side if times > 0 else _LAST - side) * times
        self.ends[key(e), side] = total
        return total

    def end_of(self, atom: Expr, side: int) -> Expr:
        """A bound of a term. Monotonic operations attain it at bounds of their operands."""
        if isinstance(atom, Var) and atom.name in self.bound:
            return self.end(_last(self.bound[atom.name], side), side)
        if isinstance(atom, Op) and atom.op in ("min", "max"):
            return op(atom.op, *(self.end(a, side) for a in atom.args))
        if isinstance(atom, Op) and atom.op == "select":
            return op("select", atom.args[0], *(self.end(a, side) for a in atom.args[1:]))
        divisor = atom.args[1] if isinstance(atom, Op) and atom.op == "floordiv" else None
        if isinstance(atom, Op) and isinstance(divisor, Const) and int(divisor.value) > 0:
            return op("floordiv", self.end(atom.args[0], side), divisor)
        return atom if self.bound.keys().isdisjoint(names(atom)) else _UNKNOWN


def _last(to: For | Expr, side: int) -> Expr:
    """The first or the last value of a name, given the loop or the value that it is bound to."""
    if isinstance(to, Expr):
        return to
    return to.min if side == _FIRST else to.min + to.extent - 1


def _is_data(e: Expr) -> bool:
    """Whether a coordinate is converted to a float."""
    return isinstance(e, Cast) and e.dtype.is_float and e.value.dtype is INDEX


def _is_limit(e: Expr) -> bool:
    """Whether the expression clamps a vector of indices from below."""
    return isinstance(e, Op) and e.op == "max" and e.lanes > 1 and e.dtype is INDEX


def _cases(e: Expr) -> list[Expr]:
    """The values for both outcomes of each condition in the expression: the last block of a loop begins elsewhere."""
    cases = [e]
    for _ in range(_MOST_CONDITIONS):
        condition = next((c.args[0] for e in cases for c in walk(e) if isinstance(c, Op) and c.op == "select"), None)
        if condition is None:
            break
        cases = [transform(e, partial(_branch, key(condition), side)) for e in cases for side in (1, 2)]
    return cases


def _branch(condition: Key, side: int, e: Expr) -> Expr | None:
    return e.args[side] if isinstance(e, Op) and e.op == "select" and key(e.args[0]) == condition else None


def _clamp(e: Op) -> Expr | None:
    """Rewrite max(min(index(data) + k, high), low) as index(max(min(data, high - k), low - k)) + k."""
    inner, low = e.args
    if not (isinstance(inner, Op) and inner.op == "min" and isinstance(low, Const)):
        return None
    for place, high in (inner.args, inner.args[::-1]):
        end = getattr(high, "value", None) if high.lanes > 1 else None
        shifted = _shifted_data(place)
        if shifted is None or end is None:
            continue
        data, shift = shifted
        least = int(low.value) - shift
        if not INT32.min <= least <= INT32.max:
            continue
        scalar = end if isinstance(end, Expr) else const(end, INDEX)
        held = maximum(minimum(scalar - shift, const(INT32.max, INDEX)), const(INT32.min, INDEX))
        most = broadcast(cast(INT32, held), e.lanes)
        narrow = maximum(minimum(data, most), const(least, INT32, e.lanes))
        return cast(INDEX, narrow) + const(shift, INDEX, e.lanes) if shift else cast(INDEX, narrow)
    return None


def _shifted_data(place: Expr) -> tuple[Expr, int] | None:
    """int32 data in a vector of indices, and the constant added to it."""
    form = linear(place)
    if len(form.terms) != 1:
        return None
    ((atom, times),) = form.terms.values()
    if times != 1 or not isinstance(atom, Cast) or atom.value.dtype is not INT32:
        return None
    return atom.value, form.constant
