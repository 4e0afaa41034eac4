"""The loop IR: small, typed, frozen.

    stmt = For(var, min, extent, kind, body)     serial | parallel | vector | unroll, of GPUs block | thread; from min
         | Let(name, value, body)                a scalar (or vector) by name
         | Block(stmts)
         | If(condition, then, otherwise)        scalar condition
         | Store(buffer, indices, value, mask)   a vector value stores its lanes; atomic: see `Manner`
         | Produce(stage, body)                  readable marker: body computes `stage`; no meaning of its own
         | Realize(buffer, dtype, box, body)     a buffer lives during body; box = (min, extent) per storage dim
         | Alloc(buffer, dtype, size, memory, body)     after flattening: `size` elements, 64-byte aligned
         | Prefetch(buffer, indices)
         | Barrier()                             in a kernel of blocks: all threads of the block wait for each other
         | Commit() | Wait(groups)               there: of copies to shared memory that go on meanwhile
         | Launch(kernel, scalars, buffers, extent)     after outlining, instead of parallel loops: run a kernel

A Program has a body and, once parallel loops are outlined, kernels:

    kernel = Kernel(name, var, min, scalars, buffers, body)     body for each var from min on; it knows nothing else

On a GPU each var is a block of `threads` threads, all of which run the body: what is not in a thread loop they all do
alike. A thread loop counts from 0 to a constant, and thread t takes its iterations t, t + threads, t + 2*threads, ...
Buffers in shared memory belong to the block; registers, allocated inside or outside of thread loops, to each thread.

Names are unique within a program. Loop variables and let names are index `Var`s unless their value has another type.
After `flatten`, every Load and Store has one index, counted in elements from the buffer's base pointer.
"""

from __future__ import annotations

from enum import Enum

from ..expr.nodes import Const, Expr, Var, node
from ..expr.types import DType
from ..target.kinds import Kind, Memory


class Manner(Enum):
    """How something is stored. NONTEMPORAL: past all caches. ATOMIC: its value is what is there, combined with
    something else; other threads may combine the same place with theirs at the same time, and none is lost.
    ASYNCHRONOUS: a copy to shared memory that is there once its thread has waited for it."""

    PLAIN = "plain"
    NONTEMPORAL = "nontemporal"
    ATOMIC = "atomic"
    ASYNCHRONOUS = "asynchronous"


@node()
class Stmt:
    """Base of all statements."""


@node()
class For(Stmt):
    """for var in min .. min+extent."""

    var: str
    min: Expr
    extent: Expr
    kind: Kind
    body: Stmt
    scratch: Expr | None = None  # parallel, block, once planned: bytes of arena each thread or block needs inside
    threads: int = 0  # block, once planned: how many a block has


@node()
class Let(Stmt):
    """name = value, visible in body."""

    name: str
    value: Expr
    body: Stmt


@node()
class Block(Stmt):
    """One after another."""

    stmts: tuple[Stmt, ...]


@node()
class If(Stmt):
    """Branch on a scalar."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@node()
class Store(Stmt):
    """buffer[indices] = value, in the lanes where mask holds."""

    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None = None
    manner: Manner = Manner.PLAIN


@node()
class Produce(Stmt):
    """body computes stage."""

    stage: str
    body: Stmt


@node()
class Realize(Stmt):
    """A buffer of the box exists during body."""

    buffer: str
    dtype: DType
    box: tuple[tuple[Expr, Expr], ...]
    memory: Memory
    body: Stmt
    slots: int = 1  # where several: how many boxes there are, and the first side counts them


@node()
class Alloc(Stmt):
    """A flat buffer of `size` elements exists during body (SCRATCH: at byte `offset` of the innermost parallel
    loop's arena; SHARED: at byte `offset` of the block's; STACK, REGISTER: `size` is constant; HEAP: taken from the
    runtime's arena and given back)."""

    buffer: str
    dtype: DType
    size: Expr
    memory: Memory
    offset: Expr | None
    body: Stmt
    slots: int = 1  # equal parts, of which an access has one by number: slot % slots * (size//slots) + ...


@node()
class Prefetch(Stmt):
    """Ask for the cache line of buffer[indices]."""

    buffer: str
    indices: tuple[Expr, ...]


@node()
class Barrier(Stmt):
    """All threads of a block wait here for each other, and then see what the others have stored."""


@node()
class Commit(Stmt):
    """The asynchronous copies that a thread has begun since the last one are a group."""


@node()
class Wait(Stmt):
    """A thread waits here until no more than so many of its groups, the last ones, are on their way."""

    groups: int


@node()
class Launch(Stmt):
    """Run a kernel for `extent` values of its variable, in any order or at once, and wait for all of them."""

    kernel: str
    scalars: tuple[Expr, ...]  # what the kernel captures, in its order
    buffers: tuple[str, ...]
    extent: Expr
    scratch: Expr | None = None  # bytes of arena each thread needs inside


Strides = tuple[int | None, ...]  # per axis, in elements; None is any


@node()
class BufferArg:
    """An input or output array of the kernel: pointer, and per dim extent and stride (in elements) as scalars."""

    name: str
    dtype: DType
    ndim: int
    writable: bool
    known_strides: Strides  # small constants, where code relies on them; those scalars are never read
    alignment: int = 1  # bytes that its address is a multiple of, where code relies on it

    def extent(self, axis: int) -> str:
        return f"{self.name}.shape.{axis}"

    def stride(self, axis: int) -> str:
        return f"{self.name}.stride.{axis}"


@node()
class ScalarArg:
    """A scalar argument (a Param)."""

    name: str
    dtype: DType


@node()
class CapturedBuffer:
    """A buffer that a kernel accesses and that lives outside of it."""

    name: str
    dtype: DType


@node()
class Kernel:
    """What was the body of a parallel loop, as a function of all that it uses from around it.

    Launches of equal loops share a kernel; its names are those of the first of these loops.
    """

    name: str
    var: str
    min: Const | Var  # 0, or one of the scalars: the variable counts from there
    scalars: tuple[Var, ...]
    buffers: tuple[CapturedBuffer, ...]
    body: Stmt
    threads: int = 0  # of a block, on a GPU
    shared: int = 0  # bytes of memory of a block


@node()
class Program:
    """Arguments and a body; the kernels that it launches, each after those that it launches itself."""

    name: str
    buffers: tuple[BufferArg, ...]
    scalars: tuple[ScalarArg, ...]
    body: Stmt
    kernels: tuple[Kernel, ...] = ()
    multiples: tuple[tuple[str, int], ...] = ()  # scalars, strides of arguments among them, that are multiples
