"""Flatten storage: buffers become flat memory, accesses get a single index, and scratch buffers get an offset in the
thread's arena.

before:  realize f: uint16[0..3, x.min..x.max + 1]    after:  alloc f: uint16[3*f.stride.0] in scratch at byte 0
         f[y % 3, x] = ...                                    f[(y % 3)*f.stride.0 + (x - x.min)] = ...

Inputs and outputs are addressed by their strides; strides known to be small are constants. Buffers with disjoint live
ranges share memory: a buffer's offset in the arena is the end of the buffers that are live around it.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import reduce

from ..analysis.channels import MOST_CHANNELS
from ..analysis.interval import Scope, interval
from ..dataclass import dataclass
from ..expr.build import broadcast, expr, maximum
from ..expr.linear import Facts, simplify
from ..expr.nodes import Const, Expr, Load, const, var
from ..expr.types import INDEX, DType
from ..expr.visit import Key, key, loaded, transform
from ..graph.nodes import Graph, Stage
from ..ir import visit as ir
from ..ir.nodes import Alloc, BufferArg, For, Let, Prefetch, Realize, Stmt, Store
from ..schedule.plan import Plan
from ..target.gpu import MOST_SHARED, WARP_SIZE
from ..target.kinds import Kind, Memory
from .extent_bounds import most_kept
from .footprint import step
from .names import made_for, of_buffer
from .refuse import no_constant_size, too_large_for_a_block, too_large_for_the_stack
from .split_storage import stored_dims
from .vectorize import combined

STACK_LIMIT = 16 * 1024  # most bytes of a buffer that is put on the stack by default
STACK_ROOM = 256 * 1024  # most bytes of all buffers of one function: the stacks of threads may be only twice as large
_ZERO = const(0, INDEX)


@dataclass(frozen=True)
class _Layout:
    """The first coordinate and the stride in elements (None for 1) along each dim of a buffer.

    Overlapping windows have most indices in common, so `loads` memoizes flat loads.
    """

    mins: tuple[Expr | None, ...]
    strides: tuple[Expr | None, ...]
    loads: dict[Key, Load] = field(default_factory=dict)


def flatten(body: Stmt, graph: Graph, plan: Plan, buffers: tuple[BufferArg, ...], facts: Facts) -> Stmt:
    """Replace Realize by Alloc, and give every access a single index."""
    flattener = _Flattener(graph, plan, buffers, facts)
    flattener.note_realized(body)
    return flattener.visit(body, {}, None)


class _Arena:
    """Scratch memory of the innermost parallel loop: the bytes in use at this point, and the peaks, which nested arenas
    share."""

    def __init__(self, used: Expr, peaks: list[Expr]) -> None:
        self.used = used
        self.peaks = peaks

    def most(self) -> Expr:
        """An upper bound of the bytes that the loop needs."""
        nothing: Expr = const(0, INDEX)
        return reduce(maximum, self.peaks, nothing)


class _Flattener:
    def __init__(self, graph: Graph, plan: Plan, buffers: tuple[BufferArg, ...], facts: Facts) -> None:
        self.graph = graph
        self.plan = plan
        self.facts = facts
        self.line = plan.target.line
        self.layouts: dict[str, _Layout] = {b.name: _Layout((None,) * b.ndim, _strides(b)) for b in buffers}
        self.places: dict[tuple[int, ...], tuple[_Layout, tuple[Expr, ...], Expr]] = {}  # by the ids of the operands
        self.has_blocks = plan.target.has_blocks
        self.in_block = self.in_thread = False
        self.warps = 0  # number of warps of the current block
        self.of_warp = _Arena(_ZERO, [])  # the shared memory of a warp, in a thread loop
        self.on_stack = 0  # bytes of stack in the current function
        self.around_memory: set[int] = set()  # ids of statements that contain a Realize; only these need scopes

    def note_realized(self, s: Stmt) -> bool:
        """Whether a statement contains a Realize. The ids of statements that do are noted."""
        inside = [self.note_realized(c) for c in ir.children(s)]
        if not isinstance(s, Realize) and not any(inside):
            return False
        self.around_memory.add(id(s))
        return True

    def visit(self, s: Stmt, scope: Scope, arena: _Arena | None) -> Stmt:
        if isinstance(s, Realize):
            return self.realize(s, scope, arena)
        if isinstance(s, For) and (s.kind is Kind.PARALLEL or s.kind is Kind.BLOCK and arena is None):
            return self.parallel(s)
        if isinstance(s, For) and s.kind is Kind.THREAD:
            return self.thread(s, scope, arena)
        new = tuple(self.expression(e) for e in ir.expressions(s))
        inner = step(s, scope) if id(s) in self.around_memory else [(c, scope) for c in ir.children(s)]
        s = ir.rebuild(s, new, tuple([self.visit(c, around, arena) for c, around in inner]))
        if isinstance(s, Store):
            return Store(s.buffer, (self.index(s.buffer, s.indices),), s.value, s.mask, s.manner)
        if isinstance(s, Prefetch):
            return Prefetch(s.buffer, (self.index(s.buffer, s.indices),))
        return s

    def parallel(self, s: For) -> Stmt:
        arena = _Arena(const(0, INDEX), [])
        low, extent = self.expression(s.min), self.expression(s.extent)
        ((body, scope),) = step(s, {})
        around, self.on_stack = self.on_stack, 0  # the body becomes a separate function
        self.in_block, self.warps = s.kind is Kind.BLOCK, s.threads // WARP_SIZE
        inside = self.visit(body, scope, arena)
        self.on_stack, self.in_block = around, False
        return replace(s, min=low, extent=extent, body=inside, scratch=simplify(arena.most(), self.facts))

    def thread(self, s: For, scope: Scope, arena: _Arena | None) -> Stmt:
        """The body of a thread loop, in which buffers are private to each thread or to each warp."""
        ((body, inner),) = step(s, scope)
        self.in_thread, self.of_warp = True, _Arena(_ZERO, [])
        inside = self.visit(body, inner, arena)
        self.in_thread = False
        if arena is not None and self.of_warp.peaks:
            apart = simplify(self.of_warp.most())
            assert isinstance(apart, Const)  # all sizes in a block are
            inside = _for_each_warp(inside, int(apart.value))
            self.take(arena, apart * self.warps)
        return ir.rebuild(s, tuple(self.expression(e) for e in ir.expressions(s)), (inside,))

    def realize(self, s: Realize, scope: Scope, arena: _Arena | None) -> Stmt:
        if self.in_block:
            s = self.constant(s, scope)
        lets, layout, size = self.layout(s)
        self.layouts[s.buffer] = layout
        inner = dict(scope)
        for name, value in lets:
            inner[name] = interval(value, inner)
        memory = self.memory(s, size, arena)
        offset: Expr | None = None
        around = self.of_warp
        if memory is Memory.SHARED and self.in_thread and arena is not None:
            self.of_warp = self.take(around, size * s.dtype.bytes)
            offset = simplify(arena.used + around.used)
            self.check_shared(s, memory, simplify(arena.used + self.of_warp.used * self.warps), self.of_warp.used)
        elif memory in (Memory.SCRATCH, Memory.SHARED) and arena is not None:
            largest = interval(size, inner).high
            if largest is None:
                memory = Memory.HEAP
            else:
                arena, offset = self.take(arena, expr(largest, INDEX) * s.dtype.bytes), arena.used
                self.check_shared(s, memory, arena.used)
        result: Stmt = Alloc(s.buffer, s.dtype, size, memory, offset, self.visit(s.body, inner, arena), s.slots)
        self.of_warp = around
        for name, value in reversed(lets):
            result = Let(name, value, result)
        return result

    def constant(self, s: Realize, scope: Scope) -> Realize:
        """The Realize of memory of a block or a thread, with constant upper bounds as extents."""
        sides = [(low, most_kept(extent, scope)) for low, extent in s.box]
        if any(n is None for _, n in sides):
            raise no_constant_size(self.stage(s), s.memory)
        return replace(s, box=tuple((low, const(max(n or 1, 1), INDEX)) for low, n in sides))

    def stage(self, s: Realize) -> Stage:
        """The stage that a buffer belongs to."""
        return self.graph.producer[made_for(s.buffer)]

    def check_shared(self, s: Realize, memory: Memory, used: Expr, of_warp: Expr = _ZERO) -> None:
        """Refuse a buffer if it makes a block exceed its shared memory."""
        if memory is Memory.SHARED and isinstance(used, Const) and int(used.value) > MOST_SHARED:
            each = (self.warps, int(of_warp.value)) if isinstance(of_warp, Const) and int(of_warp.value) else None
            raise too_large_for_a_block(self.stage(s), int(used.value), MOST_SHARED, each)

    def take(self, arena: _Arena, bytes_: Expr) -> _Arena:
        """The arena during the live range of a new buffer."""
        end = simplify(arena.used + (bytes_ + (self.line - 1)) // self.line * self.line, self.facts)
        arena.peaks[:] = [p for p in arena.peaks if p is not arena.used] + [end]  # replaces the peak it extends
        return _Arena(end, arena.peaks)

    def memory(self, s: Realize, size: Expr, arena: _Arena | None) -> Memory:
        number = int(size.value) * s.dtype.bytes if isinstance(size, Const) else None
        if s.memory in (Memory.STACK, Memory.REGISTER):
            if number is None:
                raise no_constant_size(self.stage(s), s.memory)
            return self.take_stack(s, s.memory, number)
        if self.has_blocks:
            return self.of_gpu(s, number)
        if s.memory is not Memory.AUTO:
            return s.memory
        if number is not None and number <= STACK_LIMIT and self.on_stack + number <= STACK_ROOM:
            return self.take_stack(s, Memory.STACK, number)
        return Memory.HEAP if arena is None else Memory.SCRATCH

    def of_gpu(self, s: Realize, number: int | None) -> Memory:
        """The memory of a buffer on a GPU. Inside of threads it is private, unless requested to be shared by a warp;
        elsewhere inside of blocks it is shared; otherwise it is global."""
        if not self.in_block or number is None:
            return Memory.HEAP
        is_shared = s.memory is Memory.SHARED or not self.in_thread
        return Memory.SHARED if is_shared else self.take_stack(s, Memory.REGISTER, number)

    def take_stack(self, s: Realize, memory: Memory, number: int) -> Memory:
        """Reserve stack memory of the function. Registers that lowering itself introduces are few and are not
        checked."""
        stage = self.graph.producer.get(s.buffer)
        if stage is not None and self.on_stack + number > STACK_ROOM:
            raise too_large_for_the_stack(stage, s.memory, number, self.on_stack, STACK_ROOM)
        self.on_stack += number
        return memory

    def layout(self, s: Realize) -> tuple[list[tuple[str, Expr]], _Layout, Expr]:
        """Strides in memory order (1 for the innermost dim), with padded rows, and the size in elements."""
        order, pads = self.memory_order(s), self.pads(s)
        strides: list[Expr | None] = [None] * len(s.box)
        lets: list[tuple[str, Expr]] = []
        size: Expr = const(1, INDEX)
        for depth, k in enumerate(reversed(order)):
            if depth:
                strides[k] = self.named(of_buffer(s.buffer, "stride", k), size, lets)
            whole_lines = depth > 0 and not _is_shorter(size, s.dtype, self.line)
            size = simplify(size * (self.expression(s.box[k][1]) + pads.get(k, 0)), self.facts)
            if depth < len(order) - 1 and not whole_lines and not self.in_block:
                size = simplify(_padded(size, s.dtype, self.line), self.facts)
        if isinstance(size, Const) and int(size.value) < 1:  # conditions may leave nothing to compute
            size = const(1, INDEX)
        lows = [self.expression(low) for low, _ in s.box]
        mins = [self.named(of_buffer(s.buffer, "min", k), low, lets) for k, low in enumerate(lows)]
        return lets, _Layout(tuple(mins), tuple(strides)), size

    def memory_order(self, s: Realize) -> list[int]:
        """The dims of a buffer in memory order, the contiguous one last."""
        stage = self.graph.producer.get(s.buffer)
        if stage is None:  # introduced by lowering
            return list(range(len(s.box)))
        plan = self.plan.stages[stage.name]
        dims = stored_dims(stage.dims, plan.storage_splits)
        slots = int(s.slots > 1)
        return [*range(slots), *(slots + dims.index(d) for d in plan.storage)]

    def pads(self, s: Realize) -> dict[int, int]:
        """The padding along each dim, which exists only in memory."""
        stage = self.graph.producer.get(s.buffer)
        pads = {} if stage is None else self.plan.stages[stage.name].pads
        if stage is None or not pads:
            return {}
        dims = stored_dims(stage.dims, self.plan.stages[stage.name].storage_splits)
        return {int(s.slots > 1) + dims.index(dim): n for dim, n in pads.items()}

    def named(self, name: str, value: Expr, lets: list[tuple[str, Expr]]) -> Expr:
        if isinstance(value, Const):
            return value
        lets.append((name, value))
        return var(name)

    def expression(self, e: Expr) -> Expr:
        def access(n: Expr) -> Expr | None:
            return self.load(n) if isinstance(n, Load) else None

        return transform(e, access, concerns=loaded) if loaded(e) else e

    def load(self, e: Load) -> Load:
        known, like = self.layouts[e.buffer].loads, key(e)
        flat = known.get(like)
        if flat is None:
            index = broadcast(self.index(e.buffer, e.indices), e.lanes)  # one element for all lanes
            flat = known[like] = Load(e.dtype, e.lanes, e.buffer, (index,), e.mask)
        return flat

    def index(self, buffer: str, indices: tuple[Expr, ...]) -> Expr:
        """The offset in elements from the buffer's base pointer. Accesses that share their indices also share the
        offset."""
        layout = self.layouts[buffer]
        key = (id(layout), *map(id, indices))
        known = self.places.get(key)
        if known is None:
            known = self.places[key] = layout, indices, _offset(layout, indices)
        return known[2]


def _for_each_warp(s: Stmt, apart: int) -> Stmt:
    """Make shared memory in the body of a thread loop private to each warp, at a distance of `apart` bytes."""

    def change(s: Stmt) -> Stmt | None:
        return replace(s, apart=apart) if isinstance(s, Alloc) and s.memory is Memory.SHARED else None

    return ir.transform(s, change)


def _offset(layout: _Layout, indices: tuple[Expr, ...]) -> Expr:
    total: Expr = const(0, INDEX)
    for i, low, stride in zip(indices, layout.mins, layout.strides, strict=True):
        term = i if low is None else combined("sub", i, low)
        term = term if stride is None else combined("mul", term, stride)
        total = combined("add", total, term)
    return total


def _strides(b: BufferArg) -> tuple[Expr | None, ...]:
    """The strides of an array; None stands for 1."""
    known = enumerate(b.known_strides)
    return tuple(var(b.stride(k)) if n is None else None if n == 1 else const(n, INDEX) for k, n in known)


def _is_shorter(size: Expr, dtype: DType, line: int) -> bool:
    """Whether a row is certainly shorter than a cache line."""
    return isinstance(size, Const) and int(size.value) * dtype.bytes < line


def _padded(size: Expr, dtype: DType, line_bytes: int) -> Expr:
    """Pad a row. Rows start on cache lines, and an extra line keeps rows of 4096 bytes from falling on the same cache
    sets.

    Rows shorter than a line stay within one: their size becomes a power of two. The channels of a pixel are packed, so
    that pixels are rows without gaps.
    """
    line = line_bytes // dtype.bytes
    if isinstance(size, Const) and _is_shorter(size, dtype, line_bytes):
        n = int(size.value)
        return size if n <= MOST_CHANNELS else const(1 << (n - 1).bit_length(), INDEX)
    return (size + (2 * line - 1)) // line * line if not isinstance(size, Const) else (size + (line - 1)) // line * line
