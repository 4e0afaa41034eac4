"""Finds buffers that may share memory: scratch or shared buffers of one arena with disjoint lifetimes."""

from __future__ import annotations

from collections.abc import Mapping

from ..dataclass import dataclass
from ..expr.nodes import Const
from ..target.kinds import Kind, Memory
from .nodes import Alloc, For, Program, Stmt
from .visit import children


@dataclass(frozen=True)
class _Piece:
    """A scratch or shared buffer: its arena, its byte range, and the buffers that are live around it."""

    arena: int
    begin: int | None
    end: int | None
    around: tuple[str, ...]


def overlaps(program: Program) -> dict[str, list[str]]:
    """Map each scratch buffer to the buffers that may share memory with it, if there are any.

    Each kernel has an arena, and so has each parallel loop that is not outlined yet.
    """
    pieces: dict[str, list[_Piece]] = {}
    for body in (program.body, *(k.body for k in program.kernels)):
        _collect(body, id(body), (), pieces)
    within: dict[int, list[str]] = {}
    for name, buffers in pieces.items():
        for arena in {p.arena for p in buffers}:
            within.setdefault(arena, []).append(name)
    near = {n: dict.fromkeys(o for p in buffers for o in within[p.arena]) for n, buffers in pieces.items()}
    sharing = {n: [o for o in near[n] if o != n and _may_share(n, o, pieces)] for n in pieces}
    return {n: others for n, others in sharing.items() if others}


def _collect(s: Stmt, arena: int, around: tuple[str, ...], pieces: dict[str, list[_Piece]]) -> None:
    if isinstance(s, Alloc):
        if s.memory in (Memory.SCRATCH, Memory.SHARED):
            pieces.setdefault(s.buffer, []).append(_Piece(arena, *_extent(s), around))
        around = (*around, s.buffer)
    if isinstance(s, For) and s.kind in (Kind.PARALLEL, Kind.BLOCK):
        arena = id(s)
    for c in children(s):
        _collect(c, arena, around, pieces)


def _extent(s: Alloc) -> tuple[int | None, int | None]:
    """The first byte and the exclusive end; None for one that is not constant."""
    begin = 0 if s.offset is None else int(s.offset.value) if isinstance(s.offset, Const) else None
    if begin is None or not isinstance(s.size, Const):
        return begin, None
    return begin, begin + int(s.size.value) * s.dtype.bytes


def _may_share(a: str, b: str, pieces: Mapping[str, list[_Piece]]) -> bool:
    return any(_overlap(a, p, b, q) for p in pieces[a] for q in pieces[b])


def _overlap(a: str, p: _Piece, b: str, q: _Piece) -> bool:
    if p.arena != q.arena or a in q.around or b in p.around:
        return False
    if p.begin is None or p.end is None or q.begin is None or q.end is None:
        return True
    return p.begin < q.end and q.begin < p.end
