"""From a graph and a schedule to code: the only place that knows all the stages. It reads as the architecture."""

from __future__ import annotations

from dataclasses import replace

from . import progress, verifying
from .analysis.fingerprint import fingerprint
from .codegen.compile import assembly, compile_objects
from .codegen.emit import buffer_names, emit
from .dataclass import dataclass
from .errors import UserError, shown
from .expr.depth import on_deep_stack
from .expr.garbage import rare_collections
from .graph.nodes import Graph
from .graph.verify import verified
from .ir.nodes import Program
from .lower.passes import Trace, lower, outlined
from .runtime import cache
from .runtime.kernel import ObjectCode
from .schedule.plan import Plan
from .schedule.resolve import resolve
from .schedule.schedule import Schedule
from .target import Target
from .variant import Variant


@dataclass(frozen=True)
class Options:
    """What changes the code but not its meaning."""

    target: Target
    strict: bool = False
    debug: bool = False
    algebra: bool = True

    def __post_init__(self) -> None:
        for name, given in (("strict", self.strict), ("debug", self.debug), ("algebra", self.algebra)):
            if type(given) is not bool:
                raise UserError(f"{name}={shown(given)}: pass True or False")


def trace_of(options: Options) -> Trace:
    """Where the steps of compiling are noted; `debug` has each pass verified."""
    return Trace(check=options.debug or verifying.is_asked())


def to_plan(graph: Graph, schedule: Schedule, options: Options) -> tuple[Graph, Plan]:
    """Schedule: once for all variants."""
    resolved, plan = resolve(graph, schedule, strict=options.strict, target=options.target)
    return verified(resolved, "resolve"), plan


@on_deep_stack
@rare_collections()
def to_loops(graph: Graph, plan: Plan, variant: Variant, options: Options, trace: Trace) -> Program:
    """Lower what was scheduled."""
    return lower(graph, plan, dict(variant.strides), variant.facts(), trace, variant.small, options.strict)


@on_deep_stack
@rare_collections()
def to_kernels(program: Program, options: Options, trace: Trace) -> Program:
    """Make kernels of parallel loops, which people like to see where they are."""
    return outlined(program, trace, options.debug)


@on_deep_stack
@rare_collections()
def to_llvm(program: Program, options: Options, trace: Trace) -> str:
    """Emit LLVM text of a program with kernels."""
    # A name that no C function has: one called memcpy would be called for copying memory.
    program = replace(program, name=symbol(program.name))
    return trace.run("emit", lambda: emit(program, options.target, strict=options.strict, debug=options.debug))


@on_deep_stack
def to_objects(text: str, options: Options, trace: Trace) -> tuple[bytes, ...]:
    """Optimize and assemble."""
    return trace.run("llvm", lambda: _optimized(text, options.target))


def _optimized(text: str, target: Target) -> tuple[bytes, ...]:
    progress.step(f"LLVM, {len(text.splitlines()):,} lines")
    return compile_objects(text, target)


@on_deep_stack
def to_assembly(text: str, options: Options) -> str:
    """The same, readable."""
    return assembly(text, options.target)


def symbol(name: str) -> str:
    """The name of a pipeline's function in its object code."""
    return f"pantile.{name}"


@on_deep_stack
@rare_collections()
def compile_kernel(graph: Graph, plan: Plan, variant: Variant, options: Options, trace: Trace) -> ObjectCode:
    """All the way from there: object code of one variant of a pipeline."""
    program = to_kernels(to_loops(graph, plan, variant, options, trace), options, trace)
    code = to_objects(to_llvm(program, options, trace), options, trace)
    return ObjectCode(symbol(graph.name), buffer_names(program), code)


def kernel_key(graph: Graph, schedule: Schedule, variant: Variant, options: Options) -> str:
    """What the code of a variant depends on, as a key of the compile cache; known without compiling anything."""
    return cache.key(fingerprint(graph), repr(schedule), repr(variant), repr(options))
