"""Sums of products over one index, in blocks: what the apps that multiply matrices share.

The idea of the schedule is that of every fast BLAS. The right factor is laid out once in panels a cache line wide, each
of them contiguous. A task owns rows of the result; for one slice of the inner index at a time it copies its rows of
the left factor, so that they lie close together and stay in the L2 cache, then goes through the panels. A tile of a few
rows by a panel or two is accumulated in registers: each step of the inner index loads one vector row of a panel, from
the L1 cache, and one number from each row of the left factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pantile as pt
from pantile.target import Target

from .app import MANY_CORES

LINE = 512  # bits


@dataclass(frozen=True)
class Blocking:
    """Sizes that fit registers and caches, known by the width of vectors."""

    tile_rows: int  # with the panels, as many as leave registers for a row of each panel and a number
    panels: int  # of a tile
    tiles: int  # below each other in a block of rows
    columns: int  # of a block
    inner: int  # of a slice of the inner index
    turned: bool  # rows of the left factor lie beside each other: one register finds them all, where there are few


# Measured on two cores of a Neoverse-N1 and on sixteen with AVX-512; not measured for AVX2.
_BLOCKING = {
    128: Blocking(4, 1, 16, 1024, 512, turned=False),
    256: Blocking(6, 1, 8, 512, 256, turned=True),
    512: Blocking(12, 2, 4, 512, 256, turned=True),
}

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


def tiles(result: str, target: Target, cores: int, bits: int = 32, task: str = "io") -> pt.StageSchedule:
    """A stage made of products: blocks of rows, the loop `io`, and of columns, the loop `jo` inside it.

    The last block of columns is cut short, so that each starts with a whole panel. `task`: the loop that is parallel;
    for many cores blocks of columns are tasks, too.
    """
    b = _BLOCKING[target.vector_bits]
    stage = (
        pt.on(result)
        .split("i", "io", "ii", b.tiles * b.tile_rows)
        .split("j", "jo", "ji", b.columns, tail="guard")
        .reorder("io", "jo", "ii", "ji")
        .vectorize("ji", LINE // bits)
        .parallel(task)
    )
    return stage.parallel("jo") if cores >= MANY_CORES and task == "io" else stage


def blocks(
    name: str, result: str, target: Target, cores: int, *, bits: int = 32, diagonal: bool = False
) -> tuple[pt.StageSchedule, ...]:
    """The stages of a product: tiles of registers inside slices of the inner index, for each block of `result`.

    The factors are rearranged in squares, so that transposed ones are turned in registers. `diagonal`: tiles that a
    condition on rows and columns cuts through have code of their own, and are one panel wide.
    """
    b = _BLOCKING[target.vector_bits]
    lanes, side = LINE // bits, 128 // bits
    sums = (
        pt.on(name)
        .compute_at(result, "jo")
        .vectorize("lane", lanes)
        .update()
        .split("r.k", "kb", "k", b.inner)
        .split("k", "k", "step", 4)
        .split("i", "it", "row", b.tile_rows)
    )
    if b.panels > 1 and not diagonal:
        sums = sums.unroll("p", b.panels).reorder("kb", "p", "it", "k", "step", "row", "p_u", "lane")
    else:
        sums = sums.reorder("kb", "p", "it", "k", "step", "row", "lane")
    sums = sums.vectorize("lane", lanes).unroll("row").unroll("step")
    rows = pt.on(f"{name}_rows").compute_at(name, "kb")
    if b.turned:
        rows = rows.reorder_storage("k", "i").unroll("k", side).vectorize("i", lanes).reorder("k", "i", "k_u", "i_v")
    else:
        rows = rows.unroll("i", side).vectorize("k", lanes).reorder("i", "k", "i_u", "k_v")
    return (
        sums.partition("it", "always") if diagonal else sums,
        rows,
        pt.on(f"{name}_panels")
        .compute_root()
        .split("p", "pb", "pi", 4 if cores >= MANY_CORES else 8)
        .unroll("k", side)
        .reorder("pb", "k", "pi", "k_u", "lane")
        .vectorize("lane", lanes)
        .parallel("pb"),
    )
