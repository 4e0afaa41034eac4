"""Outline: the body of every parallel loop becomes a kernel that lists everything it uses, and the loop becomes its
launch.

    parallel for y in 0..h:             launch y.0(w, 2, f, img) h times
        for x in 0..w:                  launch y.0(w, 3, g, f) h times
            f[y*w + x] = img[x]*2
    parallel for v in 0..h:             kernel y.0(w: index, c: float32, f: float32[], img: float32[]) for y from 0:
        for u in 0..w:                      for x in 0..w:
            g[v*w + u] = f[u]*3                 f[y*w + x] = img[x]*c

The rest is a host part that allocates and launches. If parallel loops are nested, a kernel launches others; inner loops
are outlined first. Loops of the same structure (`kernel_merging`) share a kernel, because compilation takes most of the
time and the sweeps of an iterated stencil, or the layers of a network, are the same code. Debug builds, which report
the buffer of an invalid access, have a kernel for each loop.

This pass requires flat storage with scratch memory planned. No pass that looks for parallel loops may follow it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_

from ..expr.build import broadcast
from ..expr.nodes import Const, Expr, Op, Var, const, var
from ..expr.types import INDEX, DType
from ..expr.visit import Key, each_once, key
from ..expr.visit import rebuild as rebuild_expr
from ..ir.nodes import Alloc, CapturedBuffer, For, Kernel, Launch, Program, Stmt
from ..ir.overlap import overlaps
from ..ir.visit import children, expressions, map_children, rebuild, walk
from ..target.gpu import LONGEST_ACCESS
from ..target.kinds import CacheOperator, Kind
from .kernel_merging import Constant, Family, SerializedLoop, Spot, is_added, read, starts_at_zero
from .names import of_loop

_KERNELS = (Kind.PARALLEL, Kind.BLOCK)
_SEVERAL = 3  # least number of kernels to merge


def outline(program: Program, share: bool = True) -> Program:
    """Return the program with kernels in place of parallel loops. With `share`, loops of the same structure share a
    kernel."""
    dtypes = {s.buffer: s.dtype for s in walk(program.body) if isinstance(s, Alloc)}
    dtypes.update({b.name: b.dtype for b in program.buffers})
    meeting = overlaps(program)
    loose = {b.name: b.alignment for b in program.buffers if b.alignment < LONGEST_ACCESS}
    body, kernels = program.body, list[Kernel]()
    while True:
        loops = _innermost(body)
        if not loops:
            return replace(program, body=body, kernels=tuple(kernels))
        readings = [read(loop, dtypes, meeting, loose) for loop in loops]
        if share:
            capturing = functools.partial(read, dtypes=dtypes, overlaps=meeting, loose=loose, computes=False)
            readings = _capturing(loops, readings, capturing)
        launches: dict[int, Stmt] = {}
        for family, members in _families(readings, share):
            kernel = _kernel(loops[members[0]], family, len(kernels), dtypes)
            kernels.append(kernel)
            launches |= {id(loops[k]): _launch(kernel, loops[k], readings[k], family) for k in members}
        body = _with_launches(body, launches)


def _innermost(s: Stmt) -> list[For]:
    """The innermost parallel loops, in program order."""
    inside = [loop for c in children(s) for loop in _innermost(c)]
    return inside or ([s] if isinstance(s, For) and s.kind in _KERNELS else [])


def _capturing(
    loops: list[For], readings: list[SerializedLoop], capturing: Callable[[For], SerializedLoop]
) -> list[SerializedLoop]:
    """Readings in which loops capture expressions of captured scalars if only this makes the loops equal.

    The number of blocks may be (h + 95)//64 in one loop and h//64 + 2 in another; the host then computes it. This is
    for chains of stages and levels of pyramids. Merging two kernels into a more general third one is not worthwhile.
    """
    by_shape: dict[tuple[object, ...], list[int]] = {}
    for k, reading in enumerate(readings):
        by_shape.setdefault(reading.shape, []).append(k)
    groups: dict[tuple[object, ...], list[list[int]]] = {}
    for members in by_shape.values() if len(by_shape) >= _SEVERAL else ():
        groups.setdefault(capturing(loops[members[0]]).shape, []).append(members)
    changed = {k for several in groups.values() if len(several) >= _SEVERAL for members in several for k in members}
    return [capturing(loops[k]) if k in changed else reading for k, reading in enumerate(readings)]


def _families(readings: list[SerializedLoop], share: bool) -> list[tuple[Family, list[int]]]:
    """Group loops of the same structure. Each joins the first family that still needs few enough parameters with it."""
    families: list[tuple[Family, list[int]]] = []
    by_shape: dict[tuple[object, ...], list[tuple[Family, list[int]]]] = {}
    for k, reading in enumerate(readings):
        candidates = by_shape.setdefault(reading.shape, []) if share else []
        for family, members in candidates:
            if family.join(reading):
                members.append(k)
                break
        else:
            candidates.append((Family(reading), [k]))
            families.append(candidates[-1])
    return families


def _kernel(loop: For, family: Family, number: int, dtypes: Mapping[str, DType]) -> Kernel:
    """The kernel of a family, made from its first loop."""
    first, cached = family.first, dict(loop.cached)
    begin = const(0, INDEX) if starts_at_zero(loop) else var(of_loop(loop.var, "begin"))
    types = [t for t, _ in family.parameters(first)]
    parameters = tuple([var(of_loop(loop.var, "constant", k), t) for k, t in enumerate(types)])
    made = [e for e in first.scalars if not isinstance(e, Var)]
    captured = {key(e): var(of_loop(loop.var, "constant", len(types) + k)) for k, e in enumerate(made)}
    scalars = [e if isinstance(e, Var) else captured[key(e)] for e in first.scalars]
    body = loop.body
    if parameters or captured:
        body = _with_parameters(loop.body, family.places(), parameters, captured)
    return Kernel(
        f"{loop.var}.{number}",
        loop.var,
        begin,
        (*([begin] if isinstance(begin, Var) else []), *scalars, *parameters),
        tuple([CapturedBuffer(b, dtypes[b], cached.get(b, CacheOperator.ALL)) for b in first.buffers]),
        body,
        loop.threads,
        int(loop.scratch.value) if loop.kind is Kind.BLOCK and isinstance(loop.scratch, Const) else 0,
        f"{loop.var}.{number}.resident" if loop.persistent else None,
    )


def _launch(kernel: Kernel, loop: For, reading: SerializedLoop, family: Family) -> Launch:
    begin = () if starts_at_zero(loop) else (loop.min,)
    parameters = [_number(c) for c in family.parameters(reading)]
    scratch = loop.scratch if loop.kind is Kind.PARALLEL else None
    return Launch(kernel.name, (*begin, *family.scalars(reading), *parameters), reading.buffers, loop.extent, scratch)


def _number(constant: Constant) -> Const:
    t, value = constant
    return const(float.fromhex(value) if isinstance(value, str) else value, t)


def _with_launches(s: Stmt, launches: Mapping[int, Stmt]) -> Stmt:
    launch = launches.get(id(s))
    if launch is not None:
        return launch
    return map_children(s, lambda c: _with_launches(c, launches))


# Constants that become parameters


def _with_parameters(
    body: Stmt, places: list[tuple[Spot, int]], parameters: tuple[Var, ...], captured: Mapping[Key, Var]
) -> Stmt:
    """The body, with these constants and captured expressions replaced by parameters."""
    extents = {id(spot): parameters[k] for spot, k in places if isinstance(spot, For)}
    others = {key(spot): parameters[k] for spot, k in places if isinstance(spot, Op)}
    return _changed(body, extents, others, captured, {})


def _changed(
    s: Stmt, extents: Mapping[int, Var], others: Mapping[Key, Var], captured: Mapping[Key, Var], memo: dict[int, Expr]
) -> Stmt:
    exprs = [_parameterized(e, others, captured, memo) for e in expressions(s)]
    if id(s) in extents:
        exprs[1] = extents[id(s)]
    return rebuild(s, tuple(exprs), tuple([_changed(c, extents, others, captured, memo) for c in children(s)]))


def _parameterized(e: Expr, spots: Mapping[Key, Var], captured: Mapping[Key, Var], memo: dict[int, Expr]) -> Expr:
    def visit(node: Expr) -> Expr:
        if captured and isinstance(node, Op) and key(node) in captured:
            return captured[key(node)]
        old = node.operands
        new = tuple([memo[id(c)] for c in old])
        if isinstance(node, Op) and key(node) in spots:
            return _with_parameter(node, new, spots[key(node)])
        if all(map(is_, new, old)):
            return node
        return Op(node.dtype, node.lanes, node.op, new) if isinstance(node, Op) else rebuild_expr(node, new)

    return each_once(e, memo, visit)


def _with_parameter(node: Op, operands: tuple[Expr, ...], parameter: Var) -> Expr:
    if is_added(node):
        return Op(INDEX, 1, "add", (Op(INDEX, 1, "add", (operands[0], parameter)), operands[1]))
    name = "shr" if node.op == "floordiv" else node.op  # by a power of two
    return Op(node.dtype, node.lanes, name, (operands[0], broadcast(parameter, node.lanes), *operands[2:]))
