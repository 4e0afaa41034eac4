"""The loop-IR verifier: a Program in, nothing out, an InternalError for the first thing that is wrong.

Checked: every name is defined around its use and hides no other, types and lanes agree in every expression, bounds
are index scalars, stores match their buffer. With `flat=True` also what codegen relies on: one index per access,
no vector or unrolled loops left, storage allocated. With `outlined=True` no parallel loops are left, either. A kernel
uses nothing but what it captures and defines itself, and each launch gives it that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import InternalError
from ..expr.nodes import (
    BITWISE,
    FLOATING,
    OPS,
    Bits,
    Broadcast,
    Cast,
    Const,
    Expr,
    Load,
    Op,
    Ramp,
    Shuffle,
    Var,
    result_type,
)
from ..expr.types import INDEX, DType
from ..expr.visit import children as operands
from ..target.kinds import ITERATED, Kind, Memory
from .nodes import Alloc, For, If, Kernel, Launch, Let, Prefetch, Program, Realize, Stmt, Store
from .visit import children, expressions


def verify(program: Program, *, flat: bool = False, outlined: bool = False) -> None:
    """Raise InternalError unless the program is well formed (`flat`, `outlined`: ready for code generation)."""
    _Verifier(program, flat, outlined).run()


class _Verifier:
    def __init__(self, program: Program, flat: bool, outlined: bool) -> None:
        self.program = program
        self.flat = flat
        self.outlined = outlined
        self.kernels: dict[str, Kernel] = {}  # checked, so that others may launch them
        self.scalars: dict[str, tuple[DType, int]] = {}
        self.buffers: dict[str, DType] = {}
        self.proved: set[int] = set()  # expressions checked in the scope that is open

    def run(self) -> None:
        for kernel in self.program.kernels:
            self.kernel(kernel)
        for b in self.program.buffers:
            self.add_buffer(b.name, b.dtype)
            for axis in range(b.ndim):
                self.add_scalar(b.extent(axis), INDEX, 1)
                self.add_scalar(b.stride(axis), INDEX, 1)
        for a in self.program.scalars:
            self.add_scalar(a.name, a.dtype, 1)
        self.statement(self.program.body)

    def kernel(self, k: Kernel) -> None:
        """In a scope of its own."""
        if k.name in self.kernels:
            raise self.fail(f"there are two kernels {k.name}")
        for v in k.scalars:
            self.add_scalar(v.name, v.dtype, v.lanes)
        for b in k.buffers:
            self.add_buffer(b.name, b.dtype)
        self.index(k.min, f"the first {k.var} of kernel {k.name}")
        self.expression(k.min)
        if isinstance(k.min, Const) and k.min.value != 0:
            raise self.fail(f"kernel {k.name} begins at {k.min}, which is neither 0 nor captured")
        self.add_scalar(k.var, INDEX, 1)
        self.statement(k.body)
        self.scalars, self.buffers = {}, {}
        self.kernels[k.name] = k

    def fail(self, message: str) -> InternalError:
        return InternalError(f"loop IR of {self.program.name}: {message}")

    def add_scalar(self, name: str, dtype: DType, lanes: int) -> None:
        if name in self.scalars:
            raise self.fail(f"the name {name} is defined twice in one scope")
        self.scalars[name] = (dtype, lanes)

    def add_buffer(self, name: str, dtype: DType) -> None:
        if name in self.buffers:
            raise self.fail(f"the buffer {name} is defined twice in one scope")
        self.buffers[name] = dtype

    # Statements

    def statement(self, s: Stmt) -> None:
        self.proved = set()
        for e in expressions(s):
            self.expression(e)
        check = _STATEMENTS.get(type(s))
        if check is not None:
            check(self, s)
        self.inside(s)

    def inside(self, s: Stmt) -> None:
        if isinstance(s, For):
            self.add_scalar(s.var, INDEX, 1)
        elif isinstance(s, Let):
            self.add_scalar(s.name, s.value.dtype, s.value.lanes)
        elif isinstance(s, (Alloc, Realize)):
            self.add_buffer(s.buffer, s.dtype)
        for c in children(s):
            self.statement(c)
        if isinstance(s, For):
            del self.scalars[s.var]
        elif isinstance(s, Let):
            del self.scalars[s.name]
        elif isinstance(s, (Alloc, Realize)):
            del self.buffers[s.buffer]

    def loop(self, s: For) -> None:
        for role, e in (("min", s.min), ("extent", s.extent), ("scratch", s.scratch)):
            if e is not None:
                self.index(e, f"the {role} of loop {s.var}")
        if self.flat and s.kind not in ((Kind.SERIAL,) if self.outlined else ITERATED):
            raise self.fail(f"loop {s.var} is still marked {s.kind.value}")

    def branch(self, s: If) -> None:
        if not s.condition.dtype.is_bool or s.condition.lanes != 1:
            raise self.fail(f"the condition {s.condition} is {_type(s.condition)}, not a scalar bool")

    def store(self, s: Store) -> None:
        want = self.buffer(s.buffer)
        if s.value.dtype != want:
            raise self.fail(f"a {s.value.dtype} is stored into {s.buffer}, which holds {want}: {s.value}")
        lanes = self.indices(s.buffer, s.indices)
        if s.value.lanes != lanes:
            raise self.fail(f"{s.value.lanes} lanes are stored through {lanes} lanes of index into {s.buffer}")
        self.mask(s.mask, lanes)

    def realize(self, s: Realize) -> None:
        if self.flat:
            raise self.fail(f"{s.buffer} is realized but not allocated")
        for low, extent in s.box:
            self.index(low, f"a bound of {s.buffer}")
            self.index(extent, f"an extent of {s.buffer}")

    def alloc(self, s: Alloc) -> None:
        self.index(s.size, f"the size of {s.buffer}")
        if s.offset is not None:
            self.index(s.offset, f"the offset of {s.buffer}")
        if s.memory in (Memory.STACK, Memory.REGISTER) and not isinstance(s.size, Const):
            raise self.fail(f"{s.buffer} lives in {s.memory.value} but its size {s.size} is not constant")

    def prefetch(self, s: Prefetch) -> None:
        self.buffer(s.buffer)
        self.indices(s.buffer, s.indices)

    def launch(self, s: Launch) -> None:
        kernel = self.kernels.get(s.kernel)
        if kernel is None:
            raise self.fail(f"{s.kernel} is launched but is no kernel, or one that comes later")
        self.index(s.extent, f"the extent of {s.kernel}")
        if s.scratch is not None:
            self.index(s.scratch, f"the scratch memory of {s.kernel}")
        given = [*map(_type, s.scalars), *map(self.buffer, s.buffers)]
        wanted = [*map(_type, kernel.scalars), *(b.dtype for b in kernel.buffers)]
        if given != wanted:
            raise self.fail(f"{s.kernel} captures {_list(wanted)} but is given {_list(given)}")

    # Expressions

    def expression(self, e: Expr) -> None:
        if id(e) in self.proved:
            return
        for c in operands(e):
            self.expression(c)
        check = _EXPRESSIONS.get(type(e))
        if check is None:
            raise self.fail(f"{type(e).__name__} does not belong in loop IR: {e}")
        check(self, e)
        self.proved.add(id(e))

    def variable(self, e: Var) -> None:
        if e.name not in self.scalars:
            raise self.fail(f"{e.name} is not defined where it is used")
        if self.scalars[e.name] != (e.dtype, e.lanes):
            dtype, lanes = self.scalars[e.name]
            raise self.fail(f"{e.name} is {dtype} with {lanes} lanes but is used as {_type(e)}")

    def operation(self, e: Op) -> None:
        if len(e.args) != OPS.get(e.op, -1):
            raise self.fail(f"{e.op} does not take {len(e.args)} arguments")
        if any(a.lanes != e.lanes for a in e.args):
            raise self.fail(f"lanes differ in {e}: {', '.join(_type(a) for a in e.args)}")
        typed = e.args[1:] if e.op == "select" else e.args
        if any(a.dtype != typed[0].dtype for a in typed):
            raise self.fail(f"types differ in {e}: {', '.join(_type(a) for a in e.args)}")
        if e.dtype != result_type(e.op, e.args):
            raise self.fail(f"{e} is marked {e.dtype} but gives {result_type(e.op, e.args)}")
        self.domain(e, typed[0].dtype)

    def domain(self, e: Op, t: DType) -> None:
        if e.op == "select" and not e.args[0].dtype.is_bool:
            raise self.fail(f"the condition of {e} is {e.args[0].dtype}")
        if (e.op in FLOATING and not t.is_float) or (e.op in BITWISE and t.is_float):
            raise self.fail(f"{e.op} of {t}: {e}")

    def load(self, e: Load) -> None:
        if e.dtype != self.buffer(e.buffer):
            raise self.fail(f"{e.buffer} holds {self.buffer(e.buffer)} but is loaded as {e.dtype}")
        if self.indices(e.buffer, e.indices) != e.lanes:
            raise self.fail(f"{e} is marked {_type(e)} but its index has other lanes")
        self.mask(e.mask, e.lanes)

    def ramp(self, e: Ramp) -> None:
        if e.base.lanes != 1 or e.stride.lanes != 1 or e.base.dtype != e.dtype or e.stride.dtype != e.dtype:
            raise self.fail(f"base and stride of {e} must be {e.dtype} scalars")

    def broadcast(self, e: Broadcast) -> None:
        if e.value.lanes != 1 or e.value.dtype != e.dtype:
            raise self.fail(f"{e} broadcasts {_type(e.value)} to {_type(e)}")

    def shuffle(self, e: Shuffle) -> None:
        total = sum(v.lanes for v in e.vectors)
        if len(e.order) != e.lanes or any(not 0 <= i < total for i in e.order):
            raise self.fail(f"{e} picks lanes outside 0..{total}")
        if any(v.dtype != e.dtype for v in e.vectors):
            raise self.fail(f"types differ in {e}")

    def conversion(self, e: Cast | Bits) -> None:
        if e.value.lanes != e.lanes:
            raise self.fail(f"lanes differ in {e}")
        if isinstance(e, Bits) and e.value.dtype.bits != e.dtype.bits:
            raise self.fail(f"sizes differ in {e}")

    # Shared pieces

    def buffer(self, name: str) -> DType:
        if name not in self.buffers:
            raise self.fail(f"the buffer {name} does not exist where it is used")
        return self.buffers[name]

    def indices(self, buffer: str, indices: tuple[Expr, ...]) -> int:
        """Check an access's indices; the number of lanes it touches."""
        for i in indices:
            if not i.dtype.is_int or (self.flat and i.dtype != INDEX):
                raise self.fail(f"the index {i} of {buffer} is {i.dtype}")
        if self.flat and len(indices) != 1:
            raise self.fail(f"{buffer} is accessed with {len(indices)} indices after flattening")
        lanes = max((i.lanes for i in indices), default=1)
        if any(i.lanes not in (1, lanes) for i in indices):
            raise self.fail(f"lanes differ among the indices of {buffer}")
        return lanes

    def mask(self, mask: Expr | None, lanes: int) -> None:
        if mask is not None and (not mask.dtype.is_bool or mask.lanes != lanes):
            raise self.fail(f"the mask {mask} is {_type(mask)} for {lanes} lanes")

    def index(self, e: Expr, role: str) -> None:
        if e.dtype != INDEX or e.lanes != 1:
            raise self.fail(f"{role} is {_type(e)}, not an index scalar: {e}")


def _type(e: Expr) -> str:
    return str(e.dtype) if e.lanes == 1 else f"{e.dtype}x{e.lanes}"


def _list(types: Iterable[object]) -> str:
    return ", ".join(map(str, types)) or "nothing"


_STATEMENTS: dict[type[Stmt], Callable[[_Verifier, Any], None]] = {
    For: _Verifier.loop,
    If: _Verifier.branch,
    Store: _Verifier.store,
    Realize: _Verifier.realize,
    Alloc: _Verifier.alloc,
    Prefetch: _Verifier.prefetch,
    Launch: _Verifier.launch,
}
_EXPRESSIONS: dict[type[Expr], Callable[[_Verifier, Any], None]] = {
    Const: lambda v, e: None,
    Var: _Verifier.variable,
    Op: _Verifier.operation,
    Cast: _Verifier.conversion,
    Bits: _Verifier.conversion,
    Load: _Verifier.load,
    Ramp: _Verifier.ramp,
    Broadcast: _Verifier.broadcast,
    Shuffle: _Verifier.shuffle,
}
