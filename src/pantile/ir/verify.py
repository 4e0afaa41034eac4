"""The loop-IR verifier, which raises an InternalError for the first violation that it finds in a program.

Every program must be well formed: each name is defined around its uses and shadows no other, types and lanes agree in
every expression, bounds are index scalars, stores match their buffers, and nothing is stored to inputs. A kernel uses
only what it captures or defines itself, and each launch passes all captures. In addition, a pass may establish a
`Property`, on which later passes rely and which the verifier then checks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple

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
    Instruction,
    Load,
    Op,
    Ramp,
    Shuffle,
    Var,
    result_type,
)
from ..expr.types import INDEX, DType
from ..expr.visit import each_once, union, walk
from ..target.kinds import WRITTEN_OUT, Kind, Memory
from ..target.layout import Layout, Unit
from ..target.wgmma import CORE
from .instructions import Operand, ThreadGroup, find_spec, spec_of
from .nodes import (
    Alloc,
    BufferArg,
    Evaluate,
    For,
    If,
    Kernel,
    Launch,
    Let,
    Prefetch,
    Program,
    Realize,
    ScalarArg,
    Stmt,
    Store,
)
from .visit import children, expressions


class Property(Enum):
    """A guarantee about a program, beyond being well formed."""

    SCALAR = "every value is a scalar"
    CONSTANT_LANES = "vector and unrolled loops have constant extents"
    NO_VECTOR_LOOPS = "no loop is marked vector"
    NO_UNROLLED_LOOPS = "no loop is marked unroll"
    NO_PARALLEL_LOOPS = "no loop is marked parallel"
    NO_BLOCK_LOOPS = "no loop is marked block"
    THREAD_LOOPS = "loops of threads count from 0 to a constant, none is inside another, and none is of parts of a warp"
    OF_THREADS = "registers are those of one thread, no longer elements of a layout"
    BOXES = "buffers are boxes, none is flat memory yet, and accesses have an index per dim"
    FLAT = "buffers are flat memory of a decided kind, and accesses have one index"
    CLEAN = "no let names a number, no branch is decided, and every loop may run"


# The properties required to make kernels, and to emit code.
FOR_KERNELS = frozenset({Property.NO_VECTOR_LOOPS, Property.NO_UNROLLED_LOOPS, Property.FLAT})
FOR_CODE = FOR_KERNELS | {Property.NO_PARALLEL_LOOPS}

# The property that forbids loops of each kind.
_FORBIDDING = {
    Kind.VECTOR: Property.NO_VECTOR_LOOPS,
    Kind.UNROLL: Property.NO_UNROLLED_LOOPS,
    Kind.PARALLEL: Property.NO_PARALLEL_LOOPS,
    Kind.BLOCK: Property.NO_BLOCK_LOOPS,
    Kind.WARP: Property.THREAD_LOOPS,
    Kind.LANE: Property.THREAD_LOOPS,
    Kind.TENSOR_CORE: Property.THREAD_LOOPS,
}


def verify(program: Program, has: Collection[Property] = (), after: str = "") -> None:
    """Raise InternalError unless the program is well formed and has these properties. `after` names the pass that made
    it."""
    Verifier(program.name, program.buffers, program.scalars).check_program(program, has, after)


class _Buffer(NamedTuple):
    dtype: DType
    rank: int | None  # None for flat memory
    writable: bool = True


class _FreeUses(NamedTuple):
    """The names that an expression uses from its scope."""

    variables: frozenset[tuple[str, tuple[DType, int]]] = frozenset()  # names, with types and lanes
    accesses: frozenset[tuple[str, DType, int, DType | None]] = frozenset()  # see `_access`
    vector: Expr | None = None  # a subexpression with several lanes, if there is one


_NOTHING = _FreeUses()


class Verifier:
    """Verifies a program after each pass. Expressions that a pass leaves unchanged are not verified again."""

    def __init__(self, name: str, buffers: tuple[BufferArg, ...], scalars: tuple[ScalarArg, ...]) -> None:
        self._name = name
        self._arguments, self._parameters = buffers, scalars
        self._body: Stmt | None = None  # the body checked last
        self._has: frozenset[Property] = frozenset()
        self._is_flat = self._has_boxes = False  # whether these properties are among them
        self._after = ""
        self._threads = 0  # threads per block of the current kernel
        self._inside: str | None = None  # the current thread loop
        self._scalars: dict[str, tuple[DType, int]] = {}
        self._buffers: dict[str, _Buffer] = {}
        self._resident: list[str] = []  # host scalars with the number of resident blocks of a kernel
        self._kernels: dict[str, Kernel] = {}  # the kernels checked so far, which others may launch
        self._uses: dict[int, _FreeUses] = {}  # by the id of an expression whose types and lanes agree
        self._variables: dict[tuple[str, tuple[DType, int]], _FreeUses] = {}
        self._alive: list[Expr] = []  # keeps expressions alive whose ids, or those of their parts, are keys

    def check(self, body: Stmt, has: Collection[Property], after: str = "") -> None:
        """Raise InternalError unless a program with this body is well formed and has the properties.

        `after` names the pass that made it.
        """
        if body is self._body and self._has.issuperset(has):
            return
        self._body = body
        self._begin(has, after)
        for b in self._arguments:
            self._add_buffer(b.name, _Buffer(b.dtype, b.ndim, b.writable))
            for axis in range(b.ndim):
                self._add_scalar(b.extent(axis), INDEX, 1)
                self._add_scalar(b.stride(axis), INDEX, 1)
        for a in self._parameters:
            self._add_scalar(a.name, a.dtype, 1)
        for name in self._resident:
            self._add_scalar(name, INDEX, 1)
        self._statement(body)

    def check_program(self, program: Program, has: Collection[Property], after: str = "") -> None:
        """Check a program with its kernels."""
        self._resident = [k.resident for k in program.kernels if k.resident is not None]
        self._kernels = {}
        for kernel in program.kernels:
            self.check_kernel(kernel, has, after)
        self._body = None  # check the body again, since the kernels that it launches may have changed
        self.check(program.body, has, after)

    def check_kernel(self, k: Kernel, has: Collection[Property], after: str = "") -> None:
        """Check a kernel. It may launch kernels that were checked before it."""
        self._begin(has, after)
        if k.name in self._kernels:
            raise self._fail(f"there are two kernels {k.name}")
        for v in k.scalars:
            self._add_scalar(v.name, v.dtype, v.lanes)
        for b in k.buffers:
            self._add_buffer(b.name, _Buffer(b.dtype, None))
        self._index(k.min, f"the first {k.var} of kernel {k.name}")
        self._expression(k.min)
        if isinstance(k.min, Const) and k.min.value != 0:
            raise self._fail(f"kernel {k.name} begins at {k.min}, which is neither 0 nor captured")
        self._add_scalar(k.var, INDEX, 1)
        self._threads = k.threads
        self._statement(k.body)
        self._threads = 0
        self._kernels[k.name] = k

    def _begin(self, has: Collection[Property], after: str) -> None:
        self._has, self._scalars, self._buffers = frozenset(has), {}, {}
        self._is_flat, self._has_boxes = Property.FLAT in self._has, Property.BOXES in self._has
        self._after = f" after {after}" if after else ""

    def _fail(self, message: str) -> InternalError:
        return InternalError(f"loop IR of {self._name}{self._after}: {message}")

    def _add_scalar(self, name: str, dtype: DType, lanes: int) -> None:
        if name in self._scalars:
            raise self._fail(f"the name {name} is defined twice in one scope")
        self._scalars[name] = (dtype, lanes)

    def _add_buffer(self, name: str, buffer: _Buffer) -> None:
        if name in self._buffers:
            raise self._fail(f"the buffer {name} is defined twice in one scope")
        self._buffers[name] = buffer

    # Statements

    def _statement(self, s: Stmt) -> None:
        for e in expressions(s):
            self._expression(e)
        check = _STATEMENTS.get(type(s))
        if check is not None:
            check(self, s)
        if isinstance(s, For):
            self._add_scalar(s.var, INDEX, 1)
        elif isinstance(s, Let):
            self._add_scalar(s.name, s.value.dtype, s.value.lanes)
        elif isinstance(s, (Alloc, Realize)):
            self._add_buffer(s.buffer, _Buffer(s.dtype, len(s.box) if isinstance(s, Realize) else None))
        outside, threads = self._inside, self._threads
        if isinstance(s, For) and s.kind is Kind.THREAD:
            self._inside = s.var
        elif isinstance(s, For) and s.kind is Kind.BLOCK:
            self._threads = s.threads or threads
        for c in children(s):
            self._statement(c)
        self._inside, self._threads = outside, threads
        if isinstance(s, For):
            del self._scalars[s.var]
        elif isinstance(s, Let):
            del self._scalars[s.name]
        elif isinstance(s, (Alloc, Realize)):
            del self._buffers[s.buffer]

    def _loop(self, s: For) -> None:
        for role, e in (("min", s.min), ("extent", s.extent), ("scratch", s.scratch)):
            if e is not None:
                self._index(e, f"the {role} of loop {s.var}")
        if _FORBIDDING.get(s.kind) in self._has:
            raise self._fail(f"loop {s.var} is still marked {s.kind.value}")
        if s.kind is Kind.THREAD and self._inside is not None and Property.THREAD_LOOPS in self._has:
            raise self._fail(f"the threads of loop {s.var} are in a loop of threads already, {self._inside}")
        is_counted = isinstance(s.extent, Const) and isinstance(s.min, Const) and s.min.value == 0
        if s.kind is Kind.THREAD and Property.THREAD_LOOPS in self._has and not is_counted:
            raise self._fail(f"the threads of loop {s.var} do not know how often it runs")
        if s.kind in WRITTEN_OUT and Property.CONSTANT_LANES in self._has and not isinstance(s.extent, Const):
            raise self._fail(f"loop {s.var} is marked {s.kind.value}, but its extent {s.extent} is not constant")
        if Property.CLEAN in self._has and isinstance(s.extent, Const) and int(s.extent.value) <= 0:
            raise self._fail(f"loop {s.var} never runs")

    def _evaluate(self, s: Evaluate) -> None:
        spec = spec_of(s.value.name)
        if self._inside is not None and spec.group is not ThreadGroup.WARP:
            raise self._fail(f"in loop {self._inside} a thread may wait for others that have left it")
        if not self._threads and Property.THREAD_LOOPS in self._has:
            raise self._fail(f"{s.value} is where there are no threads of a block")
        if spec.result is not None:
            raise self._fail(f"{s.value} is computed, and not used")

    def _let(self, s: Let) -> None:
        if Property.CLEAN in self._has and isinstance(s.value, Const):
            raise self._fail(f"{s.name} is a name for {s.value}")

    def _branch(self, s: If) -> None:
        if not s.condition.dtype.is_bool or s.condition.lanes != 1:
            raise self._fail(f"the condition {s.condition} is {_type(s.condition)}, not a scalar bool")
        if Property.CLEAN in self._has and isinstance(s.condition, Const):
            raise self._fail("a branch is always, or never, taken")

    def _store(self, s: Store) -> None:
        want = self._buffer(s.buffer)
        if not want.writable:
            raise self._fail(f"{s.buffer}, an input, is stored into")
        if s.value.dtype != want.dtype:
            raise self._fail(f"a {s.value.dtype} is stored into {s.buffer}, which holds {want.dtype}: {s.value}")
        lanes = self._lanes(s.buffer, s.indices)
        self._places(s.buffer, s.indices)
        if s.value.lanes != lanes:
            raise self._fail(f"{s.value.lanes} lanes are stored through {lanes} lanes of index into {s.buffer}")
        self._mask(s.mask, lanes)

    def _realize(self, s: Realize) -> None:
        if Property.FLAT in self._has:
            raise self._fail(f"{s.buffer} is realized but not allocated")
        for low, extent in s.box:
            self._index(low, f"a bound of {s.buffer}")
            self._index(extent, f"an extent of {s.buffer}")
        if s.layout is not None:
            self._layout(s, s.layout)

    def _layout(self, s: Realize, layout: Layout) -> None:
        """Check that a layout has digits for every dim of the box, and that different digits count different
        threads."""
        if Property.OF_THREADS in self._has and any(layout.dims):
            raise self._fail(f"the threads still share {s.buffer} {layout}")
        digits = sorted((d for k in range(len(layout.dims)) for _, d in layout.steps(k)), key=lambda d: d.weight)
        meet = any(d.weight * d.size > above.weight for d, above in pairwise(digits))
        if meet or len(layout.dims) != len(s.box):
            raise self._fail(f"{s.buffer} cannot be shared {layout}")

    def _alloc(self, s: Alloc) -> None:
        if Property.BOXES in self._has:
            raise self._fail(f"{s.buffer} is flat memory already")
        self._index(s.size, f"the size of {s.buffer}")
        if s.offset is not None:
            self._index(s.offset, f"the offset of {s.buffer}")
        if s.memory in (Memory.STACK, Memory.REGISTER) and not isinstance(s.size, Const):
            raise self._fail(f"{s.buffer} lives in {s.memory.value} but its size {s.size} is not constant")
        if Property.FLAT in self._has and s.memory is Memory.AUTO:
            raise self._fail(f"nobody has decided where {s.buffer} lives")

    def _prefetch(self, s: Prefetch) -> None:
        self._lanes(s.buffer, s.indices)
        self._places(s.buffer, s.indices)

    def _launch(self, s: Launch) -> None:
        kernel = self._kernels.get(s.kernel)
        if kernel is None:
            raise self._fail(f"{s.kernel} is launched but is no kernel, or one that comes later")
        self._index(s.extent, f"the extent of {s.kernel}")
        if s.scratch is not None:
            self._index(s.scratch, f"the scratch memory of {s.kernel}")
        given = [*map(_type, s.scalars), *(self._buffer(name).dtype for name in s.buffers)]
        wanted = [*map(_type, kernel.scalars), *(b.dtype for b in kernel.buffers)]
        if given != wanted:
            raise self._fail(f"{s.kernel} captures {_list(wanted)} but is given {_list(given)}")

    # Expressions

    def _expression(self, e: Expr) -> None:
        uses = self._uses.get(id(e))
        if uses is None:
            self._alive.append(e)
            uses = each_once(e, self._uses, self._free_uses)
        if not self._scalars.items() >= uses.variables or not all(map(self._is_possible, uses.accesses)):
            raise self._misuse(e)
        if uses.vector is not None and Property.SCALAR in self._has:
            raise self._fail(f"{uses.vector} has {uses.vector.lanes} lanes")

    def _is_possible(self, access: tuple[str, DType, int, DType | None]) -> bool:
        name, dtype, rank, index = access
        buffer = self._buffers.get(name)
        if buffer is None or buffer.dtype != dtype:
            return False
        return index == INDEX and rank == 1 if self._is_flat else rank == buffer.rank or not self._has_boxes

    def _misuse(self, root: Expr) -> InternalError:
        """The error for the first use in an expression that the scope does not allow."""
        for e in walk(root):
            if isinstance(e, Var) and self._scalars.get(e.name) != (e.dtype, e.lanes):
                return self._misused(e)
            if isinstance(e, Load):
                buffer = self._buffer(e.buffer)
                if e.dtype != buffer.dtype:
                    return self._fail(f"{e.buffer} holds {buffer.dtype} but is loaded as {e.dtype}")
                self._places(e.buffer, e.indices)
        raise self._fail(f"nothing of {root} is where it may not be")

    def _misused(self, v: Var) -> InternalError:
        if v.name not in self._scalars:
            return self._fail(f"{v.name} is not defined where it is used")
        dtype, lanes = self._scalars[v.name]
        return self._fail(f"{v.name} is {dtype} with {lanes} lanes but is used as {_type(v)}")

    def _free_uses(self, e: Expr) -> _FreeUses:
        """Check the types and lanes of an expression whose parts have been checked, and return what it uses."""
        check = _EXPRESSIONS.get(type(e))
        if check is None:
            raise self._fail(f"{type(e).__name__} does not belong in loop IR: {e}")
        check(self, e)
        if isinstance(e, Var):
            return self._of_variable(e)
        known, uses = self._uses, _NOTHING
        for c in e.operands:
            below = known[id(c)]
            if below is not uses and below is not _NOTHING:
                uses = below if uses is _NOTHING else _together(uses, below)
        if isinstance(e, Load) and (access := _access(e)) not in uses.accesses:
            uses = _FreeUses(uses.variables, uses.accesses | {access}, uses.vector)
        return _FreeUses(uses.variables, uses.accesses, e) if e.lanes > 1 else uses

    def _of_variable(self, e: Var) -> _FreeUses:
        """The uses of a variable: one object per variable, so that most expressions can share the object of a part."""
        variable = e.name, (e.dtype, e.lanes)
        uses = self._variables.get(variable)
        if uses is None:
            uses = self._variables[variable] = _FreeUses(frozenset([variable]), vector=e if e.lanes > 1 else None)
        return uses

    def _operation(self, e: Op) -> None:
        if len(e.args) != OPS.get(e.op, -1):
            raise self._fail(f"{e.op} does not take {len(e.args)} arguments")
        typed = e.args[1:] if e.op == "select" else e.args
        dtype, lanes = typed[0].dtype, e.lanes
        for a in e.args:
            if a.lanes != lanes:
                raise self._fail(f"lanes differ in {e}: {', '.join(_type(a) for a in e.args)}")
        for a in typed:
            if a.dtype is not dtype and a.dtype != dtype:
                raise self._fail(f"types differ in {e}: {', '.join(_type(a) for a in e.args)}")
        if e.dtype != result_type(e.op, e.args):
            raise self._fail(f"{e} is marked {e.dtype} but gives {result_type(e.op, e.args)}")
        self._domain(e, dtype)

    def _domain(self, e: Op, t: DType) -> None:
        if e.op == "select" and not e.args[0].dtype.is_bool:
            raise self._fail(f"the condition of {e} is {e.args[0].dtype}")
        if (e.op in FLOATING and not t.is_float) or (e.op in BITWISE and t.is_float):
            raise self._fail(f"{e.op} of {t}: {e}")

    def _load(self, e: Load) -> None:
        # A buffer without dims has one element for all lanes.
        if self._lanes(e.buffer, e.indices) != e.lanes and e.indices:
            raise self._fail(f"{e} is marked {_type(e)} but its index has other lanes")
        self._mask(e.mask, e.lanes)

    def _ramp(self, e: Ramp) -> None:
        if e.base.lanes != 1 or e.stride.lanes != 1 or e.base.dtype != e.dtype or e.stride.dtype != e.dtype:
            raise self._fail(f"base and stride of {e} must be {e.dtype} scalars")

    def _broadcast(self, e: Broadcast) -> None:
        if e.value.lanes != 1 or e.value.dtype != e.dtype:
            raise self._fail(f"{e} broadcasts {_type(e.value)} to {_type(e)}")

    def _shuffle(self, e: Shuffle) -> None:
        total = sum(v.lanes for v in e.vectors)
        if len(e.order) != e.lanes or any(not 0 <= i < total for i in e.order):
            raise self._fail(f"{e} picks lanes outside 0..{total}")
        if any(v.dtype != e.dtype for v in e.vectors):
            raise self._fail(f"types differ in {e}")

    def _instruction(self, e: Instruction) -> None:
        spec = find_spec(e.name)
        if spec is None or len(spec.operands) != len(e.args):
            raise self._fail(f"no instruction {e.name} takes {len(e.args)} operands")
        for operand, arg in zip(spec.operands, e.args, strict=True):
            if operand.layout is None and operand.matrix is None and not isinstance(arg, Const):
                raise self._fail(f"{operand.name} of {e} is not a number")
            if operand.layout is not None:
                self._operand(e, operand, arg)
            if (spec.from_memory or operand.matrix is not None) and not isinstance(arg, Load):
                raise self._fail(f"{operand.name} of {e} is not loaded from memory")
            if operand.matrix is not None and (arg.dtype, arg.lanes) != (operand.dtype, CORE):
                raise self._fail(f"{operand.name} of {e} does not begin with a row of a core matrix, but {_type(arg)}")
        if spec.result is not None:
            self._operand(e, spec.result, e)

    def _operand(self, of: Instruction, operand: Operand, e: Expr) -> None:
        """Check the type and the lanes of an operand or of the result."""
        registers = 1 if operand.layout is None else operand.layout.count(Unit.REGISTER)
        lanes = registers if registers > 1 else 1 if operand.dtype is INDEX else of.lanes
        wanted = operand.dtype or of.dtype
        if (e.dtype, e.lanes) != (wanted, lanes):
            raise self._fail(f"{operand.name} of {of} is {_type(e)}, not {_name(wanted, lanes)}")

    def _conversion(self, e: Cast | Bits) -> None:
        if e.value.lanes != e.lanes:
            raise self._fail(f"lanes differ in {e}")
        if isinstance(e, Bits) and e.value.dtype.bits != e.dtype.bits:
            raise self._fail(f"sizes differ in {e}")

    # Shared pieces

    def _buffer(self, name: str) -> _Buffer:
        if name not in self._buffers:
            raise self._fail(f"the buffer {name} does not exist where it is used")
        return self._buffers[name]

    def _lanes(self, buffer: str, indices: tuple[Expr, ...]) -> int:
        """The number of lanes of an access with these indices."""
        for i in indices:
            if not i.dtype.is_int:
                raise self._fail(f"the index {i} of {buffer} is {i.dtype}")
        lanes = max((i.lanes for i in indices), default=1)
        if any(i.lanes not in (1, lanes) for i in indices):
            raise self._fail(f"lanes differ among the indices of {buffer}")
        return lanes

    def _places(self, buffer: str, indices: tuple[Expr, ...]) -> None:
        """Check that an access has as many indices as its buffer requires."""
        rank = self._buffer(buffer).rank
        if self._is_flat:
            if len(indices) != 1:
                raise self._fail(f"{buffer} is accessed with {len(indices)} indices after flattening")
            if indices[0].dtype != INDEX:
                raise self._fail(f"the index {indices[0]} of {buffer} is {indices[0].dtype}")
        elif self._has_boxes and len(indices) != rank:
            raise self._fail(f"{buffer} is accessed with {len(indices)} indices, and has {rank} dims")

    def _mask(self, mask: Expr | None, lanes: int) -> None:
        if mask is not None and (not mask.dtype.is_bool or mask.lanes != lanes):
            raise self._fail(f"the mask {mask} is {_type(mask)} for {lanes} lanes")

    def _index(self, e: Expr, role: str) -> None:
        if e.dtype != INDEX or e.lanes != 1:
            raise self._fail(f"{role} is {_type(e)}, not an index scalar: {e}")


def _access(e: Load) -> tuple[str, DType, int, DType | None]:
    """The requirements of a load on its buffer: the name, the type, the number of indices, and the type of the first
    index."""
    return e.buffer, e.dtype, len(e.indices), e.indices[0].dtype if e.indices else None


def _together(a: _FreeUses, b: _FreeUses) -> _FreeUses:
    """The union of two uses. If one of them contains the other, it is returned itself."""
    vector = b.vector if a.vector is None else a.vector
    variables, accesses = union((a.variables, b.variables)), union((a.accesses, b.accesses))
    for whole in (a, b):
        if whole.variables is variables and whole.accesses is accesses and whole.vector is vector:
            return whole
    return _FreeUses(variables, accesses, vector)


def _type(e: Expr) -> str:
    return _name(e.dtype, e.lanes)


def _name(t: DType, lanes: int) -> str:
    return str(t) if lanes == 1 else f"{t}x{lanes}"


def _list(types: Iterable[object]) -> str:
    return ", ".join(map(str, types)) or "nothing"


_STATEMENTS: dict[type[Stmt], Callable[[Verifier, Any], None]] = {
    For: Verifier._loop,
    Evaluate: Verifier._evaluate,
    Let: Verifier._let,
    If: Verifier._branch,
    Store: Verifier._store,
    Realize: Verifier._realize,
    Alloc: Verifier._alloc,
    Prefetch: Verifier._prefetch,
    Launch: Verifier._launch,
}
_EXPRESSIONS: dict[type[Expr], Callable[[Verifier, Any], None]] = {
    Const: lambda v, e: None,
    Var: lambda v, e: None,  # bound by the scope alone
    Op: Verifier._operation,
    Cast: Verifier._conversion,
    Bits: Verifier._conversion,
    Load: Verifier._load,
    Ramp: Verifier._ramp,
    Broadcast: Verifier._broadcast,
    Shuffle: Verifier._shuffle,
    Instruction: Verifier._instruction,
}
