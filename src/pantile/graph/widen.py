"""Types say what wraps: coordinates become 64-bit indices in index arithmetic, and int32 where a pixel uses them.

    out[y, x] = lut[b[x] + x] + x          out[y, x] = lut[index(b[x]) + x] + int32(x)

In the user's expressions, coordinates, extents and int32 data have the same type. Here, once and for all, each
operation gets its type: `index`, 64 bits that never overflow, or a type of data, which wraps. All later passes rely on
types alone. These are the rules of the language:

- Inside an index, arithmetic of type int32 in which a coordinate, an extent or a Param takes part has 64 bits.
  Arithmetic on data alone keeps its type.
- The operands of a comparison have 64 bits, too, if a coordinate or an extent and no data takes part in them.
- Arithmetic that may overflow 64 bits wraps, as data does; except on coordinates without data: that is an index all the
  same, and a call in which it would overflow is refused (`Graph.unproved`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..expr.build import cast, maximum, minimum
from ..expr.magnitude import MAY_OVERFLOW, Magnitudes
from ..expr.nodes import COMPARISON, FIXED_POINT, Bits, Cast, Const, Expr, Load, Op, Var, const, coordinate, op
from ..expr.types import INDEX, INT32, INT64, UINT64
from ..expr.visit import children, loaded, names, rebuild, rebuild_op
from .nodes import Definition, ReductionDim, Stage

_WIDE = (INT32, INT64)
# Operations of index arithmetic; all others are operations on data.
_INDEX = frozenset({"min", "max", "mod", "select", "within"}) | MAY_OVERFLOW
_FAR = 1 << 48  # larger than products of coordinates with small numbers
_Part = tuple[Expr, bool]  # an expression, and whether it is part of an index


class IndexWidener:
    """Rewrites expressions whose coordinates and extents are int32 variables. `params` are the other variables."""

    def __init__(self, params: Collection[str]) -> None:
        self._params = params
        self._magnitudes = Magnitudes()
        self._rewritten: dict[tuple[int, bool], Expr] = {}
        self._outside: dict[int, frozenset[str]] = {}
        self._keep: list[Expr] = []

    def stage(self, s: Stage) -> Stage:
        """The stage with all its expressions rewritten."""
        domain = None if s.domain is None else tuple((self.index(a), self.index(b)) for a, b in s.domain)
        updates = tuple(self._definition(d) for d in s.updates)
        return replace(s, pure=self._definition(s.pure), updates=updates, domain=domain)

    def _definition(self, d: Definition) -> Definition:
        domain = tuple(ReductionDim(r.name, self.index(r.min), self.index(r.extent)) for r in d.domain)
        indices, values = tuple(map(self.index, d.indices)), tuple(map(self.value, d.values))
        return Definition(indices, values, domain, None if d.condition is None else self.value(d.condition), d.where)

    def value(self, e: Expr) -> Expr:
        """Rewrite an expression whose result is a pixel value or a condition; its type stays."""
        return self._visit(e, False)

    def index(self, e: Expr) -> Expr:
        """Rewrite an expression whose result is an index."""
        return cast(INDEX, self._visit(e, True))

    def _visit(self, root: Expr, wide: bool) -> Expr:
        pending: list[_Part] = [(root, wide)]
        while pending:
            e, in_index = pending[-1]
            missing = (
                []
                if (id(e), in_index) in self._rewritten
                else [(c, w) for c, w in self._parts(e, in_index) if (id(c), w) not in self._rewritten]
            )
            if missing:
                pending += missing
                continue
            pending.pop()
            if (id(e), in_index) not in self._rewritten:
                self._rewritten[id(e), in_index] = self._new(e, in_index)
                self._keep.append(e)
        return self._rewritten[id(root), wide]

    def _parts(self, e: Expr, wide: bool) -> list[_Part]:
        """The operands of a node, and whether each is part of an index."""
        if isinstance(e, Load):
            return [(i, True) for i in e.indices]
        if wide:
            return [(e, False)] if self._is_narrow(e) else [(c, True) for c in children(e)]
        if isinstance(e, Op) and self._compares_indices(e):
            return [(a, self._is_place(a)) for a in e.args]
        return [(c, False) for c in children(e)]

    def _new(self, e: Expr, wide: bool) -> Expr:
        if isinstance(e, Load):
            load = Load(e.dtype, 1, e.buffer, tuple(cast(INDEX, self._rewritten[id(i), True]) for i in e.indices))
            return _wide(load) if wide else load
        if isinstance(e, Var):
            return self._variable(e, wide)
        if isinstance(e, Const):
            return const(e.value, INDEX) if wide and e.dtype in _WIDE else e
        parts = tuple(self._rewritten[id(c), w] for c, w in self._parts(e, wide))
        if wide:
            return _wide(parts[0]) if self._is_narrow(e) else self._new_index(e, parts)
        if isinstance(e, Op) and self._compares_indices(e):
            parts = self._limited(e, tuple(cast(INDEX, p) for p in parts))
        return rebuild(e, parts)

    def _limited(self, e: Op, sides: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The sides of a comparison, limited so that their difference, from which bounds of loops and boxes are
        derived, fits 64 bits. A side that is compared with a coordinate is clamped to numbers larger than any
        coordinate."""
        near = [self._magnitudes.of(side) < _FAR for side in sides]
        if all(near):
            return sides
        if not any(map(self._is_place, e.args)):
            return tuple(cast(INT64, side) for side in sides)
        if not any(near):
            return sides
        return tuple(side if is_near else _clamped(side) for side, is_near in zip(sides, near, strict=True))

    def _variable(self, e: Var, wide: bool) -> Expr:
        if e.name not in self._params:
            return coordinate(e.name) if wide else cast(e.dtype, coordinate(e.name))
        return _wide(Var(e.dtype, 1, e.name)) if wide else Var(e.dtype, 1, e.name)

    def _new_index(self, e: Expr, parts: tuple[Expr, ...]) -> Expr:
        """A node that is part of an index, of type index if the user's type is int32 or int64."""
        if isinstance(e, Cast):
            return self._cast(e, parts[0])
        if not isinstance(e, Op) or e.dtype not in _WIDE:
            return rebuild(e, parts)
        name, parts = _plainer(e.op, parts)
        if name in _INDEX:
            result = op(name, *parts) if name == "within" else rebuild_op(name, parts)
            if name not in MAY_OVERFLOW or self._is_place(e) or self._magnitudes.fits(result):
                return result
        return cast(INDEX, rebuild_op(name, tuple(cast(INT64, p) for p in parts)))

    def _cast(self, e: Cast, value: Expr) -> Expr:
        if e.dtype is INT32 and value.dtype is INDEX and self._magnitudes.of(value) <= INT32.max:
            return value
        return _wide(cast(e.dtype, value))

    # ---- what takes part in an expression

    def _is_narrow(self, e: Expr) -> bool:
        """Whether a part of an index is arithmetic on data alone, which keeps its type."""
        if isinstance(e, (Const, Var)):
            return False
        if isinstance(e, Bits) or isinstance(e, Op) and e.op in FIXED_POINT:
            return True
        return e.dtype is not INT64 and not self._names(e)

    def _is_place(self, e: Expr) -> bool:
        """Whether a coordinate or an extent takes part in an expression, and no data does."""
        return not loaded(e) and any(n not in self._params for n in self._names(e))

    def _compares_indices(self, e: Op) -> bool:
        """Whether a condition compares operands without data, or data with a coordinate."""
        if e.op not in COMPARISON or not e.args[0].dtype.is_int or e.args[0].dtype is UINT64:
            return False
        if all(not loaded(a) for a in e.args):
            return any(self._names(a) for a in e.args)
        return e.args[0].dtype in _WIDE and any(map(self._is_place, e.args))

    def _names(self, e: Expr) -> frozenset[str]:
        """The variables of an expression that are not inside of loads."""
        if not loaded(e):
            return names(e)
        pending = [e]
        while pending:
            node = pending[-1]
            parts = () if isinstance(node, Load) else children(node)
            missing = [] if id(node) in self._outside else [c for c in parts if id(c) not in self._outside]
            if missing:
                pending += missing
                continue
            pending.pop()
            own = (node.name,) if isinstance(node, Var) else ()
            self._outside[id(node)] = frozenset(own).union(*(self._outside[id(c)] for c in parts))
        return self._outside[id(e)]


def _wide(e: Expr) -> Expr:
    """Data as part of an index: of type index if its own is int32 or int64."""
    return cast(INDEX, e) if e.dtype in _WIDE else e


def _clamped(side: Expr) -> Expr:
    return maximum(minimum(side, const(_FAR, INDEX)), const(-_FAR, INDEX))


def _plainer(name: str, parts: tuple[Expr, ...]) -> tuple[str, tuple[Expr, ...]]:
    """Write shifts by constants and masks as multiplication, division and remainder."""
    by = parts[-1]
    if isinstance(by, Const) and by.dtype is INDEX:
        value = int(by.value)
        if name in ("shl", "shr") and 0 <= value < 63:
            return "mul" if name == "shl" else "floordiv", (parts[0], const(1 << value, INDEX))
        if name == "and" and 0 <= value < INT64.max and value & (value + 1) == 0:
            return "mod", (parts[0], const(value + 1, INDEX))
    return name, parts
