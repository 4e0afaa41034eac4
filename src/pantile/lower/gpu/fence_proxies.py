"""Fence proxies: make what threads write to shared memory visible to the matrix instructions of warpgroups.

before:  barrier                           after:  fence_proxy
         let c.value = wgmma(f[...], ...)          barrier
                                                   let c.value = wgmma(f[...], ...)

Tensor cores read matrices through their own proxy (async), which need not see writes through the threads' proxy
(generic). Each thread executes a fence after its writes, so behind the barrier all threads have done so.
"""

from __future__ import annotations

from dataclasses import replace

from ...expr.nodes import Instruction
from ...ir.instructions import FENCE_PROXY, Effect, effect_of, spec_of
from ...ir.nodes import Kernel, Program, Stmt
from ...ir.visit import block, expressions, transform, walk


def fence_proxies(program: Program) -> Program:
    """Put fences before the barriers of kernels that contain matrix instructions of warpgroups."""
    return replace(program, kernels=tuple([_fenced(k) if _reads_matrices(k.body) else k for k in program.kernels]))


def _fenced(kernel: Kernel) -> Kernel:
    def change(s: Stmt) -> Stmt | None:
        return block(FENCE_PROXY, s) if effect_of(s) is Effect.BARRIER else None

    return replace(kernel, body=transform(kernel.body, change))


def _reads_matrices(body: Stmt) -> bool:
    """Whether the statement contains matrix instructions of warpgroups. Each is the value of a let or a store, not an
    operand of another expression."""
    values = (e for s in walk(body) for e in expressions(s))
    return any(isinstance(e, Instruction) and spec_of(e.name).effect is Effect.READ_MATRICES for e in values)
