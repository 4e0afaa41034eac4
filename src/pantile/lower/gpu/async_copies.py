"""Asynchronous copies: prefetches into shared memory do not pass through a thread's registers.

before:  f[(k + 1)%2*64 + p] = g[...]     # asynchronous, if g is memory that the kernel does not change
after:   f[(k + 1)%2*64 + p] = g[...]     # asynchronous, or not

A thread continues as soon as it has issued such a copy. The data is visible to this thread once it has waited for the
copy, and to the other threads behind the next barrier; `software_pipeline` has inserted both. Only plain copies from
memory that the kernel does not change can be asynchronous; all other stores are ordinary ones.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ...expr.nodes import Expr, Load
from ...ir.instructions import Effect, effect_of
from ...ir.nodes import Block, Kernel, Manner, Program, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, transform, walk


def async_copies(program: Program) -> Program:
    """Keep asynchronous copies where the hardware supports them, and make all others ordinary stores."""
    return replace(program, kernels=tuple(_in_kernel(k) for k in program.kernels))


def _in_kernel(kernel: Kernel) -> Kernel:
    if not any(effect_of(s) is Effect.WAIT_GROUP for s in walk(kernel.body)):
        return kernel
    stored = {s.buffer for s in walk(kernel.body) if isinstance(s, Store)}
    constant = {b.name for b in kernel.buffers} - stored

    def change(s: Stmt) -> Stmt | None:
        if isinstance(s, Store) and s.manner is Manner.ASYNCHRONOUS and not _is_copied(s.value, constant):
            return replace(s, manner=Manner.PLAIN)
        return None

    body = transform(kernel.body, change)
    if not any(isinstance(s, Store) and s.manner is Manner.ASYNCHRONOUS for s in walk(body)):
        body = _without_waiting(body)
    return replace(kernel, body=body)


def _is_copied(value: Expr, constant: Collection[str]) -> bool:
    return isinstance(value, Load) and value.mask is None and value.buffer in constant


def _without_waiting(s: Stmt) -> Stmt:
    if effect_of(s) in (Effect.COMMIT_GROUP, Effect.WAIT_GROUP):
        return Block(())
    inside = tuple([_without_waiting(c) for c in children(s)])
    return block(*inside) if isinstance(s, Block) else rebuild(s, expressions(s), inside)
