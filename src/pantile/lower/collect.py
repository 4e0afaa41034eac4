"""Collect: elements that clamped lanes read are copied to contiguous rows, from which vectors are loaded.

before:  f[ramp(x, 1, 8)] = img[max(ramp(x - 1, 1, 8), 0)] + img[max(ramp(x, 1, 8), 0)] + img[max(ramp(x + 1, 1, 8), 0)]

after:   realize f.lanes: [0..1, 0..10]
             for f.lanes.at in 0..10: f.lanes[0, f.lanes.at] = img[max(x + f.lanes.at - 1, 0)]
             f[ramp(x, 1, 8)] = f.lanes[0, ramp(0, 1, 8)] + f.lanes[0, ramp(1, 1, 8)] + f.lanes[0, ramp(2, 1, 8)]

Clamped lanes are not contiguous: each would be loaded as a scalar, again for each vector, in code many times as long as
that of the steady loop next to it. This pass is for the edges that `partition` leaves, after loops have been unrolled:
in consecutive statements, all vectors over the same elements share a row. Nothing changes if this is not less work, as
with only a few lanes. Rows of adjacent elements are filled by vectors, mirrored or repeated ones by vectors only in the
interior (`clamped_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count, groupby

from ..dataclass import dataclass
from ..expr.build import ramp
from ..expr.linear import linear, simplify
from ..expr.nodes import Broadcast, Const, Expr, Load, Op, Ramp, Shuffle, const, var
from ..expr.types import INDEX, DType
from ..expr.visit import Key, key, loaded, substitute, transform, walk_loads
from ..expr.visit import walk as walk_expr
from ..ir import visit as ir
from ..ir.nodes import Block, BufferArg, For, Realize, Stmt, Store
from ..target.kinds import Kind, Memory
from .clamped_rows import Clamped, Columns, FoldedRows, InteriorRange, Shifted
from .names import of_buffer, of_loop

_LEAST = 32  # least number of lanes of all vectors together
_LANE, _STEP, _ELEMENT = 4, 4, 3  # instructions per loaded lane, per iteration that fills rows, and per element in it
_VECTOR, _ENDS = 4, 8  # instructions per vector that fills rows, and for both ends of a row
_WORTH = 3  # vectors are worthwhile if filling by elements takes at least this many times the instructions
_U = var("#lane")  # the number of a lane


def collect(body: Stmt, inputs: Iterable[BufferArg]) -> Stmt:
    """Fill rows before consecutive stores that read many clamped lanes."""
    return _Collector({b.name: (const(0, INDEX), var(b.extent(b.ndim - 1)) - 1) for b in inputs if b.ndim}).visit(body)


class _Collector:
    def __init__(self, columns: Columns) -> None:
        self.columns = dict(columns)
        self.numbers = count()

    def visit(self, s: Stmt) -> Stmt:
        if isinstance(s, Store):
            return self.stores([s])
        if isinstance(s, Realize) and s.box:
            low, extent = s.box[-1]
            self.columns[s.buffer] = low, low + extent - 1
        if not isinstance(s, Block):
            return ir.map_children(s, self.visit)
        parts: list[Stmt] = []
        for is_store, together in groupby(s.stmts, lambda i: isinstance(i, Store)):
            run = list(together)
            parts += [self.stores([i for i in run if isinstance(i, Store)])] if is_store else map(self.visit, run)
        return ir.block(*parts)

    def stores(self, run: list[Store]) -> Stmt:
        """Rewrite consecutive stores to load from rows if this is less work."""
        rows_by_name = {
            of_buffer(run[0].buffer, "lanes", next(self.numbers)): rows
            for rows in _rows(run, self.columns)
            if rows.are_less_work()
        }
        result = _reading(rows_by_name, ir.block(*run)) if rows_by_name else ir.block(*run)
        for name, rows in rows_by_name.items():
            result = rows.around(name, result)
        return result


@dataclass(frozen=True)
class _Lanes:
    """A vector load from a row. Its lane 0 is the row's element number `offset`."""

    load: Load
    row: tuple[Expr, ...]  # indices as functions of the element number
    offset: int
    along: Clamped | InteriorRange | None  # the part of the row in which elements are adjacent

    @property
    def of(self) -> tuple[object, ...]:
        """The key by which loads share a row."""
        return self.load.dtype, self.load.lanes, self.load.buffer, *map(key, self.row)


