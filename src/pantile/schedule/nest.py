"""The loops of one definition while directives are applied to them, and the rules that each directive must obey.

NestDraft = the loops so far, outermost first, and the rewrites that made them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from ..dataclass import dataclass
from ..errors import UserError
from ..expr.types import DType
from ..graph.nodes import Graph, Stage
from ..target.kinds import WRITTEN_OUT, Kind
from ..target.mma import COLUMNS, MMAS, ROWS
from ..target.wgmma import COLUMNS as COLUMNS_OF_WARPGROUPS
from ..target.wgmma import MOST_STEPS, OPERANDS, STEP
from .directives import KINDS, OF_SEVERAL, SUFFIX, Directive
from .limits import MOST_LOOPS
from .matrix_product import MatrixProduct, matrix_product
from .plan import ONCE, Fuse, Loop, Nest, Split
from .refuse import did_you_mean, refuse
from .updates import accumulation, constant, is_independent, loop_names


@dataclass
class LoopDraft:
    """A loop. `ordered` tells that its iterations must run in order, and `mark` is the directive that gave it its kind.

    If `extent` is not known, `inferred` tells that bounds inference may find a constant, because the dim is computed
    only as far as it is read.
    """

    name: str
    extent: int | None
    ordered: bool
    inferred: bool = False
    kind: Kind = Kind.SERIAL
    partition: str = "auto"
    mark: Directive | None = None


@dataclass
class NestDraft:
    """The loops of definition `index` of `stage` (0: pure)."""

    stage: Stage
    index: int
    is_output: bool
    strict: bool
    loops: list[LoopDraft]
    rewrites: list[Split | Fuse] = field(default_factory=list)
    # Every name that a loop has had, so that no name is used twice.
    used: set[str] = field(default_factory=set)
    atomic: Directive | None = None
    threads: Directive | None = None
    persistent: Directive | None = None
    tensor_core: Directive | None = None

    @property
    def names(self) -> list[str]:
        return [loop.name for loop in self.loops]

    def find(self, d: Directive, name: str) -> int:
        """The position of a loop in the nest."""
        if name not in self.names:
            raise self.no(d, f"{self.title} has no loop {name!r}", did_you_mean(name, self.names))
        return self.names.index(name)

    @property
    def of_blocks(self) -> tuple[Directive | None, ...]:
        """The directives that concern whole blocks."""
        return self.threads, self.persistent

    @property
    def is_of_warpgroups(self) -> bool:
        """Whether warpgroups execute the instructions of tensor cores. Instructions of one warp have fewer columns."""
        columns = None if self.tensor_core is None else str(self.tensor_core.args[1])
        return any(x.name == columns and x.extent in COLUMNS_OF_WARPGROUPS for x in self.loops)

    @property
    def title(self) -> str:
        return "the pure definition" if self.index == 0 else f"update {self.index - 1}"

    def no(self, d: Directive, why: str, remedy: str) -> UserError:
        return refuse(self.stage, d, why, remedy)

    def finished(self) -> Nest:
        """The nest as lowering reads it."""
        return Nest(
            tuple(self.rewrites),
            tuple(Loop(x.name, x.kind, x.partition, x.mark) for x in self.loops),
            self.atomic is not None,
            None if self.threads is None else int(self.threads.args[0]),
            self.persistent is not None,
            () if self.tensor_core is None else tuple(map(str, self.tensor_core.args)),
        )


def draft_nest(graph: Graph, stage: Stage, index: int, strict: bool) -> NestDraft:
    """The loops of a definition before any directive."""
    definition = stage.definitions[index]
    extents = {**_output_extents(graph, stage), **{r.name: constant(r.extent) for r in definition.domain}}
    loops = [
        LoopDraft(name, extents.get(name), not is_independent(stage, definition, name), name not in extents)
        for name in loop_names(stage, definition)
    ]
    return NestDraft(stage, index, stage.name in graph.output, strict, loops, used={x.name for x in loops})


def _output_extents(graph: Graph, stage: Stage) -> dict[str, int | None]:
    """The extents of an output that no other stage reads. It is computed exactly over its shape."""
    if stage.name not in graph.output or graph.consumers[stage.name]:
        return {}
    return {d: constant(e) for d, e in zip(stage.dims, graph.output[stage.name].shape, strict=True)}


# ---- one function per directive


def split(nest: NestDraft, d: Directive) -> None:
    old, outer, inner, factor = d.args
    _split(nest, d, str(old), str(outer), str(inner), int(factor))


def _split(nest: NestDraft, d: Directive, old: str, outer: str, inner: str, factor: int) -> None:
    position = nest.find(d, old)
    loop = nest.loops[position]
    if loop.kind is not Kind.SERIAL:
        raise nest.no(d, f"loop {old} is already {loop.kind}", f"write the split before {loop.mark}")
    if len(nest.loops) >= MOST_LOOPS:
        raise nest.no(d, f"{nest.title} has {len(nest.loops)} loops already", "split less often")
    _new_name(nest, d, inner)
    if outer != old:
        _new_name(nest, d, outer)
    count = None if loop.extent is None else math.ceil(loop.extent / factor)
    nest.loops[position : position + 1] = [
        LoopDraft(outer, count, loop.ordered, loop.inferred, partition=loop.partition),
        LoopDraft(inner, factor, loop.ordered, partition=loop.partition),
    ]
    nest.rewrites.append(Split(old, outer, inner, factor, choose_tail(nest, d)))


def _new_name(nest: NestDraft, d: Directive, name: str) -> None:
    if name in nest.used:
        raise nest.no(d, f"{name!r} already names a loop of {nest.title}", "choose another name")
    nest.used.add(name)


def choose_tail(nest: NestDraft, d: Directive) -> str:
    """Choose the tail of a split, for extents that its factor does not divide. All rules about tails are here.

    Pure values may be computed twice, so their last block shifts inwards; an update must visit each point once.
    """
    if d.tail == "auto":
        return "shift" if nest.index == 0 else "guard"
    if nest.index > 0 and d.tail not in ONCE:
        raise nest.no(
            d, f'tail="{d.tail}" would apply {nest.title} more often than once to some points', 'use tail="guard"'
        )
    return d.tail


def tile(nest: NestDraft, d: Directive) -> None:
    n = len(d.args) // 4
    old, outer, inner = ([str(a) for a in d.args[k * n : (k + 1) * n]] for k in range(3))
    for names, factor in zip(zip(old, outer, inner, strict=True), d.args[3 * n :], strict=True):
        _split(nest, d, *names, int(factor))
    _reorder(nest, d, [*outer, *inner])


def reorder(nest: NestDraft, d: Directive) -> None:
    _reorder(nest, d, [str(a) for a in d.args])


def _reorder(nest: NestDraft, d: Directive, names: list[str]) -> None:
    places = [nest.find(d, name) for name in names]
    if len(set(places)) < len(places):
        raise nest.no(d, "a loop is named twice", "name each loop once")
    before = [x.name for x in nest.loops if x.ordered]
    moved = [nest.loops[p] for p in places]
    for place, loop in zip(sorted(places), moved, strict=True):
        nest.loops[place] = loop
    if [x.name for x in nest.loops if x.ordered] != before:
        _check_any_order(nest, d, before)


def _check_any_order(nest: NestDraft, d: Directive, ordered: list[str]) -> None:
    """Refuse to interchange loops that carry a dependence, unless they accumulate terms whose order is free."""
    terms = accumulation(nest.stage, nest.stage.definitions[nest.index])
    loops = ", ".join(ordered)
    if terms is None:
        raise nest.no(
            d,
            f"the loops {loops} of {nest.title} carry values from one iteration to the next",
            "leave them in this order; other loops may move around them",
        )
    if nest.strict and not all(t.is_exact for t in terms):
        raise nest.no(
            d,
            f"another order of the loops {loops} would round float sums differently, and strict=True forbids that",
            "leave them in this order, or compile without strict",
        )


def fuse(nest: NestDraft, d: Directive) -> None:
    outer, inner, fused = map(str, d.args)
    position, below = nest.find(d, outer), nest.find(d, inner)
    a, b = nest.loops[position], nest.loops[below]
    if below != position + 1:
        raise nest.no(
            d,
            f"loop {inner} is not directly inside loop {outer} (the loops are {', '.join(nest.names)})",
            "reorder them first",
        )
    for loop in (a, b):
        if loop.kind is not Kind.SERIAL:
            raise nest.no(d, f"loop {loop.name} is already {loop.kind}", f"write the fuse before {loop.mark}")
    if fused not in (outer, inner):
        _new_name(nest, d, fused)
    extent = None if a.extent is None or b.extent is None else a.extent * b.extent
    inferred = all(x.inferred or x.extent is not None for x in (a, b))
    nest.loops[position : position + 2] = [LoopDraft(fused, extent, a.ordered or b.ordered, inferred)]
    nest.rewrites.append(Fuse(outer, inner, fused))


def mark(nest: NestDraft, d: Directive) -> None:
    """Give a loop its kind. vectorize, unroll and parallel mark one loop, or one of its halves if they have a factor by
    which to split it; other directives mark several loops."""
    if d.verb in OF_SEVERAL:
        for loop_name in d.args:
            _mark(nest, d, str(loop_name))
        return
    name = str(d.args[0])
    if len(d.args) == 2:
        inner = name + SUFFIX[d.verb]
        _split(nest, d, name, name, inner, int(d.args[1]))
        name = name if d.verb == "parallel" else inner
    _mark(nest, d, name)


def _mark(nest: NestDraft, d: Directive, name: str) -> None:
    loop = nest.loops[nest.find(d, name)]
    if loop.kind is not Kind.SERIAL:
        raise nest.no(d, f"loop {name} is already {loop.kind} by {loop.mark}", "give a loop one kind")
    _check_mark(nest, d, loop)
    loop.kind, loop.mark = KINDS[d.verb], d


def _check_mark(nest: NestDraft, d: Directive, loop: LoopDraft) -> None:
    if KINDS[d.verb] in WRITTEN_OUT and loop.extent is None and not loop.inferred:
        raise unknown_extent(nest, d, loop)
    kind, is_atomic = KINDS[d.verb], nest.atomic is not None
    if is_atomic and kind is Kind.VECTOR:
        raise _one_at_a_time(nest, d)
    if kind is Kind.LANE and loop.ordered:
        _check_combined(nest, d, loop)
    elif loop.ordered and kind is not Kind.UNROLL and not (is_atomic and kind in (Kind.BLOCK, Kind.THREAD)):
        raise nest.no(
            d,
            f"the iterations of loop {loop.name} of {nest.title} touch the same elements of {nest.stage.name}",
            _instead_of_racing(nest, d),
        )


def _check_combined(nest: NestDraft, d: Directive, loop: LoopDraft) -> None:
    """Refuse a reduction across the lanes of a warp whose terms may not be reordered."""
    terms = accumulation(nest.stage, nest.stage.definitions[nest.index])
    if terms is None:
        raise nest.no(
            d,
            f"loop {loop.name} of {nest.title} carries values from one iteration to the next, other than "
            "sums, minima and the like",
            "leave this one serial",
        )
    if nest.strict and not all(t.is_exact for t in terms):
        raise nest.no(
            d,
            f"lanes that combine the terms of loop {loop.name} would round float sums differently, and "
            "strict=True forbids that",
            "leave it serial, or compile without strict",
        )


def tensor_core(nest: NestDraft, d: Directive) -> None:
    """Mark the loops of a matrix product. Refuse one that is not a matrix instruction."""
    loops = [nest.loops[nest.find(d, str(name))] for name in d.args]
    product = _product(nest, loops)
    if product is None:
        raise nest.no(
            d,
            f"{nest.title} is no product of matrices, c[i, j] += T(a[i, k])*T(b[k, j]), over parts of i, j and k",
            "name loops over rows, columns and terms of one, or leave it out",
        )
    types = product.a.dtype.name, product.accumulator.name
    if types not in MMAS:
        known = ", ".join(f"{a} to {b}" for a, b in MMAS)
        raise nest.no(
            d,
            f"tensor cores do not add up products of {types[0]} in {types[1]}",
            f"use one of {known}, or leave it out",
        )
    if nest.strict and product.accumulator.is_float:
        raise nest.no(
            d,
            "tensor cores add up floats in another order and round them differently, and strict=True forbids that",
            "leave it out, or compile without strict",
        )
    nest.tensor_core = d
    is_wide = types in OPERANDS and nest.is_of_warpgroups
    columns = COLUMNS_OF_WARPGROUPS if is_wide else (COLUMNS, 2 * COLUMNS)
    terms = range(STEP, (MOST_STEPS + 1) * STEP, STEP) if is_wide else (MMAS[types].terms,)
    for loop, counts in zip(loops, ((ROWS,), columns, terms), strict=True):
        if loop.kind is not Kind.SERIAL:
            raise nest.no(d, f"loop {loop.name} is already {loop.kind} by {loop.mark}", "give a loop one kind")
        if loop.extent not in counts:
            has = "an unknown number of" if loop.extent is None else loop.extent
            split = f'.split("{loop.name}", "outer", "inner", {counts[0]})'
            raise nest.no(
                d,
                f"loop {loop.name} has {has} iterations, and the instruction takes {counts[0]} of it",
                f"split it, as in {split}, and name the inner loop",
            )
        loop.kind, loop.mark = Kind.TENSOR_CORE, d


def _product(nest: NestDraft, loops: Sequence[LoopDraft]) -> MatrixProduct | None:
    """The matrix product whose rows, columns and terms these loops iterate over, or None."""
    over = [split_from(nest, loop.name) for loop in loops]
    if nest.index == 0 or None in over:
        return None
    rows, columns, terms = map(str, over)
    return matrix_product(nest.stage, nest.stage.definitions[nest.index], rows, columns, terms)


def split_from(nest: NestDraft, name: str) -> str | None:
    """The dim or reduction loop of which a loop is a part, or None for a fused loop."""
    for r in reversed(nest.rewrites):
        if isinstance(r, Fuse) and name == r.fused:
            return None
        if isinstance(r, Split) and name in (r.outer, r.inner):
            name = r.old
    return name


def atomic(nest: NestDraft, d: Directive) -> None:
    """Make an update atomic. Refuse one that is not a single atomic instruction of a GPU."""
    terms = accumulation(nest.stage, nest.stage.definitions[nest.index])
    if nest.index == 0 or terms is None or not all(is_one_instruction(t.op, t.dtype) for t in terms):
        raise nest.no(
            d,
            f"{nest.title} does not combine each value with a new one by +, minimum, maximum, &, | or ^ "
            "of integers of 32 or 64 bits, or by + of float32 or float64",
            "leave atomic out",
        )
    if nest.strict and not all(t.is_exact for t in terms):
        raise nest.no(
            d,
            "sums of floats in any order round differently, and strict=True forbids that",
            "drop atomic, or compile without strict",
        )
    vector = next((loop for loop in nest.loops if loop.kind is Kind.VECTOR), None)
    if vector is not None:
        raise _one_at_a_time(nest, vector.mark or d)
    nest.atomic = d


def _of_blocks(nest: NestDraft, d: Directive) -> None:
    """Record a directive that concerns whole blocks: `threads` or `persistent`."""
    setattr(nest, d.verb, d)


def _one_at_a_time(nest: NestDraft, d: Directive) -> UserError:
    return nest.no(d, f"{nest.title} is atomic, and combines one value at a time", "leave the loop serial")


def is_one_instruction(name: str, t: DType) -> bool:
    """Whether a GPU has an atomic instruction for an operation on values of a type in memory."""
    if t.is_float:
        return name == "add" and t.kind == "float" and t.bits in (32, 64)
    return name in ("add", "min", "max", "and", "or", "xor") and t.is_int and t.bits in (32, 64)


def unknown_extent(nest: NestDraft, d: Directive, loop: LoopDraft) -> UserError:
    """The error for vectorizing or unrolling a loop of unknown extent."""
    return nest.no(
        d,
        f"the extent of loop {loop.name} is not known when compiling",
        f'split it by a constant, as in .{d.verb}("{loop.name}", 8)',
    )


def _instead_of_racing(nest: NestDraft, d: Directive) -> str:
    definition = nest.stage.definitions[nest.index]
    if accumulation(nest.stage, definition) is None:
        return f"only loops that do not carry values can be {KINDS[d.verb]}; leave this one serial"
    then = f'to reduce in two steps, and {d.verb} the loop u of pt.on("{nest.stage.name}_u").update()'
    loop = d.args[0]
    if all(r.name != loop for r in definition.domain):
        return f'write .rfactor(loop, "u") with a reduction loop right after .update(...) {then}'
    if len(d.args) == 1:
        return f'write .rfactor("{loop}", "u") {then}'
    half = "outer" if d.verb == "parallel" else "inner"
    return f'write .split("{loop}", "outer", "inner", {d.args[1]}).rfactor("{half}", "u") {then}'


def partition(nest: NestDraft, d: Directive) -> None:
    nest.loops[nest.find(d, str(d.args[0]))].partition = str(d.args[1])


DIRECTIVES = {
    "split": split,
    "tile": tile,
    "reorder": reorder,
    "fuse": fuse,
    "partition": partition,
    "atomic": atomic,
    "threads": _of_blocks,
    "persistent": _of_blocks,
    **dict.fromkeys(KINDS, mark),
    "tensor_core": tensor_core,
}


def check_vector_innermost(nest: NestDraft) -> None:
    """Refuse loops other than unrolled ones inside of a vector loop."""
    for position, loop in enumerate(nest.loops):
        inside = [x for x in nest.loops[position + 1 :] if x.kind is not Kind.UNROLL]
        if loop.kind is Kind.VECTOR and loop.mark is not None and inside:
            other = f"loop {inside[0].name} ({inside[0].kind})"
            raise nest.no(
                loop.mark,
                f"{other} lies inside the vector loop {loop.name}",
                f"reorder {loop.name} innermost, or unroll what is inside it",
            )
