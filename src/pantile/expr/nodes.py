"""Expression nodes, shared by the language and the loop IR.

    expr = Const(value)                      a literal of a known type
         | Var(name)                         a pixel coordinate, loop variable, let name or scalar argument
         | Op(op, args)                      arithmetic, comparison, logic, math (see `OPS`)
         | Cast(value)                       int: wraps; float to int: truncates and saturates, NaN is 0
         | Bits(value)                       the same bits as another type of equal size
         | Read(source, indices, which)      language: a value of a Func or Input at a coordinate
         | Reduce(kind, value, domain)       language: sum, prod, min, max, ... over a reduction domain
         | Load(buffer, indices)             loop IR: a value of a buffer
         | Ramp(base, stride, lanes)         loop IR: base, base+stride, ..., as a vector
         | Broadcast(value, lanes)           loop IR: a scalar in every lane
         | Shuffle(vectors, order)           loop IR: selected lanes of concatenated vectors
         | Instruction(name, args)           loop IR, on GPUs: the result of a machine instruction

Nodes are frozen and compared by identity (`==` builds an expression). Passes memoize by identity, so a shared node is
visited once. `same` in `visit` compares structure. Python numbers enter through `build`, which gives them types.

Indexing a NumPy array with an expression, `array[e]`, is detected, in order to raise a useful error. NumPy first calls
`__index__`, ignores any error that it raises, and then calls `__array__`, whose errors it passes on. NumPy also calls
`__array__`, but not `__index__`, when an array of objects is filled with expressions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import field, fields
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import numpy as np

from ..dataclass import dataclass
from ..errors import UserError, UserTypeError, is_ours
from .types import BOOL, INDEX, DType

Number = bool | int | float
# Values that are accepted where an expression is expected.
ExprLike = Any
T = TypeVar("T")
_Place = tuple[int, int, int]  # the expression, the frame of the user's code and the instruction that runs in it

_index_call: list[_Place] = []  # the last call of `__index__`


if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
    def node(*, init: bool = True) -> Callable[[type[T]], type[T]]:
        """Decorate the class of a node, or of another object that is created often, as a frozen dataclass that is
        compared by identity."""

else:

    def node(*, init=True):
        # Only the type checker treats nodes as frozen: enforcement at run time would make construction four times as
        # slow.
        return dataclass(init=init, eq=False, repr=False, slots=True)


@node()
class _Notes:
    """Cached results of analyses; see `once_per_node`. They are None at first, since an unset slot takes four times as
    long."""

    _class: Any = field(default=None, init=False)
    _depth: Any = field(default=None, init=False)
    _has_floats: Any = field(default=None, init=False)
    _has_promises: Any = field(default=None, init=False)
    _is_normal: Any = field(default=None, init=False)
    _key: Any = field(default=None, init=False)
    _linear: Any = field(default=None, init=False)
    _loaded: Any = field(default=None, init=False)
    _names: Any = field(default=None, init=False)
    _nesting: Any = field(default=None, init=False)


class Meaning:
    """The functions behind operators and `str`. They need all kinds of nodes, so the package sets them on import."""

    binary: Callable[[str, ExprLike, ExprLike], Expr]
    unary: Callable[[str, ExprLike], Expr]
    rounded: Callable[[Expr, object], Expr]
    apply_ufunc: Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Expr]
    apply_function: Callable[[Any, tuple[Any, ...], dict[str, Any]], Expr]
    show: Callable[[Expr], str]


meaning = Meaning()


def _binary(name: str) -> Callable[[Expr, ExprLike], Expr]:
    return lambda a, b: meaning.binary(name, a, b)


def _reflected(name: str) -> Callable[[Expr, ExprLike], Expr]:
    return lambda a, b: meaning.binary(name, b, a)


def _unary(name: str) -> Callable[[Expr], Expr]:
    return lambda a: meaning.unary(name, a)


@node()
class Expr(_Notes):
    """Base class of all nodes: a vector of `lanes` values of type `dtype`, or a scalar if `lanes` is 1."""

    dtype: DType
    lanes: int
    # The operands of a node. No attribute is read more often, so if one field holds exactly these, this is another name
    # for it.
    operands: ClassVar[tuple[Expr, ...]] = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Expr:
        return meaning.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Expr:
        return meaning.apply_function(function, args, options)

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("div"), _reflected("div")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __and__, __rand__ = _binary("and"), _reflected("and")
    __or__, __ror__ = _binary("or"), _reflected("or")
    __xor__, __rxor__ = _binary("xor"), _reflected("xor")
    __lshift__, __rlshift__ = _binary("shl"), _reflected("shl")
    __rshift__, __rrshift__ = _binary("shr"), _reflected("shr")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __neg__, __invert__, __abs__ = _unary("neg"), _unary("not"), _unary("abs")
    __floor__, __ceil__, __trunc__ = _unary("floor"), _unary("ceil"), _unary("trunc")

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return meaning.binary("eq", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return meaning.binary("ne", self, other)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __pos__(self) -> Expr:
        return self

    def __round__(self, digits: object = None) -> Expr:
        return meaning.rounded(self, digits)

    def __int__(self) -> NoReturn:
        raise UserError(_not_a_number(self, "to convert it write pt.cast('int32', ...)"))

    def __float__(self) -> NoReturn:
        raise UserError(
            _not_a_number(self, "to convert it write pt.cast('float32', ...); instead of math's functions use pt's")
        )

    def __index__(self) -> NoReturn:
        note_index(self)
        raise UserError(
            _not_a_number(self, "to read an array there write pt.table(array)[...], to repeat something use a pt.RDom")
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if is_index(self):
            raise UserTypeError(
                f"a NumPy array cannot be read at {self}; make it a table first: pt.table(array)[{self}]"
            )
        return as_object(self)

    def __len__(self) -> NoReturn:
        raise UserError(f"{self} is a single value and has no length; the extents of an Input are its .shape")

    def __bool__(self) -> bool:
        raise UserError(
            f"the value of {self} is not known while the pipeline is being described, so it cannot decide a Python "
            "'if', 'and', 'or' or 'not'; use pt.select(condition, a, b) and the operators & | ~"
        )

    def __iter__(self) -> Iterator[Expr]:
        raise UserError(
            f"{self} is a single value and cannot be iterated over or unpacked; a loop over pixels is a pt.RDom"
        )

    def __getitem__(self, key: object) -> NoReturn:
        raise UserError(
            f"{self} is a single value, so [{key}] cannot follow it; write all indices in one pair of brackets"
        )

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """The state without cached results of analyses."""
        return None, {f.name: getattr(self, f.name) if f.init else None for f in fields(self)}

    def __str__(self) -> str:
        return meaning.show(self)

    def __repr__(self) -> str:
        return f"<{self.dtype} {self}>"


def _not_a_number(e: Expr, instead: str) -> str:
    return (
        f"the value of {e} is not known while the pipeline is being described, so it is not a Python number; {instead}"
    )


@node()
class Const(Expr):
    """A literal; every lane has the same value."""

    value: Number


@node()
class Var(Expr):
    """A named value. Coordinates are int32 in users' code, and indices in graphs and loops."""

    name: str


