"""Vectorize: a vector loop becomes straight-line code on vectors.

before:  vector for x in b..b + 8: out[y, x] = f[y, x + 1] * 2
after:   out[y, ramp(b, 1, 8)] = f[y, ramp(b + 1, 1, 8)] * x8(2)

x // 2 and x % 2 of a ramp whose start is known modulo 2 become shuffles of short ramps, so that an upsampling read
becomes one short load and a shuffle. Values that read memory and depend on x only through x // 2 and x % 2 are computed
separately for even and for odd lanes, each with dense loads, and interleaved. This works wherever the ramp starts: (x +
2*i) // 2 is x // 2 + i. A loop with a branch or an inner loop that differs between lanes runs serially instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType

from ..dataclass import cached_property
from ..errors import InternalError
from ..expr.build import binary, broadcast, cast, ramp
from ..expr.congruence import Class, congruence, known_remainder
from ..expr.nodes import Broadcast, Cast, Const, Expr, Load, Op, Ramp, Shuffle, Var, const, var
from ..expr.types import INDEX
from ..expr.visit import children, depends, each_once, loaded, names, once_per_node, transform
from ..ir import visit as ir
from ..ir.nodes import For, If, Let, Realize, Stmt, Store
from ..target.kinds import Kind
from .conditions import promised
from .lanes import split_select

Classes = Mapping[str, Class]  # congruence classes of the names around

_WIDEST = 4  # a load may read up to this many times the elements that it needs


def vectorize(body: Stmt) -> Stmt:
    """Replace every vector loop. Promises are dropped: bounds have been derived from them, and they would hide
    ramps."""
    memo: dict[int, Expr] = {}
    return _visit(ir.map_exprs(body, lambda e: transform(e, promised, memo, _has_promises)), {})


_noted_promises = attrgetter("_has_promises")


@once_per_node("_has_promises")
def _has_promises(e: Expr) -> bool:
    """Whether the expression contains a `within` promise."""
    return isinstance(e, Op) and e.op == "within" or any(map(_noted_promises, e.operands))


def _visit(s: Stmt, lets: Classes) -> Stmt:
    """Visit a statement. `lets` has the index lets around it, which tell how ramps are aligned."""
    if isinstance(s, Let) and s.value.dtype == INDEX and s.value.lanes == 1:
        return Let(s.name, s.value, _visit(s.body, {**lets, s.name: congruence(s.value, lets)}))
    inside = tuple([_visit(c, lets) for c in ir.children(s)])
    s = ir.rebuild(s, ir.expressions(s), inside)
    return _vector_loop(s, lets) if isinstance(s, For) and s.kind is Kind.VECTOR else s


def _vector_loop(s: For, lets: Classes) -> Stmt:
    if not isinstance(s.extent, Const):
        raise InternalError(f"vector loop {s.var} of extent {s.extent}")
    if int(s.extent.value) == 1:
        return Let(s.var, s.min, s.body)
    if _lanes_diverge(s.body, {s.var}):
        return For(s.var, s.min, s.extent, Kind.SERIAL, s.body)
    return _Vectorizer(s.var, ramp(s.min, 1, int(s.extent.value)), lets).statement(s.body)


def _lanes_diverge(s: Stmt, varying: set[str]) -> bool:
    """Whether a branch, the bounds of a loop or the box of a buffer depend on the lane."""
    if isinstance(s, (If, For, Realize)) and any(depends(e, varying) for e in ir.expressions(s)):
        return True
    if isinstance(s, Let) and depends(s.value, varying):
        varying = varying | {s.name}
    return any(_lanes_diverge(c, varying) for c in ir.children(s))


class _Vectorizer:
    """Rewrites the body of one vector loop."""

    def __init__(self, name: str, lanes: Expr, lets: Classes) -> None:
        self.values: dict[str, Expr] = {name: lanes}
        self.lets = lets
        self.width = lanes.lanes
        self.memo: dict[int, Expr] = {}
        self.halved: dict[int, bool] = {}
        self.keep: list[Expr] = []
        self.name = name

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Let):
            return self.let(s)
        if isinstance(s, Store):
            return self.store(s)
        new = tuple(self.expression(e) for e in ir.expressions(s))
        return ir.rebuild(s, new, tuple([self.statement(c) for c in ir.children(s)]))

    def let(self, s: Let) -> Stmt:
        value = self.expression(s.value)
        if value.lanes == 1:
            return Let(s.name, value, self.statement(s.body))
        if isinstance(value, (Ramp, Shuffle)):  # an index is substituted, since its uses need its structure
            self.values[s.name] = value
            return self.statement(s.body)
        self.values[s.name] = var(s.name, value.dtype, value.lanes)
        return Let(s.name, value, self.statement(s.body))

    def store(self, s: Store) -> Stmt:
        indices = tuple(self.expression(i) for i in s.indices)
        lanes = max((i.lanes for i in indices), default=1)
        value = self.expression(s.value)
        if lanes == 1 and value.lanes > 1:
            raise InternalError(f"all lanes store to {s.buffer} at the same place")
        mask = None if s.mask is None else broadcast(self.expression(s.mask), lanes)
        return Store(s.buffer, indices, broadcast(value, lanes), mask, s.manner)

    def expression(self, e: Expr) -> Expr:
        self.keep.append(e)
        if self.halves is not None:
            for part in self.halved_parts(e):
                self.memo[id(part)] = self.interleaved(part, *self.halves)
        return transform(e, self.node, self.memo)

    @cached_property
    def halves(self) -> tuple[_Vectorizer, _Vectorizer] | None:
        """Vectorizers of the even and of the odd lanes.

        Their strides are constant even if it is not known which coordinates are even: (x + 2*i) // 2 is x // 2 + i.
        """
        lanes = self.values[self.name]
        if not (isinstance(lanes, Ramp) and isinstance(lanes.stride, Const) and lanes.stride.value == 1):
            return None
        if self.width < 4 or self.width % 2:
            return None
        even, odd = (ramp(lanes.base + k, 2, self.width // 2) for k in (0, 1))
        return _Vectorizer(self.name, even, self.lets), _Vectorizer(self.name, odd, self.lets)

    def halved_parts(self, e: Expr) -> Iterator[Expr]:
        """The largest parts of a value that read memory and use the coordinate only as x // 2 and x % 2."""
        others = self.values.keys() - {self.name}
        seen: set[int] = set()
        stack = [e]
        while stack:
            part = stack.pop()
            if id(part) in seen or id(part) in self.memo or self.name not in names(part):
                continue
            seen.add(id(part))
            if not depends(part, others) and each_once(part, self.halved, self.node_is_halved, self.deciding):
                if loaded(part):
                    yield part
            elif not isinstance(part, Load):
                stack += reversed(children(part))

    def deciding(self, e: Expr) -> tuple[Expr, ...]:
        """The operands that decide whether a node is halved; none if the node is halved in any case."""
        return () if self.name not in names(e) or _is_half(e) else children(e)

    @cached_property
    def chooses_halves(self) -> bool:
        """Whether it is known which lanes are even.

        Otherwise both branches of a select on x % 2 would be computed for each half (measured on a Neoverse N1: 2 %
        slower).
        """
        lanes = self.values[self.name]
        return isinstance(lanes, Ramp) and known_remainder(lanes.base, 2, self.lets) is not None

    def node_is_halved(self, e: Expr) -> bool:
        if isinstance(e, Var):
            return e.name != self.name
        if isinstance(e, Op) and e.op == "select" and self.name in names(e.args[0]) and not self.chooses_halves:
            return False
        return all(self.halved[id(c)] for c in self.deciding(e))

    def interleaved(self, e: Expr, even: _Vectorizer, odd: _Vectorizer) -> Expr:
        """Compute even and odd lanes separately and interleave them, so that no lane computes another's value."""
        half = self.width // 2
        parts = tuple(broadcast(v.expression(e), half) for v in (even, odd))
        return Shuffle(e.dtype, self.width, parts, tuple(i // 2 + half * (i % 2) for i in range(self.width)))

    def node(self, e: Expr) -> Expr | None:
        if isinstance(e, Var):
            return self.values.get(e.name)
        if e.lanes == 1:
            return None
        if isinstance(e, Op):
            return split_select(e) if e.op == "select" else fold_ramp(e, self.lets)
        if isinstance(e, Cast) and isinstance(e.value, (Ramp, Shuffle)):
            return _cast_pattern(e)
        if isinstance(e, Load):
            return _shuffled_load(e)
        return None


def _is_half(e: Expr) -> bool:
    """Whether this is // 2 or % 2 of an index that consists of coordinates and not of loaded values."""
    if not (isinstance(e, Op) and e.op in ("floordiv", "mod") and isinstance(e.args[1], Const)):
        return False
    return e.args[1].value == 2 and not loaded(e)


def combined(op: str, a: Expr, b: Expr) -> Expr:
    """Return the result of arithmetic on indices, some of which may be ramps."""
    result = binary(op, a, b)
    folded = fold_ramp(result) if isinstance(result, Op) and result.lanes > 1 else None
    return result if folded is None else folded


def fold_ramp(e: Op, lets: Classes = MappingProxyType({})) -> Expr | None:
    """Return arithmetic on ramps as a ramp or as a shuffle of one, or None. `lets` has the known facts about names."""
    if e.dtype != INDEX or e.op not in ("add", "sub", "mul", "neg", "floordiv", "mod"):
        return None
    a, b = e.args[0], e.args[-1]
    if e.op == "neg":
        return ramp(0 - a.base, 0 - a.stride, e.lanes) if isinstance(a, Ramp) else None
    one, uniform = _uniform(a), _uniform(b)
    if one is not None and uniform is not None and e.op in ("add", "sub", "mul"):
        return broadcast(binary(e.op, one, uniform), e.lanes)
    if e.op in ("add", "sub"):
        return _fold_sum(e.op, a, b)
    if uniform is None:
        return fold_ramp(Op(e.dtype, e.lanes, "mul", (b, a))) if e.op == "mul" and one is not None else None
    if e.op == "mul":
        return _on_ramp(a, lambda r: ramp(r.base * uniform, r.stride * uniform, r.lanes))
    if isinstance(a, Ramp) and isinstance(uniform, Const) and int(uniform.value) > 0:
        return _fold_division(e.op, a, int(uniform.value), lets)
    return None


def _uniform(e: Expr) -> Expr | None:
    """The scalar that every lane holds, if the vector is uniform."""
    if isinstance(e, Broadcast):
        return e.value
    return Const(e.dtype, 1, e.value) if isinstance(e, Const) else None


def _fold_sum(name: str, a: Expr, b: Expr) -> Expr | None:
    def combine(x: Expr, y: Expr) -> Expr:
        return x + y if name == "add" else x - y

    if isinstance(a, Ramp) and isinstance(b, Ramp):
        return ramp(combine(a.base, b.base), combine(a.stride, b.stride), a.lanes)
    ua, ub = _uniform(a), _uniform(b)
    if ub is not None:
        return _on_ramp(a, lambda r: ramp(combine(r.base, ub), r.stride, r.lanes))
    if ua is not None:
        return _on_ramp(b, lambda r: ramp(combine(ua, r.base), combine(const(0, INDEX), r.stride), r.lanes))
    steps_a, steps_b = _steps(a), _steps(b)
    if steps_a is None or steps_b is None:
        return None
    sign = 1 if name == "add" else -1
    steps = [i + sign * j for i, j in zip(steps_a[1], steps_b[1], strict=True)]
    return _stepped(combine(steps_a[0], steps_b[0]), steps)


def _on_ramp(e: Expr, change: Callable[[Ramp], Expr]) -> Expr | None:
    """Apply a function to every lane of a ramp or of a shuffled ramp."""
    if isinstance(e, Ramp):
        return change(e)
    if isinstance(e, Shuffle) and len(e.vectors) == 1 and isinstance(e.vectors[0], Ramp):
        return Shuffle(e.dtype, e.lanes, (change(e.vectors[0]),), e.order)
    return None


def _steps(e: Expr) -> tuple[Expr, list[int]] | None:
    """A ramp or a shuffled ramp, as a scalar and the offset of each lane."""
    source = e.vectors[0] if isinstance(e, Shuffle) and len(e.vectors) == 1 else e
    if not (isinstance(source, Ramp) and isinstance(source.stride, Const)):
        return None
    stride = int(source.stride.value)
    order = e.order if isinstance(e, Shuffle) else range(e.lanes)
    return source.base, [stride * i for i in order]


def _stepped(base: Expr, steps: list[int]) -> Expr:
    """base + steps[i] in lane i: a ramp if the steps are even, otherwise a shuffle of one."""
    apart = steps[1] - steps[0]
    if all(step == steps[0] + i * apart for i, step in enumerate(steps)):
        return ramp(base + steps[0], apart, len(steps)) if apart else broadcast(base + steps[0], len(steps))
    least = min(steps)
    source = ramp(base + least, 1, max(steps) - least + 1)
    return Shuffle(INDEX, len(steps), (source,), tuple(step - least for step in steps))


def _fold_division(name: str, a: Ramp, d: int, lets: Classes) -> Expr | None:
    """(base + i*stride) // d or % d, if base is known modulo d or steps are multiples of d; otherwise None."""
    if not isinstance(a.stride, Const):
        return None
    stride = int(a.stride.value)
    phase = known_remainder(a.base, d, lets)
    if phase is None:
        if stride % d:
            return None
        return ramp(a.base // d, stride // d, a.lanes) if name == "floordiv" else broadcast(a.base % d, a.lanes)
    if name == "floordiv":
        base = (a.base - phase) // d if phase else a.base // d
        if stride % d == 0:
            return ramp(base, stride // d, a.lanes)
        order = [(phase + i * stride) // d for i in range(a.lanes)]
    else:
        base = const(0, INDEX)
        order = [(phase + i * stride) % d for i in range(a.lanes)]
    return _stepped(base, order)


def _cast_pattern(e: Cast) -> Expr | None:
    """Push integer casts into ramps and shuffles, so that patterns stay visible."""
    if not e.dtype.is_int:
        return None
    if isinstance(e.value, Shuffle):
        return Shuffle(e.dtype, e.lanes, tuple(cast(e.dtype, v) for v in e.value.vectors), e.value.order)
    return None


def _shuffled_load(e: Load) -> Expr | None:
    """A load at shuffled indices as a shuffle of one load, if only one index varies; otherwise None."""
    varying = [k for k, i in enumerate(e.indices) if i.lanes > 1 and _uniform(i) is None]
    if len(varying) != 1 or e.mask is not None:
        return None
    index = e.indices[varying[0]]
    if not (isinstance(index, Shuffle) and len(index.vectors) == 1 and isinstance(index.vectors[0], Ramp)):
        return None
    source = index.vectors[0]
    if source.lanes > _WIDEST * e.lanes:
        return None
    indices = tuple(source if k == varying[0] else _scalar(i) for k, i in enumerate(e.indices))
    return Shuffle(e.dtype, e.lanes, (Load(e.dtype, source.lanes, e.buffer, indices),), index.order)


def _scalar(e: Expr) -> Expr:
    uniform = _uniform(e)
    return e if uniform is None else uniform
