"""Emits a flat Program as the text of an LLVM module.

On CPUs, the module defines `i32 @<name>(ptr args, i64 num_threads)`. args is an array of 8-byte slots: for each buffer
its data pointer, extents and strides; then the scalars; last a pointer to the report of a debug build. The result is 0,
-1 for out of memory, or 1 for a report. The code calls pantile_parallel_for, pantile_scratch_push and
pantile_scratch_pop.

For GPUs, the module contains only the kernels (see `blocks`); the runtime interprets the host part.

Metadata tells LLVM which buffers do not alias: all of them, except buffers that may share memory (`ir/overlap.py`),
where moving a store to one before a load of the other would be wrong. Buffers are numbered, and all buffers that are
connected by sharing have the same number. For each binary digit of the numbers, there is a domain with two scopes. A
buffer's accesses are in the scopes of its digits and noalias with the opposite scopes, so two buffers with different
numbers do not alias because of the first digit that differs. LLVM walks these lists for every pair of accesses that it
compares. They grow with the logarithm of the number of buffers, whereas with one scope per buffer, each list would
contain all other buffers. Only buffers with the same number also have scopes of their own, in one more domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..dataclass import dataclass
from ..errors import InternalError
from ..ir.nodes import Alloc, Kernel, Prefetch, Program
from ..ir.overlap import overlaps
from ..ir.visit import walk_program
from ..target import Target
from ..target.kinds import CacheOperator
from .alignment import AlignmentFacts, alignment_facts
from .blocks import SHARED_MEMORY, begin_block
from .checks import REPORT, REPORTING, bind_argument_limits
from .context import Context, Module
from .entry import entries
from .expressions import write_expression
from .function import Function, symbol
from .indices import narrowed
from .memory import buffer_pointer
from .nonnegative import least_of_arguments, least_of_kernels
from .parallel import THREADS, begin_kernel
from .rounding import bfloat_from_bits
from .statements import write_run

_SLOT = 8
_DECLARATIONS = """\
declare i32 @pantile_parallel_for(ptr, ptr, i64, i64, i64) nounwind
declare noalias ptr @pantile_scratch_push(i64) nounwind
declare void @pantile_scratch_pop(ptr) nounwind
"""
_METADATA = """\
!0 = !{}
!1 = !{i32 1}
!2 = distinct !{!2, !3}
!3 = !{!"llvm.loop.unroll.runtime.disable"}
!4 = distinct !{!4, !5}
!5 = !{!"llvm.loop.unroll.disable"}
"""
_ATTRIBUTES = "attributes #0 = { nounwind }"
# Otherwise, LLVM would turn a loop that copies and prefetches into a call of memcpy and a loop of prefetches.
_PREFETCHING_ATTRIBUTES = 'attributes #0 = { nounwind "no-builtin-memcpy" }'
# A host part that only launches kernels runs each instruction once per call. If there are many of them, optimizing them
# takes longer than running them ever will (180 ms instead of 60 for the 2,300 lines of a pyramid blend).
_RUNS_ONCE = " noinline optnone"
_LONG = 400  # lines; a launch has some 40 of them, and takes as long as thousands of instructions
_FIRST = 6  # number of the first metadata node for aliasing; `emit` defines those below


class HostArguments:
    """The frame of the host part: its argument slots."""

    def __init__(self, program: Program) -> None:
        self.places: dict[str, int] = {}
        for b in program.buffers:
            self._add(buffer_pointer(b.name))
            for name in [*map(b.extent, range(b.ndim)), *map(b.stride, range(b.ndim))]:
                self._add(name)
        for a in program.scalars:
            self._add(a.name)
        self._add(REPORT)

    def _add(self, name: str) -> None:
        self.places[name] = len(self.places) * _SLOT

    def place(self, name: str, type_: str) -> int:
        if name not in self.places:
            raise InternalError(f"{name} is used but never defined")
        return self.places[name]


def buffer_names(program: Program) -> tuple[str, ...]:
    """Every buffer, in the order in which a debug report numbers them: arguments, then allocations."""
    allocated = [s.buffer for s in walk_program(program) if isinstance(s, Alloc)]
    return tuple(dict.fromkeys([*(b.name for b in program.buffers), *allocated]))


def emit(program: Program, target: Target, *, strict: bool = False, debug: bool = False) -> str:
    """The LLVM text of a program with flat accesses, whose loops are serial or outlined as kernels.

    With `strict`, floating-point operations are executed one by one as written. With `debug`, accesses are checked (see
    `checks`).
    """
    names = buffer_names(program)
    dtypes = {s.buffer: s.dtype for s in walk_program(program) if isinstance(s, Alloc)}
    dtypes.update({b.name: b.dtype for b in program.buffers})
    alias = alias_metadata(program, names)
    ordinals = {name: k for k, name in enumerate(names)}
    kernels = {k.name: k for k in program.kernels}
    module = Module(program.name, target, strict, debug, dtypes, ordinals, alias.notes, kernels)
    lows = least_of_kernels(program)
    if target.has_blocks:
        kernels_with_entries = zip(program.kernels, entries(program, target.index_bits), strict=True)
        functions = [_block(k, x.symbol, program, module, lows.get(k.name, {})) for k, x in kernels_with_entries]
        return "\n".join([*functions, SHARED_MEMORY, _METADATA, *alias.lines, ""])
    functions = [*(_kernel(k, module, lows.get(k.name, {})) for k in program.kernels), _host(program, module)]
    prefetches = any(isinstance(s, Prefetch) for s in walk_program(program))
    attributes = _PREFETCHING_ATTRIBUTES if prefetches else _ATTRIBUTES
    common = [attributes, *[REPORTING] * debug, _DECLARATIONS + _METADATA, *alias.lines, ""]
    return "\n".join([*functions, *common])


def _kernel(kernel: Kernel, module: Module, lows: dict[str, int]) -> str:
    fn = begin_kernel(module, kernel)
    places = AlignmentFacts(lows=lows)
    places.loop(kernel.var, kernel.min)
    write_run(Context(module, fn, write_expression, places=places), kernel.body)
    fn.leave("0")
    return fn.text()


def _block(kernel: Kernel, symbol: str, program: Program, module: Module, lows: dict[str, int]) -> str:
    places = alignment_facts(kernel, program, lows)
    if module.index == "i32":
        kernel = narrowed(kernel)
    fn = begin_block(module, kernel, symbol, lows)
    places.loop(kernel.var, kernel.min)
    operators = {
        b.name: b.cached for b in kernel.buffers if b.cached is not CacheOperator.ALL and b.name in places.constant
    }
    ctx = Context(module, fn, write_expression, places=places, threads=kernel.threads, operators=operators)
    write_run(ctx, kernel.body)
    fn.effect("ret void")
    return fn.text()


def _host(program: Program, module: Module) -> str:
    head = f"define i32 {symbol(program.name)}(ptr noalias readonly %args, i64 %num_threads) #0"
    fn = Function(head, HostArguments(program), "%args")
    fn.bind(THREADS, "%num_threads")
    ctx = Context(module, fn, write_expression, places=AlignmentFacts(lows=least_of_arguments(program)))
    for a in program.scalars:
        if a.dtype.kind == "bfloat":  # 16 bits in its slot, but a float32 in registers
            fn.bind(a.name, bfloat_from_bits(fn, fn.resolve(a.name, "i16"), 1))
    if module.debug:
        for b in program.buffers:
            bind_argument_limits(ctx, b)
    write_run(ctx, program.body)
    fn.leave("0")
    if len(fn.lines) > _LONG and not fn.has_loops:
        fn.head += _RUNS_ONCE
    return fn.text()


@dataclass(frozen=True)
class Alias:
    """The metadata to append to loads and stores of each buffer, and the lines that define it."""

    notes: Mapping[str, str]
    lines: list[str]


def alias_metadata(program: Program, names: tuple[str, ...]) -> Alias:
    """The metadata of the scopes that each buffer's accesses are in, and of those that they do not alias."""
    known = overlaps(program)
    sharing = {name: known.get(name, []) for name in names}
    groups = _linked(sharing)
    nodes = _Nodes([])
    digits = [nodes.scopes(2) for _ in range(max([1, *groups.values()]).bit_length())]
    mates = {g: [n for n in names if groups[n] == g] for g in set(groups.values())}
    single = {n: scope for g in mates.values() if len(g) > 1 for n, scope in zip(g, nodes.scopes(len(g)), strict=True)}
    notes: dict[str, str] = {}
    for name in names:
        bits = [groups[name] >> k & 1 for k in range(len(digits))]
        mine = [pair[bit] for pair, bit in zip(digits, bits, strict=True)] + ([single[name]] if name in single else [])
        others = [pair[1 - bit] for pair, bit in zip(digits, bits, strict=True)]
        others += [single[n] for n in mates[groups[name]] if n != name and n not in sharing[name]]
        notes[name] = f", !alias.scope {nodes.list(mine)}, !noalias {nodes.list(others)}"
    return Alias(notes, nodes.lines)


@dataclass(frozen=True)
class _Nodes:
    """Metadata nodes, one per line."""

    lines: list[str]

    def _add(self, node: Callable[[str], str]) -> str:
        name = f"!{_FIRST + len(self.lines)}"
        self.lines.append(f"{name} = {node(name)}")
        return name

    def scopes(self, count: int) -> list[str]:
        """Add a new domain, and return its scopes."""
        domain = self._add(lambda node: f"distinct !{{{node}}}")
        return [self._add(lambda node: f"distinct !{{{node}, {domain}}}") for _ in range(count)]

    def list(self, scopes: Iterable[str]) -> str:
        return self._add(lambda _: f"!{{{', '.join(scopes)}}}")


def _linked(sharing: Mapping[str, list[str]]) -> dict[str, int]:
    """A number for each buffer, equal for buffers that are connected by sharing memory."""
    numbers: dict[str, int] = {}
    count = 0
    for name in sharing:
        pending = [] if name in numbers else [name]
        count += len(pending)
        while pending:
            n = pending.pop()
            if n not in numbers:
                numbers[n] = count - 1
                pending += sharing[n]
    return numbers