@node()
class Op(Expr):
    """An operation of `OPS` on arguments of one common type (comparisons, select and shifts aside)."""

    op: str
    args: tuple[Expr, ...]


@node()
class Cast(Expr):
    """Conversion by value to `dtype`."""

    value: Expr


@node()
class Bits(Expr):
    """Reinterpretation of the bits as `dtype`, of the same size."""

    value: Expr


@node()
class Read(Expr):
    """The `which`-th value of `source[indices]`, where `source` is a Func or an Input of the language."""

    source: Any
    indices: tuple[Expr, ...]
    which: int


@node()
class Reduce(Expr):
    """A reduction of `value` over `domain` (an RDom of the language)."""

    kind: str
    value: Expr
    domain: Any
    which: int  # the number of a value of argmin or argmax: the coordinates come first, then the extreme value


@node()
class Load(Expr):
    """`buffer[indices]`, with one index per storage dimension until storage is flattened, and a single index
    afterwards."""

    buffer: str
    indices: tuple[Expr, ...]
    mask: Expr | None = None  # the lanes to load; the others are zero


@node()
class Ramp(Expr):
    """A vector with base + i*stride in lane i."""

    base: Expr
    stride: Expr


@node()
class Broadcast(Expr):
    """The scalar `value` in every lane."""

    value: Expr


@node()
class Shuffle(Expr):
    """Lane i is lane `order[i]` of the concatenation of `vectors`."""

    vectors: tuple[Expr, ...]
    order: tuple[int, ...]


@node()
class Instruction(Expr):
    """The value of a machine instruction, or its effect on the threads that execute it; see `ir/instructions.py`."""

    name: str
    args: tuple[Expr, ...]


def _operands_are(operands: Any, *kinds: type[Expr]) -> None:
    for kind in kinds:
        kind.operands = operands


_operands_are(Op.args, Op)
_operands_are(Read.indices, Read)
_operands_are(Shuffle.vectors, Shuffle)
_operands_are(property(lambda e: (e.value,)), Cast, Bits, Broadcast, Reduce)
_operands_are(property(lambda e: e.indices if e.mask is None else (*e.indices, e.mask)), Load)
_operands_are(property(lambda e: (e.base, e.stride)), Ramp)
_operands_are(Instruction.args, Instruction)

