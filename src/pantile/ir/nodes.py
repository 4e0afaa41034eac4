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
         | Evaluate(instruction)                 in a kernel of blocks: an instruction for what it does, a barrier
         | Launch(kernel, scalars, buffers, extent)     after outlining, instead of parallel loops: run a kernel

A Program has a body and, once parallel loops are outlined, kernels:

    kernel = Kernel(name, var, min, scalars, buffers, body)  body for each var from min on; it captures all else

On a GPU each var is a block of `threads` threads, all of which run the body: what is not in a thread loop they all do
alike. A thread loop counts from 0 to a constant, and thread t takes its iterations t, t + threads, t + 2*threads, ...
Buffers in shared memory belong to the block, those inside of thread loops to each warp; registers, allocated inside or
outside of thread loops, to each thread.

Names are unique within a program. Loop variables and let names are index `Var`s unless their value has another type.
After `flatten`, every Load and Store has one index, counted in elements from the buffer's base pointer.
"""

from __future__ import annotations

from enum import Enum

from ..expr.nodes import Const, Expr, Instruction, Var, node
from ..expr.types import DType
from ..target.kinds import CacheOperator, Kind, Memory
from ..target.layout import Digit, Layout


class Manner(Enum):
    """How something is stored.

    NONTEMPORAL: past all caches. ATOMIC: the value is the element combined with something else; other threads may
    combine with the same element at the same time, and no update is lost. ASYNCHRONOUS: a copy to shared memory that is
    complete once its thread has waited for it.
    """

    PLAIN = "plain"
    NONTEMPORAL = "nontemporal"
    ATOMIC = "atomic"
    ASYNCHRONOUS = "asynchronous"


@node()
class Stmt:
    """Base of all statements."""


@node()
class For(Stmt):
    """A loop: for var in min .. min+extent."""

    var: str
    min: Expr
    extent: Expr
    kind: Kind
    body: Stmt
    scratch: Expr | None = None  # parallel and block loops, once planned: bytes of arena per thread or block
    threads: int = 0  # block loops, once planned: threads per block
    cached: tuple[tuple[str, CacheOperator], ...] = ()  # block loops, once planned: how loads of buffers are cached
    persistent: bool = False  # block loops, once planned: whether there are only as many blocks as the GPU holds
    digit: Digit | None = None  # loops over lanes: the digit of a lane's number that they count


@node()
class Let(Stmt):
    """Binds name = value in body."""

    name: str
    value: Expr
    body: Stmt


@node()
class Block(Stmt):
    """Statements in sequence."""

    stmts: tuple[Stmt, ...]


@node()
class If(Stmt):
    """A branch on a scalar condition."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@node()
class Store(Stmt):
    """Stores buffer[indices] = value, in the lanes where mask holds."""

    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None = None
    manner: Manner = Manner.PLAIN


@node()
class Produce(Stmt):
    """Marks that body computes stage."""

    stage: str
    body: Stmt


@node()
class Realize(Stmt):
    """A multi-dimensional buffer of the box exists during body."""

    buffer: str
    dtype: DType
    box: tuple[tuple[Expr, Expr], ...]
    memory: Memory
    body: Stmt
    slots: int = 1  # number of boxes in multi-buffered memory, which the first side counts
    layout: Layout | None = None  # which thread holds which element, where not every thread has a box of its own


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
    slots: int = 1  # equal parts of multi-buffered memory: an access is at slot % slots * (size//slots) + ...
    apart: int = 0  # SHARED inside of a thread loop: bytes from the memory of a warp to that of the next one


@node()
class Prefetch(Stmt):
    """Prefetches the cache line of buffer[indices]."""

    buffer: str
    indices: tuple[Expr, ...]


@node()
class Evaluate(Stmt):
    """Executes an instruction for what it does; it computes nothing."""

    value: Instruction


@node()
class Launch(Stmt):
    """Runs a kernel for `extent` values of its variable, in any order or in parallel, and waits for all of them."""

    kernel: str
    scalars: tuple[Expr, ...]  # arguments for the scalars that the kernel captures, in its order
    buffers: tuple[str, ...]
    extent: Expr
    scratch: Expr | None = None  # bytes of arena per thread


Strides = tuple[int | None, ...]  # per axis, in elements; None for any


@node()
class BufferArg:
    """An input or output array of the kernel: pointer, and per dim extent and stride (in elements) as scalars."""

    name: str
    dtype: DType
    ndim: int
    writable: bool
    known_strides: Strides  # small constant strides that code relies on; those scalars are never read
    alignment: int = 1  # bytes that its address is a multiple of, as code relies on

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
    """A buffer that a kernel accesses and that is allocated outside of it."""

    name: str
    dtype: DType
    cached: CacheOperator = CacheOperator.ALL  # by loads, where the kernel stores nothing there


@node()
class Kernel:
    """The body of a parallel loop as a function of what it captures; names are those of the first of its loops."""

    name: str
    var: str
    min: Const | Var  # first value of the variable: 0, or one of the scalars
    scalars: tuple[Var, ...]
    buffers: tuple[CapturedBuffer, ...]
    body: Stmt
    threads: int = 0  # threads per block, on a GPU
    shared: int = 0  # bytes of shared memory per block
    resident: str | None = None  # of persistent blocks: the scalar of the host that says how many the GPU holds


@node()
class Program:
    """Arguments, a body and the kernels that it launches, each after those that it launches itself."""

    name: str
    buffers: tuple[BufferArg, ...]
    scalars: tuple[ScalarArg, ...]
    body: Stmt
    kernels: tuple[Kernel, ...] = ()
    multiples: tuple[tuple[str, int], ...] = ()  # scalars, such as strides of arguments, and what they are multiples of
