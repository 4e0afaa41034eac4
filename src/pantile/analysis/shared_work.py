"""Computes the part of a stage's work that all planes, or rows, share: stage + dim -> (shared work, own work).

    out[c, y, x] = ratio[y, x] * img[c, y, x], with ratio inlined   ->   (the work of ratio, a product and a load)

Work that is constant along a row is free, and so are index arithmetic and conditions.

Among the rows of a buffer that one value reads, rows of different planes are distinct, while the channels of a pixel
are in one row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import field
from math import inf
from weakref import WeakKeyDictionary

from ..dataclass import dataclass
from ..expr.nodes import Const, Expr, Load
from ..expr.types import BOOL, INDEX
from ..expr.visit import key, names, walk
from ..graph.nodes import Definition, Graph, Stage
from .conversions import terms
from .work import weight

MUCH = 16.0  # operations that are worth sharing, such as the weights of an interpolation, but not a single factor
SHARING_ROWS = 4  # rows to unroll in order to share work

Dims = frozenset[str]
Work = tuple[float, float]  # shared, own

# The distinct subexpressions of definitions, cached because they do not depend on the inlined stages.
_DISTINCT: WeakKeyDictionary[Definition, list[Expr]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class SharedWork:
    """The shared work of the stages of a graph, given the stages that are inlined."""

    graph: Graph
    inlined: Collection[str] = ()
    _known: dict[tuple[str, Dims, Dims], Work] = field(default_factory=dict)

    def is_worth_sharing(self, stage: Stage, dim: str, most: float = inf) -> bool:
        """Whether planes that are unrolled around a vector share at least as much work as each does on its own. The
        latter may be at most `most`, because it is repeated for each plane."""
        shared, own = self._work(stage, frozenset({dim}), frozenset(stage.dims[-1:]))
        return 0 < shared >= own <= most

    def is_worth_sharing_rows(self, stage: Stage, dim: str, across: str, copies: int = 1) -> bool:
        """Whether unrolling some rows around a vector along `across` saves much: a lot of work depends only on the
        column, and it is at least half of the work that each row does on its own for all `copies` channels."""
        shared, own = self._work(stage, frozenset({dim}), frozenset({across}))
        return not stage.updates and shared >= MUCH and 2 * shared >= copies * own

    def _work(self, stage: Stage, planes: Dims, along: Dims) -> Work:
        """The shared work and the own work of a value; `planes` are the dims that count planes, `along` the dims along
        a row."""
        pending = [_Query(stage, planes, along)]
        while pending:
            query = pending[-1]
            first = [q for e in query.loads for q in self._inside(e, query) if q.key not in self._known]
            if query.key not in self._known and first:
                pending += first
                continue
            pending.pop()
            if query.key not in self._known:
                self._known[query.key] = self._answer(query)
        return self._known[stage.name, planes, along]

    def _answer(self, q: _Query) -> Work:
        """Answer a query, given the answers for the inlined stages that it reads."""
        shared = own = 0.0
        for d in q.stage.definitions:
            for e in _distinct(d):
                more = next((self._known[i.key] for i in self._inside(e, q)), None) or self._of(e, q)
                shared, own = shared + terms(d) * more[0], own + terms(d) * more[1]
        return shared, own

    def _of(self, e: Expr, q: _Query) -> Work:
        """The work of a node that is not a load of an inlined stage."""
        if not isinstance(e, Load):
            return _shared_or_own(weight(e), names(e), q.planes, q.along)
        is_own = self.graph.producer.get(e.buffer) is q.stage
        return (0.0, 0.0) if is_own else _shared_or_own(1.0, names(e), q.planes, q.along)

    def _inside(self, e: Expr, q: _Query) -> Iterator[_Query]:
        """The query for the stage that an expression loads, if that stage is inlined."""
        producer = self.graph.producer.get(e.buffer) if isinstance(e, Load) else None
        if isinstance(e, Load) and producer is not None and producer is not q.stage and producer.name in self.inlined:
            moving = dict(zip(producer.dims, map(names, e.indices), strict=True))
            planes, along = (frozenset(d for d, n in moving.items() if n & dims) for dims in (q.planes, q.along))
            yield _Query(producer, planes, along)


@dataclass(frozen=True, eq=False)
class _Query:
    """A query for the part of a stage's work that planes share."""

    stage: Stage
    planes: Dims
    along: Dims

    @property
    def key(self) -> tuple[str, Dims, Dims]:
        return self.stage.name, self.planes, self.along

    @property
    def loads(self) -> Iterator[Load]:
        return (e for d in self.stage.definitions for e in _distinct(d) if isinstance(e, Load))


def _distinct(d: Definition) -> list[Expr]:
    """The distinct subexpressions of a definition, except indices and conditions."""
    if d not in _DISTINCT:
        _DISTINCT[d] = list({key(e): e for e in walk(*d.values) if e.dtype not in (INDEX, BOOL)}.values())
    return _DISTINCT[d]


def _shared_or_own(work: float, moving: frozenset[str], planes: Dims, along: Dims) -> Work:
    if moving & planes:
        return 0.0, work
    return (work, 0.0) if moving & along else (0.0, 0.0)


def rows_read(graph: Graph, inlined: Collection[str]) -> dict[str, dict[str, int]]:
    """Stage -> dim -> an upper bound on the number of distinct positions along the dim at which a buffer is read."""
    rows: dict[str, dict[str, int]] = {}
    for s in graph.stages:
        counts_of: dict[str, dict[str, int]] = {dim: {} for dim in s.dims}
        for d in s.definitions:
            for (dim, buffer), count in _places(graph, s, d, rows, inlined).items():
                counts_of[dim][buffer] = counts_of[dim].get(buffer, 0) + count
        rows[s.name] = {dim: max(counts.values(), default=1) for dim, counts in counts_of.items()}
    return rows


def _places(
    graph: Graph, s: Stage, d: Definition, rows: dict[str, dict[str, int]], inlined: Collection[str]
) -> dict[tuple[str, str], int]:
    """Dim and buffer -> the number of distinct positions along the dim at which a definition reads the buffer."""
    seen: set[tuple[str, str, object]] = set()
    count: dict[tuple[str, str], int] = {}
    for e in d.loads:
        producer = graph.producer.get(e.buffer)
        if producer is s:
            continue
        plane = tuple(key(i) for i in e.indices[:-1] if isinstance(i, Const))
        for axis, i in enumerate(e.indices):
            for dim in names(i) & set(s.dims):
                place = (dim, e.buffer, (key(i), *plane))
                if place not in seen:
                    seen.add(place)
                    through = producer is not None and producer.name in inlined
                    behind = rows[producer.name][producer.dims[axis]] if producer is not None and through else 1
                    count[dim, e.buffer] = count.get((dim, e.buffer), 0) + behind * _terms(d, names(i))
    return count


def _terms(d: Definition, used: Collection[str]) -> int:
    """The number of values that reduction loops of constant extent give to an index that uses these variables."""
    return math.prod(int(r.extent.value) for r in d.domain if r.name in used and isinstance(r.extent, Const))
