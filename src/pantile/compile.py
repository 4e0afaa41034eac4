"""Compiles a graph and a schedule to code. This is the only module that knows all steps, and it mirrors the
architecture."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from . import progress, verification
from .analysis.fingerprint import fingerprint
from .backends import backend_of
from .dataclass import dataclass
from .errors import UserError, UserTypeError, shown
from .expr.depth import on_deep_stack, rare_collections
from .graph.nodes import Graph
from .graph.verify import verified
from .ir.nodes import Program
from .lower.block_memory import block_memory
from .lower.passes import Built, Trace, build, lower
from .runtime import cache
from .schedule.plan import Plan
from .schedule.resolve import resolve
from .schedule.schedule import Schedule
from .target import Target
from .target.description import INDEX_BITS
from .variant import Variant


@dataclass(frozen=True)
class Options:
    """The options that change the code but not its meaning."""

    target: Target
    strict: bool = False
    debug: bool = False
    algebra: bool = True

    def __post_init__(self) -> None:
        for name, given in (("strict", self.strict), ("debug", self.debug), ("algebra", self.algebra)):
            if type(given) is not bool:
                raise UserTypeError(f"{name}={shown(given)}: pass True or False")


def trace_of(options: Options) -> Trace:
    """The trace of the compilation steps. With `debug`, the result of each pass is verified."""
    return Trace(check=options.debug or verification.is_enabled())


def to_plan(graph: Graph, schedule: Schedule, options: Options) -> tuple[Graph, Plan]:
    """Resolve the schedule to a plan, once for all variants."""
    resolved, plan = resolve(graph, schedule, strict=options.strict, target=options.target)
    return verified(resolved, "resolve"), plan


@on_deep_stack
@rare_collections()
def to_loops(
    graph: Graph, plan: Plan, variant: Variant, options: Options, trace: Trace, asked: Collection[str] | None = None
) -> Program:
    """Lower a plan to loops. If `asked` is given, return only the loops of these stages at root."""
    built = _built(graph, plan, variant, options, trace)
    return lower(built if asked is None else built.of_root_stages(asked), trace)


def _built(graph: Graph, plan: Plan, variant: Variant, options: Options, trace: Trace) -> Built:
    """The loops of a plan, before any pass changes them."""
    strides, aligned = dict(variant.strides), dict(variant.aligned)
    return build(graph, plan, strides, variant.facts(), trace, variant.small, options.strict, aligned)


@on_deep_stack
@rare_collections()
def to_kernels(program: Program, options: Options, trace: Trace) -> Program:
    """Outline parallel loops as kernels. Listings for users show them in place instead."""
    return backend_of(options.target).kernels(program, trace, options.debug)


@on_deep_stack
@rare_collections()
def to_llvm(program: Program, options: Options, trace: Trace) -> str:
    """Emit LLVM text of a program with kernels."""
    write = backend_of(options.target).llvm
    return trace.run("emit", lambda: write(program, options.target, strict=options.strict, debug=options.debug))


@on_deep_stack
def to_artifact(program: Program, text: str, options: Options, trace: Trace) -> bytes:
    """Optimize and assemble the code."""
    progress.step(f"LLVM, {len(text.splitlines()):,} lines")
    make = backend_of(options.target).artifact
    return trace.run("llvm", lambda: make(program, text, options.target, options.debug))


@on_deep_stack
def to_assembly(text: str, options: Options) -> str:
    """Optimize the code and print it as assembly."""
    return backend_of(options.target).assembly(text, options.target, options.debug)


@on_deep_stack
@rare_collections()
def compile_kernel(graph: Graph, plan: Plan, variant: Variant, options: Options, trace: Trace) -> bytes:
    """Compile one variant of a pipeline, from graph and plan to an artifact."""
    options = _with_index_bits(options, variant)
    program = lowered(graph, plan, variant, options, trace)
    return to_artifact(program, to_llvm(program, options, trace), options, trace)


def lowered(
    graph: Graph, plan: Plan, variant: Variant, options: Options, trace: Trace, asked: Collection[str] | None = None
) -> Program:
    """Lower one variant of a pipeline to kernels. If `asked` is given, return only those of these stages at root."""
    options = _with_index_bits(options, variant)
    plan = replace(plan, target=options.target)
    return to_kernels(to_loops(graph, plan, variant, options, trace, asked), options, trace)


@on_deep_stack
@rare_collections()
def memory_of_blocks(
    graph: Graph, plan: Plan, variant: Variant, options: Options, asked: Collection[str]
) -> dict[str, int | UserError]:
    """The bytes of shared memory per block, for the blocks that compute the stages in `asked` and hold other stages'
    buffers, by stage. An error says why a block cannot have its memory."""
    return dict(block_memory(_built(graph, plan, variant, options, trace_of(options)), asked))


def _with_index_bits(options: Options, variant: Variant) -> Options:
    """The options with the index width that a variant needs."""
    if not variant.far:
        return options
    return replace(options, target=replace(options.target, index_bits=INDEX_BITS))


def kernel_key(graph: Graph, schedule: Schedule, variant: Variant, options: Options) -> str:
    """The key of a variant's code in the compile cache, computed from everything that the code depends on."""
    return cache.key(fingerprint(graph), repr(schedule), repr(variant), repr(options))