@dataclass(frozen=True)
class _Rows:
    """Rows over the same range of elements, and the loads that each row serves."""

    dtype: DType
    lanes: int
    first: int
    last: int
    along: Clamped | InteriorRange | None
    rows: list[list[_Lanes]]

    @property
    def extent(self) -> int:
        return self.last - self.first + self.lanes

    def are_less_work(self) -> bool:
        lanes = self.lanes * sum(map(len, self.rows))
        return lanes >= _LEAST and self._work <= _LANE * lanes

    @property
    def _work(self) -> float:
        """The number of instructions that filling the rows takes."""
        return self._by_vectors if self._are_vectors else self._by_elements

    @property
    def _by_elements(self) -> int:
        return self.extent * (_STEP + _ELEMENT * len(self.rows))

    @property
    def _by_vectors(self) -> int:
        return len(self.rows) * (_ENDS + _VECTOR * (-(-self.extent // self.lanes)))

    @property
    def _are_vectors(self) -> bool:
        """Whether rows are filled by vectors. Both variants are then emitted, so it must be worthwhile."""
        return self.along is not None and _WORTH * self._by_vectors <= self._by_elements

    def around(self, name: str, s: Stmt) -> Stmt:
        """Fill the rows before a statement that loads from them."""
        at = var(of_loop(name, "at"))
        rows = self._by_vector(name)
        begin = rows.lanes if isinstance(rows, Shifted) else 0
        filled = [self._element(row[0], at) for row in self.rows]
        stores = [Store(name, (const(k, INDEX), at + begin), e) for k, e in enumerate(filled)]
        fill = For(at.name, const(0, INDEX), const(self.extent, INDEX), Kind.SERIAL, ir.block(*stores))
        width = self.extent if rows is None else rows.width
        body = ir.block(fill, s) if rows is None else rows.around(filled, fill, s)
        box = tuple((const(0, INDEX), const(n, INDEX)) for n in (len(self.rows), width))
        return Realize(name, self.dtype, box, Memory.AUTO, body)

    def _by_vector(self, name: str) -> Shifted | FoldedRows | None:
        if self.along is None or not self._are_vectors:
            return None
        if isinstance(self.along, InteriorRange):
            return FoldedRows(name, self.along, self.first, self.extent, self.lanes)
        return Shifted(name, self.along, self.first, self.extent, self.lanes)

    def _element(self, lanes: _Lanes, at: Expr) -> Load:
        places = tuple(simplify(substitute(i, {_U.name: at + self.first})) for i in lanes.row)
        return Load(self.dtype, 1, lanes.load.buffer, places)

    def instead(self, name: str) -> dict[Key, Load]:
        """The loads from rows that replace the original ones, by the keys of the originals."""
        rows = self._by_vector(name)
        begin = const(0, INDEX) if rows is None else rows.begin
        return {
            key(lanes.load): Load(
                self.dtype,
                self.lanes,
                name,
                (
                    const(k, INDEX),
                    ramp(begin + (lanes.offset - self.first), 1, self.lanes),
                ),
            )
            for k, row in enumerate(self.rows)
            for lanes in row
        }


def _reading(rows_by_name: Mapping[str, _Rows], s: Stmt) -> Stmt:
    """The statement with loads from rows."""
    instead = {k: load for name, rows in rows_by_name.items() for k, load in rows.instead(name).items()}
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        return instead.get(key(e)) if isinstance(e, Load) else None

    return ir.map_exprs(s, lambda e: transform(e, change, memo, loaded))


def _rows(run: list[Store], columns: Columns) -> list[_Rows]:
    """The rows that serve the clamped loads of some stores."""
    written = {s.buffer for s in run}
    clamped = [e for e in walk_loads(*(s.value for s in run)) if e.lanes > 1 and _is_clamped(e)]
    if sum(e.lanes for e in clamped) < _LEAST:
        return []
    rows: dict[tuple[object, ...], list[_Lanes]] = {}
    for lanes in _clamped_loads({key(e): e for e in clamped if e.buffer not in written}.values(), columns):
        rows.setdefault(lanes.of, []).append(lanes)
    groups: dict[tuple[object, ...], _Rows] = {}
    for row in rows.values():
        offsets, where = [lanes.offset for lanes in row], row[0].along
        like = row[0].load.dtype, row[0].load.lanes, min(offsets), max(offsets)
        groups.setdefault((*like, where and where.like), _Rows(*like, where, [])).rows.append(row)
    return list(groups.values())


def _clamped_loads(loads: Iterable[Load], columns: Columns) -> Iterator[_Lanes]:
    """Yield the loads whose indices are functions of the lane number."""
    of_one_lane: dict[Key, Expr] = {}  # indices are shared by many loads
    moved: dict[tuple[Key, int], Expr] = {}
    for load in loads:
        for i in load.indices:
            if key(i) not in of_one_lane:
                of_one_lane[key(i)] = transform(i, _of_one_lane)
        places = tuple([of_one_lane[key(i)] for i in load.indices])
        offset = _offset(places)
        if offset is not None and all(i.lanes == 1 for i in places):
            for i in places:
                if (key(i), offset) not in moved:
                    moved[key(i), offset] = simplify(substitute(i, {_U.name: _U - offset}))
            row = tuple(moved[key(i), offset] for i in places)
            yield _Lanes(load, row, offset, InteriorRange.of(row, _U) or Clamped.of(load.buffer, row, _U, columns))


def _is_clamped(load: Load) -> bool:
    """Whether clamps and remainders, but no loaded values, displace the lanes of a load."""
    moved = [i for i in load.indices if i.lanes > 1 and not isinstance(i, (Ramp, Broadcast, Const, Shuffle))]
    if not moved or load.mask is not None or any(map(loaded, load.indices)):
        return False
    return any(e.lanes > 1 and _moved(e) for e in walk_expr(*moved))


def _moved(e: Expr) -> tuple[Expr, ...]:
    """The operands of an index that a clamp or a remainder by an extent displaces."""
    if not isinstance(e, Op) or e.dtype != INDEX:
        return ()
    if e.op == "mod" and not isinstance(e.args[1], Const):
        return e.args[:1]
    return e.args if e.op in ("min", "max") else ()


def _of_one_lane(e: Expr) -> Expr | None:
    """The index of one lane as a function of its number."""
    if isinstance(e, Ramp):
        return e.base + _U * e.stride
    if isinstance(e, Const):
        return const(e.value, e.dtype)
    return e.value if isinstance(e, Broadcast) else None


def _offset(places: tuple[Expr, ...]) -> int | None:
    """The constant distance in lanes between clamped indices and those without an offset, or None."""
    for e in walk_expr(*places):
        for side in _moved(e):
            form = linear(side)
            if form.coefficient(_U.name) > 0:
                return form.constant // form.coefficient(_U.name)
    return None
