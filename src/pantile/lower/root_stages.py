"""Extract the loops of some stages at root. They become the same kernels as in the whole program.

before:  realize f: produce f: ...        after, for g alone: realize f: produce g: ...
         let g.y.max = ...
         produce g: ... f[...] ...
         produce out: ...

Lets and memory that these stages do not use are removed, since a long pipeline has some for each stage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..expr.visit import loaded, names
from ..ir.nodes import Block, Let, Prefetch, Produce, Realize, Stmt, Store
from ..ir.visit import children, expressions, rebuild, walk

_NOTHING = Block(())


def of_root_stages(body: Stmt, asked: Collection[str]) -> Stmt:
    """The loops of the requested stages at root, inside of the lets and allocations that they need."""
    return _of_stages(body, asked)[0]


def root_stages(body: Stmt) -> Iterator[Produce]:
    """Yield the loops of each stage at root."""
    if isinstance(body, Produce):
        yield body
    else:
        for part in children(body):
            yield from root_stages(part)


def _of_stages(s: Stmt, asked: Collection[str]) -> tuple[Stmt, set[str]]:
    """Return the statement without the loops of other stages, and the names and buffers that it uses."""
    if isinstance(s, Produce):
        return (s, set[str]().union(*map(_used, walk(s)))) if s.stage in asked else (_NOTHING, set())
    parts = [_of_stages(c, asked) for c in children(s)]
    used = set[str]().union(*(of_part for _, of_part in parts))
    left = tuple([part for part, _ in parts])
    if all(part is _NOTHING for part in left):
        return _NOTHING, set()
    if isinstance(s, Block):
        left = tuple([part for part in left if part is not _NOTHING])
        return (left[0] if len(left) == 1 else Block(left)), used
    defined = s.name if isinstance(s, Let) else s.buffer if isinstance(s, Realize) else None
    if defined is not None and defined not in used:
        return left[0], used
    return rebuild(s, expressions(s), left), used | _used(s)


def _used(s: Stmt) -> set[str]:
    """The names and buffers that a statement itself uses, apart from the statements inside."""
    stored = {s.buffer} if isinstance(s, (Store, Prefetch)) else set[str]()
    return stored.union(*(names(e) | loaded(e) for e in expressions(s)))
