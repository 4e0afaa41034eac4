"""The loop IR: small, typed, frozen.

    stmt = For(var, min, extent, kind, body)     serial | parallel | vector | unroll, on GPUs block | thread | ...
         | Let(name, value, body)                a scalar (or vector) by name
         | Block(stmts)
         | If(condition, then, otherwise)        scalar condition
         | Store(buffer, indices, value, mask)   a vector value stores its lanes; atomic: see `Manner`
         | Produce(stage, body)                  marks, for readers, that body computes `stage`; has no semantics
         | Realize(buffer, dtype, box, body)     a buffer lives during body; box = (min, extent) per storage dim
         | Alloc(buffer, dtype, size, memory, body)     after flattening: `size` elements, 64-byte aligned
         | Prefetch(buffer, indices)
         | Evaluate(instruction)                 in a kernel of blocks: an instruction with an effect, like a barrier
         | Launch(kernel, scalars, buffers, extent)     after outlining, replaces a parallel loop: run a kernel

A Program has a body and, once parallel loops are outlined, kernels:

    kernel = Kernel(name, var, min, scalars, buffers, body)  runs body for each var from min on; captures all else

On a GPU, each value of var is a block of `threads` threads. All of them run the body, and do the same outside of thread
loops. A thread loop counts from 0 to a constant, and thread t takes its iterations t, t + threads, t + 2*threads, ...
Each block has its own buffers in shared memory; inside of a thread loop, each warp has its own. Each thread has its own
registers, whether they are allocated inside or outside of thread loops.

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
    """How a value is stored.

    NONTEMPORAL: bypassing all caches. ATOMIC: the value is the element combined with another value; several threads may
    update an element concurrently, and no update is lost. ASYNCHRONOUS: a copy to shared memory that is complete once
    its thread has waited for it.
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
    scratch: Expr | None = None  # parallel and block loops, once planned: arena bytes per thread or block
    threads: int = 0  # block loops, once planned: threads per block
    cached: tuple[tuple[str, CacheOperator], ...] = ()  # block loops, once planned: how loads of buffers are cached
    persistent: bool = False  # block loops, once planned: whether to start only as many blocks as are resident at once
    digit: Digit | None = None  # loops over lanes: the digit of the lane's number that they count


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
    """Stores buffer[indices] = value, in the lanes where the mask is set."""

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
    """A multi-dimensional buffer over the box is live during body."""

    buffer: str
    dtype: DType
    box: tuple[tuple[Expr, Expr], ...]
    memory: Memory
    body: Stmt
    slots: int = 1  # number of boxes in multi-buffered memory, which the first dim of the box counts
    layout: Layout | None = None  # which thread holds which element; None if each thread has a box of its own


@node()
class Alloc(Stmt):
    """A flat buffer of `size` elements is live during body (SCRATCH: at byte `offset` of the innermost parallel loop's
    arena; SHARED: at byte `offset` of the block's arena; STACK, REGISTER: `size` is constant; HEAP: taken from the
    runtime's arena and returned to it)."""

    buffer: str
    dtype: DType
    size: Expr
    memory: Memory
    offset: Expr | None
    body: Stmt
    slots: int = 1  # equal parts of multi-buffered memory: an access is at slot % slots * (size//slots) + ...
    apart: int = 0  # SHARED inside of a thread loop: bytes from one warp's memory to the next warp's


@node()
class Prefetch(Stmt):
    """Prefetches the cache line of buffer[indices]."""

    buffer: str
    indices: tuple[Expr, ...]


@node()
class Evaluate(Stmt):
    """Executes an instruction for its effect; it has no result."""

    value: Instruction


@node()
class Launch(Stmt):
    """Runs a kernel for `extent` values of its variable, in any order or in parallel, and waits for all of them."""

    kernel: str
    scalars: tuple[Expr, ...]  # arguments for the scalars that the kernel captures, in the kernel's order
    buffers: tuple[str, ...]
    extent: Expr
    scratch: Expr | None = None  # bytes of arena per thread


Strides = tuple[int | None, ...]  # per axis, in elements; None for any stride


@node()
class BufferArg:
    """An input or output array of the program: a pointer, and for each dim its extent and stride (in elements) as
    scalars."""

    name: str
    dtype: DType
    ndim: int
    writable: bool
    known_strides: Strides  # small constant strides that code relies on; the code never reads these as scalars
    alignment: int = 1  # of its address, in bytes, which code relies on

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
    """A buffer that a kernel accesses but does not allocate."""

    name: str
    dtype: DType
    cached: CacheOperator = CacheOperator.ALL  # how loads are cached, if the kernel does not store to the buffer


@node()
class Kernel:
    """The body of a parallel loop as a function of the scalars and buffers that it captures. If equal loops share the
    kernel, its names are those of the first of them."""

    name: str
    var: str
    min: Const | Var  # first value of the variable: 0, or one of the scalars
    scalars: tuple[Var, ...]
    buffers: tuple[CapturedBuffer, ...]
    body: Stmt
    threads: int = 0  # threads per block, on a GPU
    shared: int = 0  # bytes of shared memory per block
    resident: str | None = None  # for persistent blocks: the host scalar with the number of resident blocks


@node()
class Program:
    """Arguments, a body, and the kernels that it launches. A kernel comes after the kernels that it launches itself."""

    name: str
    buffers: tuple[BufferArg, ...]
    scalars: tuple[ScalarArg, ...]
    body: Stmt
    kernels: tuple[Kernel, ...] = ()
    multiples: tuple[tuple[str, int], ...] = ()  # scalars, such as strides, and a number that each is a multiple of
