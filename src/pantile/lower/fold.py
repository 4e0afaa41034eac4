"""Fold storage: a buffer whose stage slides keeps only the rows in use, circularly.

before:  realize f: [y.min - 1 .. y.max + 1]          after:  realize f: [0 .. 3]
         f[y + 1, x] = ...                                    f[(y + 1) % 3, x] = ...
"""

from __future__ import annotations

from collections.abc import Mapping

from ..expr.nodes import Const, Expr, Load, const
from ..expr.types import INT64
from ..expr.visit import transform
from ..ir import visit as ir
from ..ir.nodes import Realize, Stmt, Store

Folds = Mapping[str, Mapping[int, int]]


def fold_storage(body: Stmt, folds: Folds) -> Stmt:
    """Make the given dims of the given buffers circular, with that many rows each."""
    wanted = {b: dict(dims) for b, dims in folds.items()}
    for s in ir.walk(body):
        if isinstance(s, Realize):  # nothing to gain where the whole extent is as small
            for k, n in list(wanted.get(s.buffer, {}).items()):
                extent = s.box[k][1]
                if isinstance(extent, Const) and int(extent.value) <= n:
                    del wanted[s.buffer][k]
    memo: dict[int, Expr] = {}

    def access(e: Expr) -> Expr | None:
        if isinstance(e, Load) and wanted.get(e.buffer):
            return Load(e.dtype, e.lanes, e.buffer, _circular(e.indices, wanted[e.buffer]), e.mask)
        return None

    def change(s: Stmt) -> Stmt | None:
        if isinstance(s, Store) and wanted.get(s.buffer):
            return Store(s.buffer, _circular(s.indices, wanted[s.buffer]), s.value, s.mask, s.nontemporal)
        if isinstance(s, Realize) and wanted.get(s.buffer):
            box = tuple((const(0, INT64), const(wanted[s.buffer][k], INT64)) if k in wanted[s.buffer] else side
                        for k, side in enumerate(s.box))  # fmt: skip
            return Realize(s.buffer, s.dtype, box, s.memory, s.body)
        return None

    body = ir.map_exprs(body, lambda e: transform(e, access, memo))
    return ir.transform(body, change)


def _circular(indices: tuple[Expr, ...], dims: Mapping[int, int]) -> tuple[Expr, ...]:
    return tuple(i % dims[k] if k in dims else i for k, i in enumerate(indices))
