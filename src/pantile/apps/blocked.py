"""Sums of products over one index, in blocks: what the apps that multiply matrices share.

The idea of the schedule is that of every fast BLAS. The right factor is laid out once in panels a cache line wide, each
of them contiguous. A task owns rows of the result; for one slice of the inner index at a time it copies its rows of
the left factor, so that they lie close together and stay in the L2 cache, then goes through the panels. A tile of a few
rows by one panel is accumulated in registers: each step of the inner index loads one vector row of the panel, from the
L1 cache, and one number from each row of the left factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pantile as pt

LINE = 512  # bits
_TILE_ROWS = {128: 4, 256: 6, 512: 12}  # by width of vectors: as many as leave registers for a row of the panel
_SLICE = 512  # of the inner index

Entry = Callable[..., Any]  # of coordinates


@dataclass(frozen=True)
class Product:
    """Sums over k of left[.., i, k] * right[k, j], as stages: `name` itself, and its factors rearranged."""

    name: str
    func: pt.Func
    panel: int  # columns of a panel

    def __getitem__(self, at: tuple[Any, ...]) -> Any:
        *outer, i, j = at
        place = (*outer, j // self.panel, i, j % self.panel)
        return self.func[place]


def product(
    name: str,
    left: Entry,
    right: Entry,
    inner: Any,
    *,
    outer: tuple[pt.Var, ...] = (),
    bits: int = 32,
    where: Callable[[Any, Any, Any], Any] | None = None,
) -> Product:
    """The stages of a product over 0 <= k < inner, of those i, j and k where a condition holds.

    `right` must be defined for a panel's width more columns than are wanted. `outer`: coordinates of many products by
    the same right factor. `bits`: of a number.
    """
    i, k, p, lane = pt.vars("i k p lane")
    panel = LINE // bits
    rows, panels, func = pt.Func(f"{name}_rows"), pt.Func(f"{name}_panels"), pt.Func(name)
    row, place = (*outer, i, k), (*outer, p, i, lane)
    rows[row] = left(*row)
    panels[p, k, lane] = right(k, panel * p + lane)
    r = pt.RDom((0, inner), name="r", names="k")
    domain = r if where is None else r.where(where(i, panel * p + lane, r.k))
    factor = (*outer, i, r.k)
    func[place] = pt.sum(rows[factor] * panels[p, r.k, lane], over=domain)
    return Product(name, func, panel)


def matrices(name: str, left: Any, right: pt.Input, inner: Any) -> Product:
    """The product of two matrices."""
    padded = pt.constant(right, 0, axes=(1,))
    return product(name, lambda i, k: left[i, k], lambda k, j: padded[k, j], inner)


def tiles(result: str, vector_bits: int, bits: int = 32) -> pt.StageSchedule:
    """A stage made of products: blocks of rows, the loop `io`, and of columns, the loop `jo` inside it.

    The last block of columns is cut short, so that each starts with a whole panel.
    """
    rows = 16 * _TILE_ROWS[vector_bits]
    return (
        pt.on(result)
        .split("i", "io", "ii", rows)
        .split("j", "jo", "ji", 1024, tail="guard")
        .reorder("io", "jo", "ii", "ji")
        .vectorize("ji", LINE // bits)
    )


def blocks(
    name: str, result: str, vector_bits: int, *, bits: int = 32, diagonal: bool = False
) -> tuple[pt.StageSchedule, ...]:
    """The stages of a product: tiles of registers inside slices of the inner index, for each block of `result`.

    The factors are rearranged in squares, so that transposed ones are turned in registers. `diagonal`: tiles that a
    condition on rows and columns cuts through have code of their own.
    """
    lanes, side = LINE // bits, 128 // bits
    sums = (
        pt.on(name)
        .compute_at(result, "jo")
        .vectorize("lane", lanes)
        .update()
        .split("r.k", "kb", "k", _SLICE)
        .split("k", "k", "step", 4)
        .split("i", "it", "row", _TILE_ROWS[vector_bits])
        .reorder("kb", "p", "it", "k", "step", "row", "lane")
        .vectorize("lane", lanes)
        .unroll("row")
        .unroll("step")
    )
    return (
        sums.partition("it", "always") if diagonal else sums,
        pt.on(f"{name}_rows")
        .compute_at(name, "kb")
        .unroll("i", side)
        .vectorize("k", lanes)
        .reorder("i", "k", "i_u", "k_v"),
        pt.on(f"{name}_panels")
        .compute_root()
        .split("p", "pb", "pi", 8)
        .unroll("k", side)
        .reorder("pb", "k", "pi", "k_u", "lane")
        .vectorize("lane", lanes)
        .parallel("pb"),
    )
