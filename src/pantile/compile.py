"""From a graph and a schedule to code: the only place that knows all the stages. It reads as the architecture."""

from __future__ import annotations

from dataclasses import dataclass

from .codegen.compile import assembly, compile_object
from .codegen.emit import emit
from .codegen.target import Target
from .expr.linear import Facts
from .graph.nodes import Graph
from .ir.nodes import Program
from .lower.passes import Trace, lower
from .schedule.resolve import resolve
from .schedule.schedule import Schedule


@dataclass(frozen=True)
class Options:
    """What changes the code but not its meaning."""

    target: Target
    strict: bool = False
    debug: bool = False


@dataclass(frozen=True)
class Variant:
    """What the code may rely on: the contiguous dim of each buffer, and least extents of the inputs."""

    dense: tuple[tuple[str, int | None], ...]
    least: tuple[tuple[str, int], ...] = ()

    def facts(self) -> Facts:
        """As bounds for proofs."""
        return Facts({name: (n, None) for name, n in self.least})


def to_loops(graph: Graph, schedule: Schedule, variant: Variant, options: Options, trace: Trace) -> Program:
    """Schedule and lower."""
    graph, plan = trace.run(
        "resolve",
        lambda: resolve(graph, schedule, strict=options.strict, vector_bits=options.target.vector_bits),
    )
    return lower(graph, plan, dict(variant.dense), variant.facts(), trace)


def to_llvm(program: Program, options: Options, trace: Trace) -> str:
    """Emit LLVM text."""
    return trace.run("emit", lambda: emit(program, options.target, strict=options.strict, debug=options.debug))


def to_object(text: str, options: Options, trace: Trace) -> bytes:
    """Optimize and assemble."""
    return trace.run("llvm", lambda: compile_object(text, options.target))


def to_assembly(text: str, options: Options) -> str:
    """The same, readable."""
    return assembly(text, options.target)


def compile_kernel(graph: Graph, schedule: Schedule, variant: Variant, options: Options, trace: Trace) -> bytes:
    """All the way: object code of one variant of a pipeline."""
    program = to_loops(graph, schedule, variant, options, trace)
    return to_object(to_llvm(program, options, trace), options, trace)
