"""Narrows the indices of a kernel to 32 bits, for targets whose index registers are that wide.

before:  out[y*stride + x] = img[min(x, w - 1)] * float32(x*x)              all indices of 64 bits
after:   out[y*stride + x] = img[min(x, w - 1)] * float32(wide(x)*wide(x))  all of 32 bits, except for wide(x)

It applies to calls whose arrays have fewer than 2**31 elements, so that loop variables, extents, strides and addresses
fit. Values that may not fit are computed in 64 bits until they become part of an address: data of wider types, and
products that are compared, clamped, divided or used as data, except products with small constants. Sums and products of
both widths agree in their low 32 bits, so an address needs only the low half of such a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard

from ..expr.nodes import Broadcast, Cast, Const, Expr, Instruction, Load, Op, Ramp, Shuffle, Var, const
from ..expr.types import BOOL, INDEX, INT32, DType
from ..expr.visit import each_once, names
from ..expr.visit import walk as walk_expr
from ..ir.nodes import For, Kernel, Let, Stmt
from ..ir.visit import children, expressions, rebuild, walk

_NO, _OF_SCALARS, _OF_ANY = range(3)  # the products that an index contains: none, only of captured scalars, any
_Known = tuple[tuple[bool, bool], int]  # whether an index fits below and above, and which products it contains
NARROW = DType("index", 32)
_WRAPS = frozenset({"add", "sub", "mul", "neg"})
_SMALL = 1 << 12  # a constant factor whose products count as small: coordinates are well below 2**19


def index_type(bits: int) -> DType:
    """The index type with this number of bits."""
    return DType("index", bits)


def narrowed(kernel: Kernel) -> Kernel:
    """The kernel with indices of 32 bits."""
    work = _Narrowing(kernel)
    scalars = tuple([work.variable(v) for v in kernel.scalars])
    low = work.narrow(kernel.min)
    assert isinstance(low, (Const, Var))
    return replace(kernel, min=low, scalars=scalars, body=work.statement(kernel.body))


class _Narrowing:
    """Narrows the expressions of a kernel.

    `narrow` returns the low 32 bits of an index, which is all that an address needs. `exact` returns an index in 64
    bits. `value` returns an expression of any other type, in which indices are narrow or exact as required.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._scalars = frozenset(v.name for v in kernel.scalars)
        self._width: dict[str, int] = {}  # the bits of the index names in scope
        self._as_data = {n for e in _all_nodes(kernel.body) if _is_data(e) for n in names(e.value)}
        self._narrow: dict[int, Expr] = {}
        self._exact: dict[int, Expr] = {}
        self._values: dict[int, Expr] = {}
        self._facts: dict[int, _Known] = {}
        self._alive: list[Expr] = []  # alive while their ids are keys

    # Statements

    def statement(self, s: Stmt) -> Stmt:
        self._alive += expressions(s)
        if isinstance(s, For):
            self._bind(s.var, NARROW.bits)
        exprs = (self._named(s),) if isinstance(s, Let) else tuple([self.value(e) for e in expressions(s)])
        return rebuild(s, exprs, tuple([self.statement(c) for c in children(s)]))

    def _named(self, s: Let) -> Expr:
        e = s.value
        if e.dtype is not INDEX:
            return self.value(e)
        is_narrow = self._is_narrow(e, _NO if s.name in self._as_data else _OF_ANY)
        made = self.narrow(e) if is_narrow else self.exact(e)
        self._bind(s.name, made.dtype.bits)
        return made

    def _bind(self, name: str, bits: int) -> None:
        """Bind a name to an index with this number of bits.

        Versions of the same code bind the same names and share nodes. If a name has another width than in the previous
        version, the memo of nodes is dropped.
        """
        if self._width.get(name, bits) != bits:
            for known in (self._narrow, self._exact, self._values, self._facts):
                known.clear()
        self._width[name] = bits

    def _is_wide(self, v: Var) -> bool:
        return self._width.get(v.name) == INDEX.bits

    # Expressions

    def variable(self, v: Var) -> Var:
        return Var(NARROW, v.lanes, v.name) if v.dtype is INDEX else v

    def value(self, e: Expr) -> Expr:
        """Rewrite an expression of any type. An index becomes narrow."""
        if e.dtype is INDEX:
            return self.narrow(e)
        return each_once(e, self._values, self._value, _data_operands)

    def _value(self, e: Expr) -> Expr:
        if _is_data(e):
            return Cast(e.dtype, e.lanes, self.narrow(e.value) if self._is_narrow(e.value) else self.exact(e.value))
        if isinstance(e, Op) and e.args[-1].dtype is INDEX:
            args = self._operands(e.args) if e.dtype.is_bool else tuple(map(self.exact, e.args))
            return Op(e.dtype, e.lanes, e.op, args)
        if isinstance(e, Load):
            mask = None if e.mask is None else self._values[id(e.mask)]
            return Load(e.dtype, e.lanes, e.buffer, tuple([self.narrow(i) for i in e.indices]), mask)
        if isinstance(e, Instruction):
            args = tuple([self.narrow(a) if a.dtype is INDEX else self._values[id(a)] for a in e.args])
            return Instruction(e.dtype, e.lanes, e.name, args)
        return _with(e, e.dtype, lambda x: self._values[id(x)])

    def _operands(self, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Rewrite the operands of a comparison: all of them become narrow, or none."""
        write = self.narrow if all(map(self._is_narrow, args)) else self.exact
        return tuple([write(a) for a in args])

    def narrow(self, e: Expr) -> Expr:
        """The low 32 bits of an index, which may be the whole index."""
        narrowed = self._narrow.get(id(e))
        if narrowed is None:
            narrowed = self._narrow[id(e)] = self._narrowed(e)
        return narrowed

    def _narrowed(self, e: Expr) -> Expr:
        if isinstance(e, Const):
            return const(e.value, NARROW, e.lanes)
        if isinstance(e, Var):
            return Cast(NARROW, e.lanes, e) if self._is_wide(e) else self.variable(e)
        if isinstance(e, Cast):
            inner = self.value(e.value)
            return Cast(NARROW, e.lanes, Cast(INDEX, e.lanes, inner) if inner.dtype.is_float else inner)
        if isinstance(e, Op) and e.op == "select":
            return Op(NARROW, e.lanes, e.op, (self.value(e.args[0]), *map(self.narrow, e.args[1:])))
        if isinstance(e, Op) and e.op in _WRAPS and not self._all_fit(e.args):
            wrapping = tuple([Cast(INT32, a.lanes, self.narrow(a)) for a in e.args])
            return Cast(NARROW, e.lanes, Op(INT32, e.lanes, e.op, wrapping))
        if isinstance(e, Op) and e.op not in _WRAPS:
            # The number of a block is divided by counts of blocks, which are below 2**31.
            allowed = _OF_SCALARS if e.op in ("floordiv", "mod") else _NO
            if not all(self._is_narrow(a, allowed) for a in e.args):
                return Cast(NARROW, e.lanes, _with(e, INDEX, self.exact))
        return _with(e, NARROW, self.narrow)

    def exact(self, e: Expr) -> Expr:
        """An index in 64 bits."""
        widened = self._exact.get(id(e))
        if widened is None:
            widened = self._exact[id(e)] = self._exactly(e)
        return widened

    def _exactly(self, e: Expr) -> Expr:
        if isinstance(e, Const) or (isinstance(e, Var) and self._is_wide(e)):
            return e
        if self._is_narrow(e):
            return Cast(INDEX, e.lanes, self.narrow(e))
        if isinstance(e, Cast):
            return Cast(INDEX, e.lanes, self.value(e.value))
        if isinstance(e, Op) and e.op == "select":
            return Op(INDEX, e.lanes, e.op, (self.value(e.args[0]), *map(self.exact, e.args[1:])))
        return _with(e, INDEX, self.exact)

    # Values that fit

    def _is_narrow(self, e: Expr, allowed: int = _NO) -> bool:
        """Whether an index is known to fit 32 bits and contains no products but those that are allowed."""
        fits, products = self._known(e)
        return all(fits) and products <= allowed

    def _all_fit(self, several: tuple[Expr, ...]) -> bool:
        return all(all(self._known(e)[0]) for e in several)

    def _known(self, e: Expr) -> _Known:
        return each_once(e, self._facts, self._analyse, _index_operands)

    def _analyse(self, e: Expr) -> _Known:
        parts = [self._facts[id(a)] for a in _index_operands(e)]
        products = [p[1] for p in parts]
        if isinstance(e, Op) and _is_product(e):
            products.append(_OF_SCALARS if names(e) <= self._scalars else _OF_ANY)
        return self._sides(e, [p[0] for p in parts]), max(products, default=_NO)

    def _sides(self, e: Expr, parts: list[tuple[bool, bool]]) -> tuple[bool, bool]:
        """Whether an index is known to be at least the smallest 32-bit number, and whether at most the largest,
        provided that this holds for its products."""
        if isinstance(e, Const):
            return int(e.value) >= NARROW.min, int(e.value) <= NARROW.max
        if isinstance(e, Var):
            return (not self._is_wide(e),) * 2
        if isinstance(e, Cast):
            return _holds(e.value.dtype)
        below, above = [p[0] for p in parts], [p[1] for p in parts]
        name = e.op if isinstance(e, Op) else ""
        if name == "min":
            return all(below), any(above)
        if name == "max":
            return any(below), all(above)
        if name == "mod":
            return (all(parts[1]),) * 2  # it has the divisor's sign, and is closer to 0
        return (all(below + above),) * 2


def _all_nodes(s: Stmt) -> Iterator[Expr]:
    """The nodes of all statements, each once, since unrolled iterations share them."""
    return walk_expr(*(e for inner in walk(s) for e in expressions(inner)))


def _is_data(e: Expr) -> TypeGuard[Cast]:
    """Whether an expression converts an index to data."""
    return isinstance(e, Cast) and e.value.dtype is INDEX and e.dtype is not INDEX


def _data_operands(e: Expr) -> tuple[Expr, ...]:
    """The operands that are not indices."""
    return tuple([x for x in e.operands if x.dtype is not INDEX])


def _index_operands(e: Expr) -> tuple[Expr, ...]:
    return tuple([x for x in e.operands if x.dtype is INDEX])


def _holds(t: DType) -> tuple[bool, bool]:
    """Whether 32 bits can hold the smallest value of a type, and whether the largest."""
    if t.is_float:
        return False, False
    return t is BOOL or t.min >= NARROW.min, t is BOOL or t.max <= NARROW.max


def _is_product(e: Op) -> bool:
    """Whether an operation is a product that may exceed 32 bits: any product except with a small constant."""
    little = any(isinstance(a, Const) and abs(int(a.value)) <= _SMALL for a in e.args)
    return e.op == "shl" or (e.op == "mul" and not little)


def _with(e: Expr, t: DType, new: Callable[[Expr], Expr]) -> Expr:
    """A copy of an expression with another type, whose operands are converted by `new`."""
    if isinstance(e, Op):
        return Op(t, e.lanes, e.op, tuple([new(a) for a in e.args]))
    if isinstance(e, Ramp):
        return Ramp(t, e.lanes, new(e.base), new(e.stride))
    if isinstance(e, Broadcast):
        return Broadcast(t, e.lanes, new(e.value))
    if isinstance(e, Shuffle):
        return Shuffle(t, e.lanes, tuple([new(v) for v in e.vectors]), e.order)
    if isinstance(e, Instruction):
        return Instruction(t, e.lanes, e.name, tuple([new(a) for a in e.args]))
    if isinstance(e, (Const, Var)):
        return e
    return type(e)(t, e.lanes, *map(new, e.operands))  # a conversion
