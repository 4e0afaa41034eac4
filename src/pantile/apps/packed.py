"""Products of matrices in plain formulas: schedules that copy and pack their factors, as `blocked` tells.

    out[i, j] = pt.sum(a[i, r.k] * b[r.k, j], over=r)

What `blocked.product` writes into a formula is made by directives here: `copy_in` makes the rows and the panels,
`panels` gives these their layout, and `copy_out` computes an output that is nothing but sums in panels, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import pantile as pt
from pantile.target import Target

from .app import Expert
from .blocked import LINE, blocks, tiles

# A factor of a product: its name, what its dims are called there, and which of the reads it is if there are two.
Factor = tuple[str | int, ...]


@dataclass(frozen=True)
class Factors:
    """Stage `result` is made of sums of left[i, k] * right[k, j]; alone: of nothing else."""

    result: str
    left: Factor = ("a", "i", "k")
    right: Factor = ("b", "k", "j")
    alone: bool = False


def packed(
    name: str, result: str, target: Target, cores: int, bits: int = 32, diagonal: bool = False
) -> list[pt.StageSchedule]:
    """Those of a product and its copied factors, the right one and the product in panels a cache line wide."""
    lanes = LINE // bits
    first = [
        pt.on(name).panels("j", "p", "lane", lanes).reorder("p", "i").reorder_storage("p", "i"),
        pt.on(f"{name}_rows").reorder_storage("i", "k"),
        pt.on(f"{name}_panels").panels("j", "p", "lane", lanes).reorder_storage("p", "k", "lane"),
    ]
    then = blocks(name, result, target, cores, bits=bits, diagonal=diagonal)
    return [pt.StageSchedule(a.name, a.directives + b.directives) for a, b in zip(first, then, strict=True)]


def multiplied(task: str = "io", diagonal: bool = False, **products: Factors) -> Expert:
    """An expert schedule: each product in blocks of the stage that is made of it, and copies of its factors."""

    def expert(target: Target, cores: int) -> pt.Schedule:
        stages = {p.result: tiles(p.result, target, cores, task=task) for p in products.values()}
        for name, p in products.items():
            if p.alone:
                stages[p.result] = stages[p.result].copy_out(name)
            for (source, *dims), part in ((p.left, "rows"), (p.right, "panels")):
                chain = stages.get(str(source), pt.on(str(source)))
                stages[str(source)] = chain.copy_in(name, f"{name}_{part}", *dims)
            stages |= {s.name: s for s in packed(name, p.result, target, cores, diagonal=diagonal)}
        return pt.Schedule(*stages.values())

    return expert
