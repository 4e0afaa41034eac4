"""Metadata that tells LLVM which buffers cannot overlap: one alias scope per buffer.

All buffers are apart, except scratch buffers of one arena: those whose lifetimes are disjoint may share memory,
and moving a store to one before a load of the other would then be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..expr.nodes import Const
from ..ir.nodes import Alloc, For, Kind, Memory, Program, Stmt
from ..ir.visit import children

# Numbers of metadata nodes; those below belong to `emit`.
_DOMAIN = "!4"
_FIRST = 5


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
    """One scope per buffer, and the list of the scopes that it cannot overlap."""
    pieces: dict[str, list[_Piece]] = {}
    _collect(program.body, 0, (), pieces)
    scope = {name: f"!{_FIRST + 3 * k}" for k, name in enumerate(names)}
    notes = {n: f", !alias.scope !{_FIRST + 3 * k + 1}, !noalias !{_FIRST + 3 * k + 2}" for k, n in enumerate(names)}
    apart: dict[str, frozenset[str]] = {}
    lines = [f"{_DOMAIN} = distinct !{{{_DOMAIN}}}"]
    for k, name in enumerate(names):
        others = [n for n in names if n != name and not _may_share(name, n, pieces)]
        lines.append(f"{scope[name]} = distinct !{{{scope[name]}, {_DOMAIN}}}")
        lines.append(f"!{_FIRST + 3 * k + 1} = !{{{scope[name]}}}")
        lines.append(f"!{_FIRST + 3 * k + 2} = !{{{', '.join(scope[n] for n in others)}}}")
        apart[notes[name]] = frozenset(notes[n] for n in others)
    return Alias(notes, apart, lines)


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


def _may_share(a: str, b: str, pieces: Mapping[str, list[_Piece]]) -> bool:
    return any(_overlap(a, p, b, q) for p in pieces.get(a, ()) for q in pieces.get(b, ()))


def _overlap(a: str, p: _Piece, b: str, q: _Piece) -> bool:
    if p.arena != q.arena or a in q.around or b in p.around:
        return False
    if p.begin is None or p.end is None or q.begin is None or q.end is None:
        return True
    return p.begin < q.end and q.begin < p.end
