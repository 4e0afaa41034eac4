"""Updates that run in the loops of their own pure definition: `.update(0).compute_with("f", "x")` for f itself.

    for x: f[x] = 0                           for x:
    for x:                             ->         f[x] = 0
        for r: f[x] += img[x + r]                 for r: f[x] += img[x + r]

An iteration computes its elements from scratch, so it may run twice: the last block of a split shifts inwards, as in a
pure definition. It must not run twice in different threads, since one thread would add to what another has not
finished. A fully unrolled reduction stores only its results, so it may run twice even then.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from ..target.kinds import AT_ONCE, Kind
from .directives import Directive
from .draft import StageDraft
from .nest import NestDraft
from .plan import Fuse, Split
from .updates import is_small_reduction, keeps_to


def share_own_loops(drafts: Mapping[str, StageDraft]) -> None:
    """Check that updates can share the requested loops, and split these as the pure definition does."""
    placed = [d for s in drafts.values() for d in (s.compute, s.store) if d is not None and len(d.args) == 2]
    hosts = {(d.args[0], d.args[1]) for d in placed}
    for s in drafts.values():
        s.is_written_out = 1 in s.within and _is_written_out(s, hosts)
        for k, d in s.within.items():
            _check_before(s, k, d)
            _share(s, s.nests[k], d)


def _check_before(s: StageDraft, k: int, d: Directive) -> None:
    for j in range(1, k):
        if j not in s.within or s.within[j].args != d.args:
            raise s.no(
                d,
                f"update {j - 1} comes before it, and does not run in loop {d.args[1]}",
                f"share the same loops by .update({j - 1}), too",
            )


def _is_written_out(s: StageDraft, hosts: Container[tuple[object, object]]) -> bool:
    """Whether the only update differs from the pure definition only by unrolled loops over its small domain, and no
    other stage is computed in loops that only the update has."""
    if not is_small_reduction(s.stage):
        return False
    pure, update = (nest.finished() for nest in s.nests)
    domain = {r.name for r in s.stage.updates[0].domain}
    names = [x.name for x in update.loops]
    own = names[names.index(str(s.within[1].args[1])) + 1 :] if s.within[1].args[1] in names else names
    if any((s.stage.name, name) in hosts for name in own):
        return False
    over = [x for x in update.loops if x.name in domain]
    rest = tuple(x for x in update.loops if x.name not in domain)
    unrolled = len(over) == len(domain) and all(x.kind is Kind.UNROLL for x in over)
    return unrolled and rest == pure.loops and _all_equal_up_to_tails(update.rewrites, pure.rewrites)


def _share(s: StageDraft, nest: NestDraft, d: Directive) -> None:
    pure, loop = s.nests[0], str(d.args[1])
    depth = pure.find(d, loop) + 1
    nest.find(d, loop)
    mine, theirs = ([(x.name, x.kind) for x in n.loops[:depth]] for n in (nest, pure))
    shared = {name for name, _ in theirs}
    if mine != theirs or not _all_equal_up_to_tails(_rewrites_of(nest, shared), _rewrites_of(pure, shared)):
        show = [", ".join(f"{k} {n}" for n, k in loops) for loops in (mine, theirs)]
        raise s.no(
            d,
            f"the loops down to {loop} differ: {show[0]} in {nest.title}, {show[1]} in {pure.title}",
            "split, order and mark them alike in both",
        )
    vector = next((name for name, kind in mine if kind is Kind.VECTOR), None)
    if vector is not None:
        raise s.no(d, f"loop {vector} is a vector, and what lies inside is computed at once", "share a loop outside it")
    _check_own_elements(s, nest, d, shared)
    if not s.is_written_out:
        threads = {name for name, kind in mine if kind in AT_ONCE}
        pure.rewrites[:] = [_guard_tail(r) if threads & {*vars(r).values()} else r for r in pure.rewrites]
    tails = iter(_rewrites_of(pure, shared))
    nest.rewrites[:] = [next(tails) if r in _rewrites_of(nest, shared) else r for r in nest.rewrites]


def _guard_tail(r: Split | Fuse) -> Split | Fuse:
    return replace(r, tail="guard") if isinstance(r, Split) else r


def _rewrites_of(nest: NestDraft, shared: set[str]) -> list[Split | Fuse]:
    """The rewrites that made the shared loops."""
    return [r for r in nest.rewrites if shared & set(vars(r).values())]


def _all_equal_up_to_tails(mine: Sequence[Split | Fuse], theirs: Sequence[Split | Fuse]) -> bool:
    return len(mine) == len(theirs) and all(map(_equal_up_to_tails, mine, theirs))


def _equal_up_to_tails(a: Split | Fuse, b: Split | Fuse) -> bool:
    """Whether two rewrites are equal except for the tails of splits."""
    return isinstance(a, Split) and isinstance(b, Split) and replace(a, tail=b.tail) == b or a == b


def _check_own_elements(s: StageDraft, nest: NestDraft, d: Directive, shared: set[str]) -> None:
    """Refuse an update whose iterations read elements of the stage that other iterations compute."""
    for dim in _dims(nest, shared):
        if not keeps_to(s.stage, s.stage.definitions[nest.index], [dim]):
            raise s.no(
                d,
                f"{nest.title} reads {s.stage.name} at other places along {dim}, which other iterations make",
                f"share loops outside those over {dim}, or none",
            )


def _dims(nest: NestDraft, shared: set[str]) -> list[str]:
    """The dims that the shared loops run over."""
    stems = {d: {d} for d in nest.stage.dims}
    for r in nest.rewrites:
        if isinstance(r, Split):
            stems[r.outer] = stems[r.inner] = stems.pop(r.old, set())
        else:
            stems[r.fused] = stems.pop(r.outer, set()) | stems.pop(r.inner, set())
    dims = set().union(*(stems.get(n, set()) for n in shared))
    return [d for d in nest.stage.dims if d in dims]
