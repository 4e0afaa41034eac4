"""Pipelines lowered pass by pass, each result verified; and what a loop nest computes and stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pantile as pt
from pantile.compile import Options, to_loops
from pantile.expr.nodes import Expr
from pantile.expr.visit import walk as walk_expr
from pantile.ir.nodes import Block, For, If, Let, Produce, Realize, Stmt, Store
from pantile.ir.visit import children, expressions, walk
from pantile.lower.nest import LoopNest
from pantile.lower.passes import Trace
from pantile.schedule.resolve import resolve
from pantile.target import NAMED, Target
from pantile.variant import Variants
from tests.analysis.indices import value

TARGET = NAMED["aarch64"]  # any will do; the same on every host


class Recorder(Trace):
    """Keeps the loops that every pass returns."""

    def __init__(self) -> None:
        super().__init__(check=True)
        self.results: dict[str, Stmt] = {}

    def run(self, name: str, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = super().run(name, work, *args, **kwargs)
        body = result.body if isinstance(result, LoopNest) else result
        if isinstance(body, Stmt):
            self.results[name] = body
        return result


def lowered(p: pt.Pipeline, large: bool = True, target: Target = TARGET) -> dict[str, Stmt]:
    """What each pass makes of a pipeline, for large arrays or for any, in C order."""
    options = Options(target)
    graph, plan = resolve(p.rewritten, p.schedule, target=target)
    variants = Variants(graph, plan)
    variant = variants.usual
    if not large:
        variant = variants.of(variant.strides, {i.extent(k): 1 for i in graph.inputs for k in range(i.ndim)})
    trace = Recorder()
    to_loops(graph, plan, variant, options, trace)
    return trace.results


def all_expressions(s: Stmt) -> Iterator[Expr]:
    """Every expression node inside the statement; a node shared within one statement is visited once."""
    for inside in walk(s):
        yield from walk_expr(*expressions(inside))


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
