"""Narrow: integer arithmetic that certainly fits 16 bits is done in them. (graph -> graph; see `analysis.narrowing`)

before:  uint8((uint32(a[x]) + uint32(a[x + 1]) + uint32(a[x + 2]))//3)     with a of type uint8
after:   uint8((uint16(a[x]) + uint16(a[x + 1]) + uint16(a[x + 2]))//3)
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.narrowing import narrowed_values
from ..graph.nodes import Definition, Graph


def narrow(graph: Graph) -> Graph:
    """Compute with smaller integer types inside values wherever the result does not change."""
    return replace(graph, stages=tuple(s.changed(_definition) for s in graph.stages))


def _definition(d: Definition) -> Definition:
    values = narrowed_values(d)
    return d if all(new is old for new, old in zip(values, d.values, strict=True)) else replace(d, values=values)
