"""Affine accesses. Each index of each read is written as scale * dim + an offset within constant bounds, if possible.

    f[2*y + 1, clamp(x - 1, 0, w)]   ->   (2 * y + [1, 1], 1 * x + [-1, -1])
    f[y // 2, r.x]                   ->   (1/2 * y + [-1/2, 0], [0, 4])        for r.x in 0..5

A clamp is treated like the index that it clamps, since clamping can only move a read nearer. An index that depends on
data or on sizes has no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from weakref import WeakKeyDictionary

from ..dataclass import dataclass
from ..expr.nodes import Cast, Const, Expr, Load, Op, Var
from ..expr.visit import children, each_once
from ..graph.nodes import Definition, Stage


@dataclass(frozen=True)
class Index:
    """scale * dim + an offset in [low, high]; dim is None and scale is 0 if the index does not depend on any dim."""

    dim: str | None
    scale: Fraction
    low: Fraction
    high: Fraction

    @property
    def is_plain(self) -> bool:
        """Whether the index is the coordinate itself."""
        return self.dim is not None and self.scale == 1 and self.low == self.high == 0


@dataclass(frozen=True)
class Access:
    """One read of a buffer. An index without affine form is None."""

    buffer: str
    indices: tuple[Index | None, ...]
    load: Load = field(compare=False)


# The accesses of definitions, cached because they are needed for each buffer that a definition reads.
_KNOWN: WeakKeyDictionary[Definition, dict[str, list[Access]]] = WeakKeyDictionary()


def accesses(stage: Stage, definition: Definition) -> list[Access]:
    """Every read of a definition, including reads of its own stage."""
    return [a for reads in _by_buffer(stage, definition).values() for a in reads]


def accesses_by_buffer(stage: Stage) -> list[dict[str, list[Access]]]:
    """Every read of a stage, definition by definition."""
    return [_by_buffer(stage, d) for d in stage.definitions]


def accesses_of(producer: Stage, consumer: Stage) -> list[Access]:
    """Every read of one stage by another."""
    return [a for by_buffer in accesses_by_buffer(consumer) for b in producer.buffers for a in by_buffer.get(b, ())]


def _by_buffer(stage: Stage, definition: Definition) -> dict[str, list[Access]]:
    if definition not in _KNOWN:
        by_buffer: dict[str, list[Access]] = {}
        for a in _accesses(stage, definition):
            by_buffer.setdefault(a.buffer, []).append(a)
        _KNOWN[definition] = by_buffer
    return _KNOWN[definition]


def _accesses(stage: Stage, definition: Definition) -> list[Access]:
    ranges = {d: Index(d, Fraction(1), Fraction(0), Fraction(0)) for d in stage.dims}
    for r in definition.domain:
        low, extent = r.min, r.extent
        if isinstance(low, Const) and isinstance(extent, Const):
            first = int(low.value)
            ranges[r.name] = _constant(first, first + int(extent.value) - 1)
    return [Access(e.buffer, tuple(_index(i, ranges) for i in e.indices), e) for e in definition.loads]


def _constant(low: int | Fraction, high: int | Fraction) -> Index:
    return Index(None, Fraction(0), Fraction(low), Fraction(high))


def _index(e: Expr, ranges: Mapping[str, Index]) -> Index | None:
    """The affine form of an index; None if it has none."""
    forms: dict[int, tuple[Index | None]] = {}

    def visit(node: Expr) -> tuple[Index | None]:
        return (_node(node, ranges, [forms[id(c)][0] for c in _arithmetic(node)]),)

    return each_once(e, forms, visit, _arithmetic)[0]


def _arithmetic(e: Expr) -> tuple[Expr, ...]:
    """The operands that determine the affine form of an index."""
    return children(e) if isinstance(e, (Cast, Op)) else ()


def _node(e: Expr, ranges: Mapping[str, Index], parts: list[Index | None]) -> Index | None:
    if isinstance(e, Const):
        return _constant(int(e.value), int(e.value)) if e.dtype.is_int else None
    if isinstance(e, Var):
        return ranges.get(e.name)
    if isinstance(e, Cast):
        return parts[0] if e.dtype.is_int and e.value.dtype.is_int else None
    if not isinstance(e, Op):
        return None
    if e.op in ("min", "max", "within"):
        return _clamped(parts)
    known = [p for p in parts if p is not None]
    return _RULES[e.op](*known) if e.op in _RULES and len(known) == len(parts) else None


def _clamped(parts: list[Index | None]) -> Index | None:
    """The only operand of a clamp that depends on a coordinate; None if there are several. The limits of the clamp do
    not matter."""
    moving = [p for p in parts if p is not None and p.dim is not None]
    return moving[0] if len(moving) == 1 else None


def _add(a: Index, b: Index) -> Index | None:
    if a.dim is not None and b.dim is not None and a.dim != b.dim:
        return None
    scale = a.scale + b.scale
    return Index((a.dim or b.dim) if scale else None, scale, a.low + b.low, a.high + b.high)


def _neg(a: Index) -> Index | None:
    return Index(a.dim, -a.scale, -a.high, -a.low)


def _sub(a: Index, b: Index) -> Index | None:
    negated = _neg(b)
    return None if negated is None else _add(a, negated)


def _mul(a: Index, b: Index) -> Index | None:
    if a.dim is None and a.low == a.high:
        a, b = b, a
    if b.dim is not None or b.low != b.high:
        return None
    ends = sorted((a.low * b.low, a.high * b.low))
    scale = a.scale * b.low
    return Index(a.dim if scale else None, scale, ends[0], ends[1])


def _floordiv(a: Index, b: Index) -> Index | None:
    """The form of a quotient: for an integer n, floor(n / d) is at most 1 - 1/d less than n / d."""
    if b.dim is not None or b.low != b.high or b.low <= 0:
        return None
    return Index(a.dim, a.scale / b.low, (a.low - b.low + 1) / b.low, a.high / b.low)


def _mod(a: Index, b: Index) -> Index | None:
    return _constant(0, b.low - 1) if b.dim is None and b.low == b.high and b.low > 0 else None


_RULES: dict[str, Callable[..., Index | None]] = {
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _mul,
    "floordiv": _floordiv,
    "mod": _mod,
}