# Operation name -> number of arguments. Results have the type of the arguments, except as in `result_type`.
ARITHMETIC = {"add": 2, "sub": 2, "mul": 2, "floordiv": 2, "mod": 2, "min": 2, "max": 2, "neg": 1, "abs": 1}
FLOATING = {
    "div": 2, "sqrt": 1, "rsqrt": 1, "exp": 1, "log": 1, "sin": 1, "cos": 1, "tan": 1, "tanh": 1, "asin": 1,
    "acos": 1, "erf": 1, "cbrt": 1, "atan2": 2, "pow": 2, "floor": 1, "ceil": 1, "round": 1, "trunc": 1, "fma": 3,
}  # fmt: skip
BITWISE = {"and": 2, "or": 2, "xor": 2, "not": 1, "shl": 2, "shr": 2, "popcount": 1}
COMPARISON = {"eq": 2, "ne": 2, "lt": 2, "le": 2, "gt": 2, "ge": 2}
FIXED_POINT = {
    "halving_add": 2,  # floor((a + b) / 2), without overflow
    "rounding_halving_add": 2,  # floor((a + b + 1) / 2), without overflow
    "saturating_add": 2,
    "saturating_sub": 2,
    "absd": 2,  # |a - b| in the unsigned type of the same size
    "mul_shift": 3,  # floor(a * b / 2**s) computed wide, saturated to the type; s a constant
    "rounding_mul_shift": 3,  # floor((a * b + 2**(s-1)) / 2**s), computed wide and saturated as well
}
SELECT = {"select": 3}  # condition, then, otherwise
HINT = {"within": 3}  # the first argument, which is promised to be in [second, third]
OPS: dict[str, int] = {**ARITHMETIC, **FLOATING, **BITWISE, **COMPARISON, **FIXED_POINT, **SELECT, **HINT}
COMMUTATIVE = frozenset(
    {
        "add",
        "mul",
        "min",
        "max",
        "and",
        "or",
        "xor",
        "eq",
        "ne",
        "halving_add",
        "rounding_halving_add",
        "saturating_add",
        "absd",
    }
)


def result_type(op: str, args: tuple[Expr, ...]) -> DType:
    """The type of `op` applied to already promoted arguments."""
    if op in COMPARISON:
        return BOOL
    if op == "select":
        return args[1].dtype
    if op == "absd":
        t = args[0].dtype
        return DType("uint", t.bits) if t.is_int else t
    return args[0].dtype


def const(value: Number, dtype: DType, lanes: int = 1) -> Const:
    """A literal of an exact type; integers wrap into it."""
    if dtype.is_float:
        return Const(dtype, lanes, float(value))
    if dtype.is_bool:
        return Const(dtype, lanes, bool(value))
    value = int(value)
    if dtype is INDEX and lanes == 1 and -_NEAR <= value <= _NEAR:
        return _near_index(value)
    if not dtype.min <= value <= dtype.max:
        value = (value - dtype.min) % (1 << dtype.bits) + dtype.min
    return Const(dtype, lanes, value)


_NEAR = 1 << 12  # most constants are indices of at most this absolute value


@cache
def _near_index(value: int) -> Const:
    """The unique node of a small index: a lookup is faster than construction, and cached results are shared."""
    return Const(INDEX, 1, value)


def neutral(operation: str, dtype: DType) -> Const:
    """The neutral element of add, mul, min, max, and, or, xor."""
    if operation in ("min", "max") and dtype.is_float:
        return const(math.inf if operation == "min" else -math.inf, dtype)
    return const({"mul": 1, "and": -1, "min": dtype.max, "max": dtype.min}.get(operation, 0), dtype)


def var(name: str, dtype: DType = INDEX, lanes: int = 1) -> Var:
    """A variable of the loop IR."""
    return Var(dtype, lanes, name)


def coordinate(name: str) -> Var:
    """A coordinate or an extent in a graph."""
    return Var(INDEX, 1, name)


def op(name: str, *args: Expr) -> Op:
    """An operation on arguments that already agree in type and lanes."""
    return Op(result_type(name, args), args[-1].lanes, name, args)


def note_index(e: object) -> None:
    """Record a call of the `__index__` of an expression, before it raises its error."""
    _index_call[:] = [_place(e)]


def is_index(e: object) -> bool:
    """Whether `__array__` of an expression is called because the expression indexes an array."""
    return _index_call == [_place(e)]


def as_object(e: object) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of objects that holds an expression."""
    array = np.empty((), object)
    array[()] = e
    return array


def _place(e: object) -> _Place:
    caller: FrameType | None = sys._getframe(2)
    while caller is not None and is_ours(caller):
        caller = caller.f_back
    return id(e), id(caller), -1 if caller is None else caller.f_lasti
