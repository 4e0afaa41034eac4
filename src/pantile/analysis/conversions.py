"""Stages whose values everybody converts alike, over and over: graph -> the type that they are read as."""

from __future__ import annotations

import math

from ..expr.nodes import Cast, Const, Expr, Load
from ..expr.types import INDEX, DType
from ..expr.visit import children, loaded, walk
from ..graph.nodes import Definition, Graph
from .regions import expressions

# Terms of a sum in which a conversion costs more than to store, and to load, a few more bytes.
MANY_TERMS = 32


def conversions(graph: Graph) -> dict[str, DType]:
    """The stages that are only ever read to be converted to one wider type, and that by sums of many terms."""
    definitions = [d for s in graph.stages for d in s.definitions]
    if all(terms(d) < MANY_TERMS for d in definitions):
        return {}
    read_as: dict[str, set[DType | None]] = {}
    often: set[str] = set()
    for d in definitions:
        found = _read_as(d)
        often |= found.keys() if terms(d) >= MANY_TERMS else set()
        for buffer, types in found.items():
            read_as.setdefault(buffer, set()).update(types)
    inner = [s for s in graph.stages if s.name in often and s.name not in graph.output and not s.updates]
    wider = {s.name: _only(read_as[s.name]) for s in inner}
    return {s.name: t for s in inner if (t := wider[s.name]) is not None and t.bytes > s.dtypes[0].bytes}


def worth_storing(graph: Graph) -> set[str]:
    """Of these, the stages to compute once even if it is next to nothing that is computed: all but those that are read
    where data says, which may be anywhere."""
    anywhere = {
        e.buffer for s in graph.stages for d in s.definitions for e in d.loads if any(loaded(i) for i in e.indices)
    }
    return conversions(graph).keys() - anywhere


def _only(types: set[DType | None]) -> DType | None:
    """The one type of values that there is, if so."""
    (first, *others) = types
    return None if others or first is INDEX else first


def _read_as(d: Definition) -> dict[str, set[DType | None]]:
    """The types that loads are converted to at once; None where one is used as it is."""
    found: dict[str, set[DType | None]] = {}

    def note(e: Expr, as_type: DType | None) -> None:
        if isinstance(e, Load):
            found.setdefault(e.buffer, set()).add(as_type)

    for root in expressions(d):
        note(root, None)
    for e in walk(*expressions(d)):
        for operand in children(e):
            note(operand, e.dtype if isinstance(e, Cast) else None)
    return found


def terms(d: Definition, unknown: int = MANY_TERMS) -> int:
    """How often a definition runs for one of its values; `unknown`: for an extent that is no constant."""
    return math.prod(int(r.extent.value) if isinstance(r.extent, Const) else unknown for r in d.domain)
