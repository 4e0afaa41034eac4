"""Finds stages whose values all consumers convert to the same type, many times, and the type that they are read as."""

from __future__ import annotations

import math

from ..expr.nodes import Cast, Const, Expr, Load
from ..expr.types import INDEX, DType
from ..expr.visit import children, loaded, walk
from ..graph.nodes import Definition, Graph
from .regions import expressions

# The number of terms of a sum from which on converting them costs more than storing and loading wider elements.
MANY_TERMS = 32


def conversions(graph: Graph) -> dict[str, DType]:
    """The stages all of whose reads are converted to one wider type, and which a sum of many terms reads; with that
    type."""
    definitions = [d for s in graph.stages for d in s.definitions]
    if all(terms(d) < MANY_TERMS for d in definitions):
        return {}
    read_as: dict[str, set[DType | None]] = {}
    often: set[str] = set()
    for d in definitions:
        types_of = _read_as(d)
        often |= types_of.keys() if terms(d) >= MANY_TERMS else set()
        for buffer, types in types_of.items():
            read_as.setdefault(buffer, set()).update(types)
    inner = [s for s in graph.stages if s.name in often and s.name not in graph.output and not s.updates]
    wider = {s.name: _only(read_as[s.name]) for s in inner}
    return {s.name: t for s in inner if (t := wider[s.name]) is not None and t.bytes > s.dtypes[0].bytes}


def worth_storing(graph: Graph) -> set[str]:
    """The stages of `conversions` that are worth storing even if they are cheap to compute: all except those that are
    read at data-dependent indices, because their required region is not known."""
    anywhere = {
        e.buffer for s in graph.stages for d in s.definitions for e in d.loads if any(loaded(i) for i in e.indices)
    }
    return conversions(graph).keys() - anywhere


def _only(types: set[DType | None]) -> DType | None:
    """The only type in a set, unless it is INDEX or there are several."""
    (first, *others) = types
    return None if others or first is INDEX else first


def _read_as(d: Definition) -> dict[str, set[DType | None]]:
    """Map buffers to the types that their loads are directly converted to; None stands for a load that is not
    converted."""
    types: dict[str, set[DType | None]] = {}

    def note(e: Expr, as_type: DType | None) -> None:
        if isinstance(e, Load):
            types.setdefault(e.buffer, set()).add(as_type)

    for root in expressions(d):
        note(root, None)
    for e in walk(*expressions(d)):
        for operand in children(e):
            note(operand, e.dtype if isinstance(e, Cast) else None)
    return types


def terms(d: Definition, unknown: int = MANY_TERMS) -> int:
    """The number of times that a definition runs for each value; `unknown` stands for an extent that is not
    constant."""
    return math.prod(int(r.extent.value) if isinstance(r.extent, Const) else unknown for r in d.domain)
