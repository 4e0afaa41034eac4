"""Metadata that tells LLVM which buffers cannot overlap.

All buffers are apart, except scratch buffers of one arena: those whose lifetimes are disjoint may share memory,
and moving a store to one before a load of the other would then be wrong.

Buffers are numbered, all that are linked by sharing alike. For each binary digit there is a domain with two scopes: a
buffer's accesses are in the scopes of its digits, and not in the opposite ones, so two buffers of different numbers are
apart by the first digit that differs. LLVM goes through these lists for every two accesses that it compares; they grow
with the logarithm of the number of buffers, where a scope per buffer would make lists of all others. Only buffers of
the same number have scopes of their own as well, in one more domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..dataclass import dataclass
from ..expr.nodes import Const
from ..ir.nodes import Alloc, For, Program, Stmt
from ..ir.visit import children
from ..target.kinds import Kind, Memory

_FIRST = 6  # number of a metadata node; those below belong to `emit`


@dataclass(frozen=True)
class _Piece:
    """A scratch buffer: its arena and place, and the buffers alive around it."""

    arena: int
    begin: int | None
    end: int | None
    around: tuple[str, ...]


@dataclass(frozen=True)
class Alias:
    """Per buffer what follows its loads and stores; for each such note those of the buffers apart; metadata lines."""

    notes: Mapping[str, str]
    apart: Mapping[str, frozenset[str]]
    lines: list[str]


def alias_metadata(program: Program, names: tuple[str, ...]) -> Alias:
    """The scopes that each buffer is in, and those that it cannot overlap."""
    pieces: dict[str, list[_Piece]] = {}
    _collect(program.body, 0, (), pieces)
    sharing = _sharing(names, pieces)
    groups = _linked(sharing)
    nodes = _Nodes([])
    digits = [nodes.scopes(2) for _ in range(max([1, *groups.values()]).bit_length())]
    mates = {g: [n for n in names if groups[n] == g] for g in set(groups.values())}
    own = {n: scope for g in mates.values() if len(g) > 1 for n, scope in zip(g, nodes.scopes(len(g)), strict=True)}
    notes: dict[str, str] = {}
    for name in names:
        bits = [groups[name] >> k & 1 for k in range(len(digits))]
        mine = [pair[bit] for pair, bit in zip(digits, bits, strict=True)] + ([own[name]] if name in own else [])
        others = [pair[1 - bit] for pair, bit in zip(digits, bits, strict=True)]
        others += [own[n] for n in mates[groups[name]] if n != name and n not in sharing[name]]
        notes[name] = f", !alias.scope {nodes.list(mine)}, !noalias {nodes.list(others)}"
    every = frozenset(notes.values())
    apart = {notes[n]: every - {notes[o] for o in (n, *sharing[n])} for n in names}
    return Alias(notes, apart, nodes.lines)


@dataclass(frozen=True)
class _Nodes:
    """Metadata, a line for each node."""

    lines: list[str]

    def _add(self, node: Callable[[str], str]) -> str:
        name = f"!{_FIRST + len(self.lines)}"
        self.lines.append(f"{name} = {node(name)}")
        return name

    def scopes(self, count: int) -> list[str]:
        """Scopes of a new domain."""
        domain = self._add(lambda own: f"distinct !{{{own}}}")
        return [self._add(lambda own: f"distinct !{{{own}, {domain}}}") for _ in range(count)]

    def list(self, scopes: Iterable[str]) -> str:
        return self._add(lambda _: f"!{{{', '.join(scopes)}}}")


def _linked(sharing: Mapping[str, list[str]]) -> dict[str, int]:
    """A number for each buffer: the same for those that share memory, or share it with some that do."""
    found: dict[str, int] = {}
    count = 0
    for name in sharing:
        pending = [] if name in found else [name]
        count += len(pending)
        while pending:
            n = pending.pop()
            if n not in found:
                found[n] = count - 1
                pending += sharing[n]
    return found


def _collect(s: Stmt, arena: int, around: tuple[str, ...], pieces: dict[str, list[_Piece]]) -> None:
    if isinstance(s, Alloc):
        if s.memory is Memory.SCRATCH:
            pieces.setdefault(s.buffer, []).append(_Piece(arena, *_extent(s), around))
        around = (*around, s.buffer)
    if isinstance(s, For) and s.kind is Kind.PARALLEL:
        arena = id(s)
    for c in children(s):
        _collect(c, arena, around, pieces)


def _extent(s: Alloc) -> tuple[int | None, int | None]:
    """First byte and end, where they are constant."""
    begin = 0 if s.offset is None else int(s.offset.value) if isinstance(s.offset, Const) else None
    if begin is None or not isinstance(s.size, Const):
        return begin, None
    return begin, begin + int(s.size.value) * s.dtype.bytes


def _sharing(names: Iterable[str], pieces: Mapping[str, list[_Piece]]) -> dict[str, list[str]]:
    """Per buffer those that may share memory with it, looked for among those of its arenas."""
    within: dict[int, list[str]] = {}
    for name, found in pieces.items():
        for arena in {p.arena for p in found}:
            within.setdefault(arena, []).append(name)
    near = {n: dict.fromkeys(o for p in pieces.get(n, ()) for o in within[p.arena]) for n in names}
    return {n: [o for o in near[n] if o != n and _may_share(n, o, pieces)] for n in names}


def _may_share(a: str, b: str, pieces: Mapping[str, list[_Piece]]) -> bool:
    return any(_overlap(a, p, b, q) for p in pieces[a] for q in pieces[b])


def _overlap(a: str, p: _Piece, b: str, q: _Piece) -> bool:
    if p.arena != q.arena or a in q.around or b in p.around:
        return False
    if p.begin is None or p.end is None or q.begin is None or q.end is None:
        return True
    return p.begin < q.end and q.begin < p.end
