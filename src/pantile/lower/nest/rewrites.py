"""Queries about the splits and fuses of a nest: which loops a dim or a loop is rewritten into."""

from __future__ import annotations

from collections.abc import Iterable

from ...schedule.plan import Fuse, Nest, Split


def parts(nest: Nest, fuse: Fuse) -> list[str]:
    """The loops that a fused loop is finally rewritten into, in nest order."""
    made = {fuse.fused}
    for old, new in _later(nest, fuse):
        made = made - old | new if old & made else made
    return [loop.name for loop in nest.loops if loop.name in made]


def names(nest: Nest, split: Split, name: str) -> set[str]:
    """All names that a name made by `split` is split and fused into, including intermediate ones."""
    made = {name}
    for old, new in _later(nest, split):
        made = made | new if old & made else made
    return made


def lets(nest: Nest, split: Split) -> set[tuple[str, str, int | None]]:
    """The lets of a split and of all loops that its two loops are rewritten into, each as loop, word and number (see
    `of_loop`)."""
    made = names(nest, split, split.outer) | names(nest, split, split.inner)
    result: set[tuple[str, str, int | None]] = {(split.inner, "lo", None), (split.inner, "at", None)}
    for r in _after(nest, split):
        if isinstance(r, Split) and r.old in made:
            result |= {(r.inner, "lo", None), (r.inner, "at", None)}
        if isinstance(r, Fuse) and made & {r.outer, r.inner}:
            result |= {(r.fused, part, times_before(nest, r)) for part in ("row", "column")}
    return result


def times_before(nest: Nest, f: Fuse) -> int | None:
    """How many times loops were fused into a loop of this name before, or None if never."""
    earlier = nest.rewrites[: next(k for k, r in enumerate(nest.rewrites) if r is f)]
    return sum(isinstance(r, Fuse) and r.fused == f.fused for r in earlier) or None


def _after(nest: Nest, rewrite: Split | Fuse) -> tuple[Split | Fuse, ...]:
    """The rewrites after `rewrite`."""
    return nest.rewrites[next(k for k, r in enumerate(nest.rewrites) if r is rewrite) + 1 :]


def _later(nest: Nest, rewrite: Split | Fuse) -> list[tuple[set[str], set[str]]]:
    """The rewrites after `rewrite`, each as the sets of removed and of added names."""
    return [
        ({r.old}, {r.outer, r.inner}) if isinstance(r, Split) else ({r.outer, r.inner}, {r.fused})
        for r in _after(nest, rewrite)
    ]


def stays(nest: Nest, split: Split) -> bool:
    """Whether the outer loop of a split remains in the end. A later rewrite may reuse its name."""
    return not any(split.outer in old for old, _ in _later(nest, split))


def made_of(nest: Nest, dims: Iterable[str]) -> dict[str, set[str]]:
    """Map each dim to the loops that it was split and fused into."""
    dims_of = {d: {d} for d in dims}  # current loop -> dims that it stems from
    for r in nest.rewrites:
        if isinstance(r, Split):
            dims_of[r.outer] = dims_of[r.inner] = dims_of.pop(r.old)
        else:
            dims_of[r.fused] = dims_of.pop(r.outer) | dims_of.pop(r.inner)
    return {d: {loop for loop, stems in dims_of.items() if d in stems} for d in dims}
