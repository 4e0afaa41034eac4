"""Execution of the instructions that the threads of a warp or of a warpgroup execute together.

The elements of the operands are collected from the lanes and registers given by their layouts, or from matrices in
shared memory. The loop nest that defines the instruction then runs on them for all warps at once, and the elements of
the result are distributed to lanes and registers by its layout. In this module, "warp" stands for warpgroup where a
warpgroup executes the instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ..errors import InternalError
from ..expr.nodes import Cast, Const, Expr, Instruction, Load, Op, Var
from ..expr.visit import names, walk
from ..ir.instructions import Effect, InstructionSpec, ThreadGroup, lies, spec_of
from ..ir.nodes import Block, For, Stmt, Store
from ..ir.visit import walk as statements
from ..reference.operations import apply, convert, held
from ..target.gpu import LONGEST_ACCESS, WARP_SIZE
from ..target.layout import Layout, Place, Unit
from .accesses import Around, Buffer, ThreadAccess, failure
from .active import Active, Array
from .matrices import WARPGROUP
from .shared_memory import SharedBuffer

_THREADS = {ThreadGroup.WARP: WARP_SIZE, ThreadGroup.WARPGROUP: WARPGROUP}


def execute(e: Instruction, args: list[Array], buffers: Mapping[str, Buffer], active: Active, around: Around) -> Array:
    """Execute an instruction and return its result in every thread.

    If a warp executes it together, all threads of the warp must be active: otherwise a GPU waits for them, or the
    result is undefined.
    """
    spec = spec_of(e.name)
    if spec.meaning is None or spec.result is None or spec.result.layout is None:
        raise InternalError(f"{e} computes nothing")
    if spec.group in _THREADS:
        check_whole(spec, active, around)
    work = _Execution(spec, active, around)
    for k, (operand, arg) in enumerate(zip(spec.operands, args, strict=True)):
        if operand.layout is not None:
            work.elements[operand.name] = _collected(arg, operand.layout, active.mask.shape, work.threads)
        elif operand.matrix is not None:
            work.elements[operand.name] = _matrix(e, k, operand.matrix, arg, buffers, active, around)
    memory = next((b.memory for b in buffers.values() if isinstance(b, SharedBuffer)), None)
    if spec.effect is Effect.READ_MATRICES and memory is not None:
        memory.matrices.end_product(active)
    elif spec.effect is Effect.WAIT_MATRICES and memory is not None:
        memory.wait_matrices(active, int(args[-1].item()), around.epochs)
    layout, alike = spec.result.layout, e.lanes // spec.result.layout.count(Unit.REGISTER)
    result = np.zeros((work.warps, alike, *layout.shape), held(e.dtype))
    work.elements[spec.result.name] = result
    work.run(spec.meaning, ())
    lanes = () if e.lanes == 1 else (e.lanes,)
    return _distributed(result, layout, work.threads).reshape(*active.mask.shape, *lanes)


def check_whole(spec: InstructionSpec, active: Active, around: Around) -> Array:
    """Raise an error if only some lanes of a warp execute an instruction. Return a mask of the warps of each block that
    execute it."""
    threads = _THREADS[spec.group]
    if active.mask.shape[1] % threads:
        raise failure(around, 0, None, f"there are no {threads} threads to execute {spec.name} together")
    warps = active.mask.reshape(active.mask.shape[0], -1, threads)
    broken = np.argwhere(warps.any(axis=2) != warps.all(axis=2))
    if not len(broken):
        return np.asarray(warps.all(axis=2))
    block, warp = (int(n) for n in broken[0])
    present, absent = (warp * threads + int(np.argmax(m)) for m in (warps[block, warp], ~warps[block, warp]))
    text = f"executes {spec.name}, which thread {absent} of its {spec.group.value} does not take part in"
    raise failure(around, block, present, text)


# Arrays of elements have the axes (warps, vector lanes that are treated alike, dims of the box ...).


def _collected(value: Array, layout: Layout, shape: tuple[int, ...], threads: int) -> Array:
    """Collect the elements of an operand from the lanes and registers that hold them."""
    lanes = value.shape[2] if value.ndim == 3 else 1
    alike = lanes if layout.count(Unit.REGISTER) == 1 else 1
    whole = np.broadcast_to(value, (*shape, *value.shape[2:]))
    registers = whole.reshape(-1, threads, lanes // alike, alike)
    place = _places(layout)
    return np.moveaxis(registers[:, place.thread % threads, place.register], -1, 1)


def _matrix(
    e: Instruction,
    k: int,
    shape: tuple[int, int],
    first: Array,
    buffers: Mapping[str, Buffer],
    active: Active,
    around: Around,
) -> Array:
    """Load a matrix from shared memory; operand `k` is its first row. Each thread of a warpgroup reads an equal part of
    it."""
    row = e.args[k]
    buffer = buffers[row.buffer] if isinstance(row, Load) else None
    if not isinstance(buffer, SharedBuffer):
        raise InternalError(f"{e.name} multiplies {row}, which is not in shared memory")
    start = np.broadcast_to(first[:, :, 0], active.mask.shape)
    groups = start.reshape(start.shape[0], -1, WARPGROUP)
    differ = active.mask & (start != np.repeat(groups[:, :, 0], WARPGROUP, axis=1))
    if differ.any():
        block, thread = (int(n) for n in np.argwhere(differ)[0])
        raise failure(around, block, thread, f"executes {e.name} of another matrix than others of its warpgroup")
    if not buffer.is_aligned(start[active.mask], LONGEST_ACCESS):
        raise failure(around, 0, None, f"{e.name} multiplies a matrix that begins at no multiple of 16 bytes")
    rows, terms = np.indices(shape).reshape(2, -1)
    where = lies(e, k)
    offsets = np.array([where.offset(int(m), int(t)) for m, t in zip(rows, terms, strict=True)]).reshape(WARPGROUP, -1)
    number = np.arange(start.shape[1]) % WARPGROUP
    element = start[:, :, None] + offsets[number].astype(start.dtype)
    values = buffer.load_matrix(ThreadAccess(element, None, element.shape[2], active))
    return values.reshape(-1, 1, *shape)


def _distributed(elements: Array, layout: Layout, threads: int) -> Array:
    """Distribute elements to the registers of all lanes; the inverse of `_collected`."""
    warps, alike = elements.shape[:2]
    registers = np.zeros((warps, threads, layout.count(Unit.REGISTER), alike), elements.dtype)
    place = _places(layout)
    registers[:, place.thread % threads, place.register] = np.moveaxis(elements, 1, -1)
    return registers


@cache
def _places(layout: Layout) -> Place:
    """The thread and register of every element of the box."""
    place = layout.place(*np.indices(layout.shape))
    return Place(*(np.broadcast_to(n, layout.shape) for n in place))


class _Execution:
    """A loop nest that all warps run at once. Values have the axes (warps, alike, loops ...), or only those of loops.

    Loops over the dims of the stored result become axes. Other loops, over the terms of a sum, run iteration by
    iteration.
    """

    def __init__(self, spec: InstructionSpec, active: Active, around: Around) -> None:
        self._spec, self._around = spec, around
        self.threads = _THREADS.get(spec.group, WARP_SIZE)  # the number that execute the instruction together
        self._active: Array = active.mask.reshape(-1, self.threads)[:, 0]
        self._warps_per_block = active.mask.shape[1] // self.threads
        self.warps = len(self._active)
        self.elements: dict[str, Array] = {}
        self._scalars: dict[str, Array] = {}
        self._axes = 0  # the number of loops that are axes

    def run(self, s: Stmt, axes: tuple[For, ...]) -> None:
        """Run a statement; `axes` are the enclosing loops that are axes."""
        if isinstance(s, For) and _depends(s):
            self.run(s.body, (*axes, s))
        elif isinstance(s, For):
            for k in range(_extent(s)):
                self._scalars[s.var] = np.array(k)
                self.run(s.body, axes)
        elif isinstance(s, Block):
            for c in s.stmts:
                self.run(c, axes)
        elif isinstance(s, Store):
            shape = tuple(_extent(loop) for loop in axes)
            self._axes = len(axes)
            for axis, loop in enumerate(axes):
                self._scalars[loop.var] = np.arange(shape[axis]).reshape(-1, *[1] * (len(axes) - 1 - axis))
            stored = self.elements[s.buffer]
            at = _in_all_warps(np.broadcast_arrays(*map(self._value, s.indices)))
            stored[at] = np.broadcast_to(self._value(s.value), (*stored.shape[:2], *shape))
        else:
            raise InternalError(f"the meaning of {self._spec.name} has a {type(s).__name__}")

    def _value(self, e: Expr) -> Array:
        if isinstance(e, Const):
            return np.asarray(e.value, held(e.dtype))
        if isinstance(e, Var):
            return self._scalars[e.name]
        if isinstance(e, Load):
            return self._load(e)
        if isinstance(e, Op):
            return apply(e.op, e.args[-1].dtype, *map(self._value, e.args))
        if isinstance(e, Cast):
            return convert(self._value(e.value), e.value.dtype, e.dtype)
        raise InternalError(f"the meaning of {self._spec.name} has the {type(e).__name__} {e}")

    def _load(self, e: Load) -> Array:
        elements, indices = self.elements[e.buffer], np.broadcast_arrays(*map(self._value, e.indices))
        if not any(isinstance(n, Load) for i in e.indices for n in walk(i)):
            chosen: Array = elements[_in_all_warps(indices)]
            outer = [1] * (self._axes - indices[0].ndim)  # loops that no index depends on
            shaped: Array = chosen.reshape(*chosen.shape[:2], *outer, *chosen.shape[2:])
            return shaped
        warps, alike, *box = elements.shape
        inside = [self._inside(e, index, extent) for index, extent in zip(indices, box, strict=True)]
        flat = np.ravel_multi_index(inside, box).reshape(warps, 1, -1)
        gathered = np.take_along_axis(elements.reshape(warps, alike, -1), flat, axis=2)
        return gathered.reshape(warps, alike, *indices[0].shape[2:])

    def _inside(self, e: Load, index: Array, extent: int) -> Array:
        """Check the bounds of an index that is computed from operands. In inactive warps, it may have any value."""
        wrong = ((index < 0) | (index >= extent)) & self._active.reshape(-1, *[1] * (index.ndim - 1))
        if wrong.any():
            place = np.argwhere(wrong)[0]
            block, warp = divmod(int(place[0]), self._warps_per_block)
            text = f"warp {warp} executes {self._spec.name} with {e.indices[0]} = {index[tuple(place)]}"
            raise failure(self._around, block, None, f"{text}; {e.buffer} has elements 0 .. {extent - 1}")
        return np.clip(index, 0, extent - 1)


def _depends(loop: For) -> bool:
    """Whether the loop runs over a dim of the buffer that it stores to."""
    return any(loop.var in names(i) for s in statements(loop) if isinstance(s, Store) for i in s.indices)


def _in_all_warps(indices: Iterable[Array]) -> Any:
    return slice(None), slice(None), *indices


def _extent(loop: For) -> int:
    if not isinstance(loop.extent, Const):
        raise InternalError(f"loop {loop.var} has the extent {loop.extent}")
    return int(loop.extent.value)
