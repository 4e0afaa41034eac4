"""How much of a stage's work is the same for all planes, or rows: stage + dim -> what they share, what each does alone.

    out[c, y, x] = ratio[y, x] * img[c, y, x], with ratio inlined   ->   (what ratio takes, a product and a load)

What a row has in common counts as nothing, and so do places in memory, and whether they are inside a picture.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field
from math import inf
from weakref import WeakKeyDictionary

from ..dataclass import dataclass
from ..expr.nodes import Expr, Load
from ..expr.types import BOOL, INDEX
from ..expr.visit import key, names, walk
from ..graph.nodes import Definition, Graph, Stage
from .conversions import terms
from .cost import weight

MUCH = 16.0  # operations: weights of an interpolation, not a factor
SHARING_ROWS = 4  # that are written out

Dims = frozenset[str]
Work = tuple[float, float]  # shared, own

# Asked for again for each set of stages that are inlined.
_DIFFERENT: WeakKeyDictionary[Definition, list[Expr]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Alike:
    """Of a graph of which some stages are inlined."""

    graph: Graph
    inlined: Collection[str] = ()
    _known: dict[tuple[str, Dims, Dims], Work] = field(default_factory=dict)

    def is_worth_sharing(self, stage: Stage, dim: str, most: float = inf) -> bool:
        """Whether planes, written out around a vector, save as much as each computes for itself, or more; `most`: of
        that, since it is written out for each."""
        shared, own = self._work(stage, frozenset({dim}), frozenset(stage.dims[-1:]))
        return 0 < shared >= own <= most

    def is_worth_sharing_rows(self, stage: Stage, dim: str, across: str, copies: int = 1) -> bool:
        """Whether some rows, written out around a vector along a dim, save much: a lot that depends on the column only,
        and half of what each row does alone, for so many channels."""
        shared, own = self._work(stage, frozenset({dim}), frozenset({across}))
        return not stage.updates and shared >= MUCH and 2 * shared >= copies * own

    def _work(self, stage: Stage, planes: Dims, along: Dims) -> Work:
        """Of a value, where some dims count planes, and others move along a row."""
        pending = [_Question(stage, planes, along)]
        while pending:
            asked = pending[-1]
            first = [q for e in asked.loads for q in self._inside(e, asked) if q.key not in self._known]
            if asked.key not in self._known and first:
                pending += first
                continue
            pending.pop()
            if asked.key not in self._known:
                self._known[asked.key] = self._answer(asked)
        return self._known[stage.name, planes, along]

    def _answer(self, q: _Question) -> Work:
        """What is inlined is known."""
        shared = own = 0.0
        for d in q.stage.definitions:
            for e in _different(d):
                more = next((self._known[i.key] for i in self._inside(e, q)), None) or self._of(e, q)
                shared, own = shared + terms(d) * more[0], own + terms(d) * more[1]
        return shared, own

    def _of(self, e: Expr, q: _Question) -> Work:
        """Of what is not inlined."""
        if not isinstance(e, Load):
            return _told_apart(weight(e), names(e), q.planes, q.along)
        is_own = self.graph.producer.get(e.buffer) is q.stage
        return (0.0, 0.0) if is_own else _told_apart(1.0, names(e), q.planes, q.along)

    def _inside(self, e: Expr, q: _Question) -> Iterator[_Question]:
        """What is asked of the stage that an expression reads, if that is inlined."""
        producer = self.graph.producer.get(e.buffer) if isinstance(e, Load) else None
        if isinstance(e, Load) and producer is not None and producer is not q.stage and producer.name in self.inlined:
            moving = dict(zip(producer.dims, map(names, e.indices), strict=True))
            asked = (frozenset(d for d, found in moving.items() if found & dims) for dims in (q.planes, q.along))
            yield _Question(producer, *asked)


@dataclass(frozen=True, eq=False)
class _Question:
    """How much of a stage's work planes share."""

    stage: Stage
    planes: Dims
    along: Dims

    @property
    def key(self) -> tuple[str, Dims, Dims]:
        return self.stage.name, self.planes, self.along

    @property
    def loads(self) -> Iterator[Load]:
        return (e for d in self.stage.definitions for e in _different(d) if isinstance(e, Load))


def _different(d: Definition) -> list[Expr]:
    """What a definition computes, each once."""
    if d not in _DIFFERENT:
        _DIFFERENT[d] = list({key(e): e for e in walk(*d.values) if e.dtype not in (INDEX, BOOL)}.values())
    return _DIFFERENT[d]


def _told_apart(work: float, moving: frozenset[str], planes: Dims, along: Dims) -> Work:
    if moving & planes:
        return 0.0, work
    return (work, 0.0) if moving & along else (0.0, 0.0)
