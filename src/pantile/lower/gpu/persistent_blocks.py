"""Persistent blocks: launch as many blocks as the GPU holds at once, each of which loops over tiles.

before:  launch f.0(h, f) h times                   after:  launch f.0(h, f, h, min(h, resident)) min(h, resident) times
         kernel f.0(...) for y from 0:                      kernel f.0(..., tiles, blocks) for first from 0:
             f[y] = ...                                         for turn in 0..(tiles - first + blocks - 1)//blocks:
                                                                    let y = first + turn*blocks
                                                                    f[y] = ...

`resident` is a scalar whose value the host obtains at launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...expr.build import minimum
from ...expr.nodes import const, var
from ...expr.types import INDEX
from ...ir.nodes import For, Kernel, Launch, Let, Program, Stmt
from ...ir.visit import map_children
from ...target.kinds import Kind
from ..names import of_loop

_ZERO = const(0, INDEX)


def persistent_blocks(program: Program) -> Program:
    """Make the blocks of persistent kernels loop over tiles."""
    resident = {k.name: k.resident for k in program.kernels if k.resident is not None}
    kernels = tuple([k if k.resident is None else _looping(k) for k in program.kernels])
    return replace(program, kernels=kernels, body=_launching(program.body, resident)) if resident else program


def _looping(k: Kernel) -> Kernel:
    first, turn, tiles, blocks = (var(of_loop(k.var, word)) for word in ("first", "turn", "tiles", "blocks"))
    turns = (tiles - first + blocks - 1) // blocks
    body = For(turn.name, _ZERO, turns, Kind.SERIAL, Let(k.var, first + turn * blocks, k.body))
    return replace(k, var=first.name, scalars=(*k.scalars, tiles, blocks), body=body)


def _launching(s: Stmt, resident: Mapping[str, str]) -> Stmt:
    if not isinstance(s, Launch) or s.kernel not in resident:
        return map_children(s, lambda c: _launching(c, resident))
    blocks = minimum(s.extent, var(resident[s.kernel]))
    return replace(s, scalars=(*s.scalars, s.extent, blocks), extent=blocks)
