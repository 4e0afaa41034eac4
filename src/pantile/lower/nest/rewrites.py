"""Queries about the splits and fuses of a nest: which loops a dim becomes, and what a loop is rewritten into."""

from __future__ import annotations

from collections.abc import Iterable

from ...schedule.plan import Fuse, Nest, Split
from ...target.kinds import WRITTEN_OUT


def parts(nest: Nest, rewrite: Split | Fuse, name: str) -> list[str]:
    """The loops that a name made by `rewrite` finally becomes, in nest order."""
    made = {name}
    for old, new in _later(nest, rewrite):
        made = made - old | new if old & made else made
    return [loop.name for loop in nest.loops if loop.name in made]


def names(nest: Nest, split: Split, name: str) -> set[str]:
    """All names that a name made by `split` is split and fused into, intermediate ones included."""
    made = {name}
    for old, new in _later(nest, split):
        made = made | new if old & made else made
    return made


def lets(nest: Nest, split: Split) -> set[tuple[str, str, int | None]]:
    """The lets of a split, and of all that its two loops are rewritten into: loop, word and number (see `of_loop`)."""
    made = names(nest, split, split.outer) | names(nest, split, split.inner)
    place = next(k for k, r in enumerate(nest.rewrites) if r is split)
    result: set[tuple[str, str, int | None]] = {(split.inner, "lo", None), (split.inner, "at", None)}
    for r in nest.rewrites[place + 1 :]:
        if isinstance(r, Split) and r.old in made:
            result |= {(r.inner, "lo", None), (r.inner, "at", None)}
        if isinstance(r, Fuse) and made & {r.outer, r.inner}:
            result |= {(r.fused, part, times_before(nest, r)) for part in ("row", "column")}
    return result


def times_before(nest: Nest, f: Fuse) -> int | None:
    """How often loops were fused into one of this name before; None for never."""
    earlier = nest.rewrites[: next(k for k, r in enumerate(nest.rewrites) if r is f)]
    return sum(isinstance(r, Fuse) and r.fused == f.fused for r in earlier) or None


def _later(nest: Nest, rewrite: Split | Fuse) -> list[tuple[set[str], set[str]]]:
    """The rewrites after `rewrite`, as removed and added names."""
    place = next(k for k, r in enumerate(nest.rewrites) if r is rewrite)
    return [
        ({r.old}, {r.outer, r.inner}) if isinstance(r, Split) else ({r.outer, r.inner}, {r.fused})
        for r in nest.rewrites[place + 1 :]
    ]


def stays(nest: Nest, rewrite: Split | Fuse, name: str) -> bool:
    """Whether the loop made by `rewrite` exists in the end; a later rewrite may reuse its name."""
    return not any(name in old for old, _ in _later(nest, rewrite))


def made_of(nest: Nest, dims: Iterable[str]) -> dict[str, set[str]]:
    """Dim -> the loops that it was split and fused into."""
    dims_of = {d: {d} for d in dims}  # current loop -> dims that it stems from
    for r in nest.rewrites:
        if isinstance(r, Split):
            dims_of[r.outer] = dims_of[r.inner] = dims_of.pop(r.old)
        else:
            dims_of[r.fused] = dims_of.pop(r.outer) | dims_of.pop(r.inner)
    return {d: {loop for loop, stems in dims_of.items() if d in stems} for d in dims}


def must_be_constant(nest: Nest, split: Split) -> bool:
    """Whether a vector or unrolled loop runs over the inner part, or over blocks of it."""
    name = split.inner
    place = next(k for k, r in enumerate(nest.rewrites) if r is split)
    for r in nest.rewrites[place + 1 :]:
        if isinstance(r, Split) and r.old == name:
            name = r.outer
        if isinstance(r, Fuse) and name in (r.outer, r.inner):
            name = r.fused
    return next(loop.kind for loop in nest.loops if loop.name == name) in WRITTEN_OUT


def is_fused(nest: Nest, s: Split) -> bool:
    """Whether a loop of the split is fused with another, so that the last block cannot be treated separately."""
    after = nest.rewrites[next(k for k, r in enumerate(nest.rewrites) if r is s) + 1 :]
    made = names(nest, s, s.outer) | names(nest, s, s.inner)
    return any(isinstance(r, Fuse) and made & {r.outer, r.inner} for r in after)


def inside_out(nest: Nest, s: Split) -> bool:
    """Whether some inner loop of the split is outside some outer loop of it, or fused with one."""
    order = [loop.name for loop in nest.loops]
    outer, inner = parts(nest, s, s.outer), parts(nest, s, s.inner)
    return min(order.index(n) for n in inner) <= max(order.index(n) for n in outer)
