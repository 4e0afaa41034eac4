"""Small programs with kernels of blocks, built by hand as lowering makes them, and what they become."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pantile.codegen.compile import assembly
from pantile.codegen.emit import emit
from pantile.expr.build import ramp
from pantile.expr.nodes import Const, Expr, Load, Var, const, var
from pantile.expr.types import FLOAT32, INDEX, DType
from pantile.ir.nodes import Alloc, BufferArg, CapturedBuffer, For, Kernel, Launch, Program, ScalarArg, Stmt, Store
from pantile.ir.verify import FOR_CODE, Property, verify
from pantile.target import GPUS, Target
from pantile.target.kinds import Kind, Memory

SM_90 = GPUS["sm_90"]
STRIDE = "img.stride.0"
b, p, w = var("b"), var("p"), var("w")


def i(value: int) -> Const:
    return const(value, INDEX)


def threads(name: str, extent: int, body: Stmt) -> For:
    return For(name, i(0), i(extent), Kind.THREAD, body)


def serial(name: str, extent: Expr | int, body: Stmt) -> For:
    return For(name, i(0), i(extent) if isinstance(extent, int) else extent, Kind.SERIAL, body)


def load(buffer: str, index: Expr, t: DType = FLOAT32, lanes: int = 1) -> Load:
    return Load(t, lanes, buffer, (ramp(index, 1, lanes),))


def store(buffer: str, index: Expr, value: Expr) -> Store:
    return Store(buffer, (ramp(index, 1, value.lanes),), value)


def shared(name: str, size: int, byte: int, body: Stmt, t: DType = FLOAT32) -> Alloc:
    return Alloc(name, t, i(size), Memory.SHARED, i(byte), body)


def registers(name: str, size: int, body: Stmt, t: DType = FLOAT32) -> Alloc:
    return Alloc(name, t, i(size), Memory.REGISTER, None, body)


def program(
    body: Stmt, block: int = 256, bytes_: int = 0, buffers: Mapping[str, DType] | None = None, *,
    scalars: Sequence[tuple[Var, Expr]] = ((w, var(STRIDE)),), multiples: Sequence[tuple[str, int]] = (),
    alignment: int = 16, params: Sequence[ScalarArg] = (), blocks: Expr | None = None,
) -> Program:  # fmt: skip
    """A program that launches one kernel, of block `b`, on arrays of two axes; the last one is its output."""
    buffers = buffers or {"img": FLOAT32, "out": FLOAT32}
    captured = tuple(CapturedBuffer(n, t) for n, t in buffers.items())
    kernel = Kernel("out.y.0", "b", i(0), tuple(v for v, _ in scalars), captured, body, block, bytes_)
    extent = var("img.shape.0") if blocks is None else blocks
    launch = Launch(kernel.name, tuple(e for _, e in scalars), tuple(buffers), extent)
    arguments = tuple(
        BufferArg(n, t, 2, k == len(buffers) - 1, (None, 1), alignment) for k, (n, t) in enumerate(buffers.items())
    )
    made = Program("out", arguments, tuple(params), launch, (kernel,), tuple(multiples))
    verify(made, FOR_CODE | {Property.THREAD_LOOPS, Property.NO_BLOCK_LOOPS})
    return made


def ptx(made: Program, target: Target = SM_90, *, strict: bool = False) -> str:
    return assembly(emit(made, target, strict=strict), target)


def loops(text: str) -> list[str]:
    """The code of each loop: from a label to the branch back to it."""
    found = []
    for label in re.findall(r"^(\$L__BB\d+_\d+):", text, re.MULTILINE):
        begin = text.index(f"\n{label}:")
        back = [m.end() for m in re.finditer(rf"bra(\.uni)? \t?{re.escape(label)};", text) if m.start() > begin]
        found += [text[begin : max(back)]] if back else []
    return found
