"""Stages of equal cost: equal but for the names of what they read, such as the levels of two pyramids, one for
each of two pictures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from ..expr.nodes import Const, Expr, Load, Number, Op, Var
from ..expr.visit import each_once
from ..graph.nodes import Definition, Stage


class Signature(NamedTuple):
    """What the cost of a stage depends on. `form` is equal for equivalent stages. `sources`: the stages and inputs that
    the stage reads, itself included, in the order in which those of equivalent stages correspond to each other."""

    form: Hashable
    sources: tuple[str, ...]


def signature(stage: Stage, source: Callable[[str], str], scalars: Mapping[str, Number]) -> Signature:
    """The signature of a stage at the sizes of a call: names of buffers and scalars are replaced by numbers."""
    writer = _Writer(stage, source, scalars)
    definitions = tuple([writer.definition(d) for d in stage.definitions])
    form = (stage.dims, stage.dtypes, definitions, tuple(writer.lines), tuple(map(scalars.get, writer.scalars)))
    return Signature(_HashedTuple(form), tuple(writer.sources))


class _HashedTuple:
    """A long tuple that is hashed once."""

    def __init__(self, form: tuple[object, ...]) -> None:
        self._form, self._hash = form, hash(form)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            self is other or isinstance(other, _HashedTuple) and self._hash == other._hash and self._form == other._form
        )


class _Writer:
    """Writes expressions as numbered lines, of which equal ones share one."""

    def __init__(self, stage: Stage, source: Callable[[str], str], scalars: Mapping[str, Number]) -> None:
        self.lines: dict[tuple[object, ...], int] = {}
        self.sources: dict[str, int] = {stage.name: 0}
        self.scalars: dict[str, int] = {}
        self._source, self._values = source, scalars
        self._known: dict[int, int] = {}

    def definition(self, d: Definition) -> tuple[object, ...]:
        of = tuple([each_once(e, self._known, self._line) for e in d.expressions])
        return len(d.indices), len(d.values), tuple([r.name for r in d.domain]), of

    def _line(self, e: Expr) -> int:
        line = (type(e), e.dtype, self._attribute(e), *[self._known[id(c)] for c in e.operands])
        return self.lines.setdefault(line, len(self.lines))

    def _attribute(self, e: Expr) -> object:
        """What a node is besides its type and operands. Loads of a graph have no masks."""
        if isinstance(e, Const):
            return repr(e.value)
        if isinstance(e, Op):
            return e.op
        if isinstance(e, Var):
            return self.scalars.setdefault(e.name, len(self.scalars)) if e.name in self._values else e.name
        if isinstance(e, Load):
            source = self._source(e.buffer)
            return self.sources.setdefault(source, len(self.sources)), e.buffer.removeprefix(source)
        return None
