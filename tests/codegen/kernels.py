"""Small hand-built programs, compiled and run through ctypes on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pantile.codegen.compile import compile_object
from pantile.codegen.emit import emit
from pantile.codegen.engine import LoadedCode, load
from pantile.expr.build import ramp
from pantile.expr.nodes import Const, Expr, Load, const
from pantile.expr.types import INDEX, DType, dtype
from pantile.ir.nodes import BufferArg, For, Program, ScalarArg, Stmt
from pantile.ir.verify import FOR_CODE, FOR_KERNELS, verify
from pantile.lower.outline import outline
from pantile.runtime.threads import pool
from pantile.target import Target, host
from pantile.target.kinds import Kind

Array = np.ndarray[Any, np.dtype[Any]]


def i64(value: int) -> Const:
    return const(value, INDEX)


def dense(t: DType | str, buffer: str, base: Expr, lanes: int = 1) -> Load:
    """buffer[base .. base+lanes)."""
    return Load(dtype(t), lanes, buffer, (ramp(base, 1, lanes),))


def loop(name: str, extent: Expr | int, body: Stmt, kind: Kind = Kind.SERIAL, scratch: Expr | None = None) -> For:
    extent = i64(extent) if isinstance(extent, int) else extent
    return For(name, i64(0), extent, kind, body, scratch)


def argument(name: str, t: DType | str, ndim: int = 1, *, writable: bool = False) -> BufferArg:
    return BufferArg(name, dtype(t), ndim, writable, (None,) * (ndim - 1) + (1,) * (ndim > 0))


def emitted(program: Program, target: Target | None = None, *, strict: bool = False, debug: bool = False) -> str:
    """LLVM text of a program, whose parallel loops become kernels."""
    kernels = outline(program, share=not debug)
    verify(kernels, FOR_CODE)
    return emit(kernels, target or host(), strict=strict, debug=debug)


class Kernel:
    """A program ready to be called."""

    def __init__(self, program: Program, *, strict: bool = False, debug: bool = False) -> None:
        verify(program, FOR_KERNELS)
        self.program = program
        text = emitted(program, strict=strict, debug=debug)
        self.code: LoadedCode = load([compile_object(text, host())], program.name, pool().symbols)
        self.function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(self.code.address)
        self.report = np.zeros(8, np.int64)

    def __call__(self, arrays: Mapping[str, Array], scalars: Mapping[str, Any] | None = None, threads: int = 2) -> int:
        """Run on arrays by buffer name; the kernel's return code."""
        slots: list[int] = []
        for b in self.program.buffers:
            a = arrays[b.name]
            slots += [a.ctypes.data, *a.shape, *(s // a.itemsize for s in a.strides)]
        slots += [_slot(a, (scalars or {})[a.name]) for a in self.program.scalars]
        slots.append(self.report.ctypes.data)
        memory = np.array(slots, np.int64)
        return int(self.function(memory.ctypes.data, threads))


def _slot(a: ScalarArg, value: Any) -> int:
    memory = np.zeros(8, np.uint8)
    raw = np.array([value], a.dtype.numpy).view(np.uint8)
    memory[: raw.size] = raw
    return int(memory.view(np.int64)[0])


def run(
    body: Stmt, arrays: Mapping[str, Array], outputs: Sequence[str], *, debug: bool = False, **types: DType | str
) -> int:
    """Compile and run a body whose buffers are the arrays; `types` where NumPy's type does not tell (bfloat16)."""
    buffers = tuple(argument(n, types.get(n, dtype(a.dtype)), a.ndim, writable=n in outputs) for n, a in arrays.items())
    return Kernel(Program("kernel", buffers, (), body), debug=debug)(arrays)
