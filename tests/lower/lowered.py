"""Pipelines lowered pass by pass, each result verified; and a count of what a loop nest stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pantile as pt
from pantile.compile import Options, to_loops
from pantile.graph.nodes import Graph
from pantile.ir.nodes import Block, For, If, Let, Produce, Program, Realize, Stmt, Store, Strides
from pantile.ir.verify import verify
from pantile.ir.visit import children
from pantile.lower.nest import LoopNest
from pantile.lower.passes import Trace, arguments
from pantile.schedule.resolve import resolve
from pantile.target import NAMED
from pantile.variant import Variants
from tests.analysis.indices import value

TARGET = NAMED["aarch64"]  # any will do; the same on every host
FLAT = ("flatten", "simplify")


class CheckedTrace(Trace):
    """Verifies what every pass returns, and keeps it."""

    def __init__(self, graph: Graph, strides: Mapping[str, Strides]) -> None:
        super().__init__(check=True)
        self.buffers, self.scalars = arguments(graph, strides)
        self.results: dict[str, Stmt] = {}

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        result = super().run(name, work)
        body = result.body if isinstance(result, LoopNest) else result
        if isinstance(body, Stmt):
            verify(Program(f"{name} of test", self.buffers, self.scalars, body), flat=name in FLAT)
            self.results[name] = body
        return result


def lowered(p: pt.Pipeline, large: bool = True) -> dict[str, Stmt]:
    """What each pass makes of a pipeline, for large arrays or for any, in C order."""
    options = Options(TARGET)
    graph, plan = resolve(p.rewritten, p.schedule, target=TARGET)
    variants = Variants(graph, plan)
    variant = variants.usual
    if not large:
        variant = variants.of(variant.strides, {i.extent(k): 1 for i in graph.inputs for k in range(i.ndim)})
    trace = CheckedTrace(graph, dict(variant.strides))
    to_loops(p.rewritten, p.schedule, variant, options, trace)
    return trace.results


def stores(s: Stmt, scalars: Mapping[str, int]) -> Counter[tuple[str, tuple[int, ...]]]:
    """How often each element of each buffer is written by scalar loops; `scalars` are the kernel's arguments."""
    found: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def visit(s: Stmt, at: Mapping[str, int]) -> None:
        if isinstance(s, For):
            low = value(s.min, at)
            for v in range(low, low + value(s.extent, at)):
                visit(s.body, {**at, s.var: v})
        elif isinstance(s, Let):
            visit(s.body, {**at, s.name: value(s.value, at)})
        elif isinstance(s, If):
            branch = s.then if value(s.condition, at) else s.otherwise
            if branch is not None:
                visit(branch, at)
        elif isinstance(s, Block):
            for c in s.stmts:
                visit(c, at)
        elif isinstance(s, (Produce, Realize)):
            visit(s.body, at)
        else:
            assert isinstance(s, Store), s
            found[s.buffer, tuple(value(i, at) for i in s.indices)] += 1

    visit(s, scalars)
    return found


def produced(s: Stmt, scalars: Mapping[str, int]) -> dict[str, list[set[tuple[int, ...]]]]:
    """For each stage, every time that it is computed: the elements of its first buffer that are written then."""
    found: dict[str, list[set[tuple[int, ...]]]] = {}

    def visit(s: Stmt, at: Mapping[str, int]) -> None:
        if isinstance(s, For):
            low = value(s.min, at)
            for v in range(low, low + value(s.extent, at)):
                visit(s.body, {**at, s.var: v})
        elif isinstance(s, Let):
            visit(s.body, {**at, s.name: value(s.value, at)})
        elif isinstance(s, If):
            branch = s.then if value(s.condition, at) else s.otherwise
            if branch is not None:
                visit(branch, at)
        elif isinstance(s, Produce):
            found.setdefault(s.stage, []).append(set())
            visit(s.body, at)
        elif isinstance(s, Store):
            stage = s.buffer.removesuffix(".0")
            found[stage][-1].add(tuple(value(i, at) for i in s.indices))
        else:
            for c in children(s):
                visit(c, at)

    visit(s, scalars)
    return found
