"""Directives as users write them: `pt.on("blur").tile(...).parallel("yo")` is a frozen value that only records them.

    Directive     = a verb, its names and numbers, and how a split treats its tail
    StageSchedule = the directives of one stage, in order

Loops and dims are named by strings or by anything with a `.name` (a Var, a reduction variable); stages likewise (a
Func). `resolve`, which knows the pipeline, decides whether a directive can be honoured; only its spelling is checked
here. Every method returns a new value.

A stage with directives gets exactly these: without a compute level it is computed at root, and loops that are not
mentioned stay serial. A stage that a schedule does not name gets the defaults of `schedule.default`.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any

from ..dataclass import cached_property, dataclass, hashed_once
from ..errors import Location, UserError, here, shown
from ..target.gpu import MOST_THREADS, WARP_SIZE
from ..target.kinds import CacheOperator, Kind, Memory
from .condition import canonical
from .limits import (
    FARTHEST_AHEAD,
    FARTHEST_PREFETCH,
    LARGEST_FACTOR,
    LARGEST_FOLD,
    LARGEST_PANEL,
    MOST_COPIES,
    MOST_DIRECTIVES,
    MOST_LANES,
)
from .names import Named, name_of, new_name

TAILS = ("auto", "shift", "guard", "peel")
MEMORIES = tuple(m.value for m in (Memory.AUTO, Memory.HEAP, Memory.SHARED, Memory.STACK, Memory.REGISTER))
CACHE_OPERATORS = tuple(o.value for o in CacheOperator)
PARTITIONS = ("auto", "never", "always")
# The directives that mark loops, with the kinds that they give them. `SUFFIX` has the suffixes of the inner loops that
# some of them make when given a factor.
KINDS = {
    "vectorize": Kind.VECTOR,
    "unroll": Kind.UNROLL,
    "parallel": Kind.PARALLEL,
    "block": Kind.BLOCK,
    "thread": Kind.THREAD,
    "warp": Kind.WARP,
    "lane": Kind.LANE,
    "tensor_core": Kind.TENSOR_CORE,
}
OF_SEVERAL = ("block", "thread", "warp", "lane")  # directives that mark any number of loops without splitting them
SUFFIX = {"vectorize": "_v", "unroll": "_u", "parallel": "_p"}
WITH_FACTORS = ("split", "tile", *SUFFIX)  # directives with numbers that searches choose
_LARGEST_FACTORS = {"vectorize": MOST_LANES, "unroll": MOST_COPIES}


@dataclass(frozen=True)
class Directive:
    """One call of a method of `StageSchedule`: `.verb(*args)`. Its line `where` is ignored in comparisons."""

    verb: str
    args: tuple[str | int, ...]
    tail: str = "auto"
    where: Location | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        shown = [_literal(a) for a in self.args]
        if self.tail != "auto":
            shown.append(f"tail={_literal(self.tail)}")
        return f".{self.verb}({', '.join(shown)})"


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__")


def _literal(value: str | int) -> str:
    return json.dumps(value, ensure_ascii=False)


def on(stage: Named) -> StageSchedule:
    """The empty schedule of a stage, which is computed at root with serial loops until directives are added."""
    return StageSchedule(name_of(stage), ())


@hashed_once
@dataclass(frozen=True, repr=False)
class StageSchedule:
    """The directives of one stage, in the order in which they apply.

    Directives about loops apply to the pure definition until `.update(k)` is called, then to update k.
    Loops are written outermost first, as NumPy orders dims.
    """

    name: str
    directives: tuple[Directive, ...]

    def __repr__(self) -> str:
        return self.head + "".join(map(str, self.directives))

    @cached_property
    def verbs(self) -> frozenset[str]:
        """The verbs of all directives."""
        return frozenset([d.verb for d in self.directives])

    @property
    def head(self) -> str:
        """The Python text with which the chain of directives starts."""
        return f"pt.on({_literal(self.name)})"

    def _kinds_of(self, verb: str, given: tuple[Any, ...], kinds: int, wanted: str) -> int:
        """The number of arguments of each kind. It must be the same for all kinds."""
        n, rest = divmod(len(given), kinds)
        if rest or n == 0:
            raise UserError(f"{self.head}.{verb}: {len(given)} arguments; give {wanted}", here())
        return n

    def _with(self, verb: str, *args: str | int, tail: str = "auto") -> StageSchedule:
        self._choice(verb, "tail", tail, TAILS)
        if len(self.directives) == MOST_DIRECTIVES:
            raise UserError(f"{self.head}.{verb}: the stage has {MOST_DIRECTIVES} directives already", here())
        return StageSchedule(self.name, (*self.directives, Directive(verb, args, tail, here())))

    def _choice(self, verb: str, what: str, value: str, choices: tuple[str, ...]) -> str:
        if not isinstance(value, str) or value not in choices:
            raise UserError(f"{self.head}.{verb}: {what} is {shown(value)}; use one of {', '.join(choices)}", here())
        return value

    def _number(self, verb: str, what: str, value: int, least: int, most: int) -> int:
        try:
            number = operator.index(value)
        except TypeError:
            number = least - 1
        if number < least or isinstance(value, bool):
            raise UserError(
                f"{self.head}.{verb}: the {what} is {shown(value)}; give an integer of at least {least}", here()
            )
        if number > most:
            raise UserError(f"{self.head}.{verb}: the {what} is {shown(value)}; give at most {most}", here())
        return number

    def _factor(self, verb: str, factor: int) -> int:
        return self._number(verb, "factor", factor, 1, _LARGEST_FACTORS.get(verb, LARGEST_FACTOR))

    def without_updates(self) -> StageSchedule:
        """The schedule with only the directives before the first update."""
        verbs = [d.verb for d in self.directives]
        return StageSchedule(self.name, self.directives[: verbs.index("update") if "update" in verbs else None])

    def with_factor(self, k: int, argument: int, factor: int) -> StageSchedule:
        """A copy in which one argument of directive `k` is another number, for searches among schedules."""
        d = self.directives[k]
        resized = replace(d, args=(*d.args[:argument], factor, *d.args[argument + 1 :]))
        return replace(self, directives=(*self.directives[:k], resized, *self.directives[k + 1 :]))

    # ---- which definition

    def update(self, k: int = 0) -> StageSchedule:
        """Apply the following directives about loops to update definition `k`, until another `update` or `pure`.

        hist[i] = 0                        pt.on("hist").vectorize("i", 8)            loops of this one
        hist[img[r.y, r.x]] += 1           .update().unroll("r.x", 4)                 loops of that one
        """
        return self._with("update", self._number("update", "number of the update", k, 0, LARGEST_FACTOR))

    def pure(self) -> StageSchedule:
        """Apply the following directives about loops to the pure definition again (as at the start)."""
        return self._with("pure")

    # ---- the shape of the loop nest

    def split(self, old: Named, outer: Named, inner: Named, factor: int, tail: str = "auto") -> StageSchedule:
        """One loop becomes two. split("x", "xo", "xi", 8):

            for x in 0..n:            for xo in 0..ceil(n/8):
                f[x]             ->       for xi in 0..8:
                                              f[8*xo + xi]

        `tail` says what happens if 8 does not divide n: "shift" moves the last block inwards (it computes some points
        again), "guard" computes each point once, "peel" computes each point once with separate loops after all whole
        blocks, and "auto" shifts pure definitions and guards updates. `outer` may reuse the name `old`.
        """
        loop = name_of(old)
        names = (loop, new_name(outer, loop), new_name(inner))
        return self._with("split", *names, self._factor("split", factor), tail=tail)

    def tile(self, *names_and_factors: Any, tail: str = "auto") -> StageSchedule:
        """Split each loop and put the outer ones outside. tile("y", "x", "yo", "xo", "yi", "xi", 32, 64):

            for y:                    for yo:
                for x:           ->       for xo:
                    f[y, x]                   for yi in 0..32:
                                                  for xi in 0..64:
                                                      f[32*yo + yi, 64*xo + xi]

        For any number n of dims: n old names, n outer, n inner, n factors. Loops that are not named keep their
        positions.
        """
        n = self._kinds_of(
            "tile",
            names_and_factors,
            4,
            "n old loops, n outer names, n inner names and n factors, "
            'such as .tile("y", "x", "yo", "xo", "yi", "xi", 32, 64)',
        )
        old = [name_of(a) for a in names_and_factors[:n]]
        outer = [new_name(a, loop) for loop, a in zip(old, names_and_factors[n : 2 * n], strict=True)]
        inner = [new_name(a) for a in names_and_factors[2 * n : 3 * n]]
        factors = [self._factor("tile", a) for a in names_and_factors[3 * n :]]
        return self._with("tile", *old, *outer, *inner, *factors, tail=tail)

    def reorder(self, *loops: Named) -> StageSchedule:
        """Put loops in this order, outermost first. reorder("x", "y"):

            for y:                    for x:
                for x:           ->       for y:
                    f[y, x]                   f[y, x]

        A partial list permutes the named loops among their positions: reorder("x", "y") turns y, c, x into x, c, y.
        """
        return self._with("reorder", *map(name_of, loops))

    def fuse(self, outer: Named, inner: Named, fused: Named) -> StageSchedule:
        """Two loops, one directly inside the other, become one. fuse("y", "x", "p"):

        for y in 0..h:            for p in 0..h*w:
            for x in 0..w:   ->       f[p // w, p % w]
                f[y, x]
        """
        loops = (name_of(outer), name_of(inner))
        return self._with("fuse", *loops, new_name(fused, *loops))

    # ---- how loops run

    def vectorize(self, loop: Named, factor: int | None = None, tail: str = "auto") -> StageSchedule:
        """Run a loop of constant extent as one vector. With a factor, split first: vectorize("x", 8):

        for x in 0..n:            for x in 0..ceil(n/8):
            f[x]             ->       f[8*x + (0,1,...,7)]             the vector loop is called x_v
        """
        return self._mark("vectorize", loop, factor, tail)

    def unroll(self, loop: Named, factor: int | None = None, tail: str = "auto") -> StageSchedule:
        """Write out the iterations of a loop of constant extent. With a factor, split first: unroll("x", 2):

        for x in 0..n:            for x in 0..ceil(n/2):
            f[x]             ->       f[2*x]
                                      f[2*x + 1]                       the unrolled loop is called x_u
        """
        return self._mark("unroll", loop, factor, tail)

    def parallel(self, loop: Named, factor: int | None = None, tail: str = "auto") -> StageSchedule:
        """Share the iterations of a loop among threads. With a factor, in blocks: parallel("y", 16):

        for y in 0..n:            parallel for y in 0..ceil(n/16):
            f[y]             ->       for y_p in 0..16:
                                          f[16*y + y_p]
        """
        return self._mark("parallel", loop, factor, tail)

    def block(self, *loops: Named) -> StageSchedule:
        """On a GPU: each iteration of these loops is a block of threads, and all of them together are a kernel.
        tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi"):

            for yo:                               block for yo, xo:
                for xo:                               thread for yi in 0..8, xi in 0..32:
                    for yi in 0..8:        ->             f[8*yo + yi, 32*xo + xi]
                        for xi in 0..32:
                            f[8*yo + yi, 32*xo + xi]

        The loops are outermost and directly inside each other.
        """
        return self._of_several("block", loops)

    def thread(self, *loops: Named) -> StageSchedule:
        """On a GPU: the threads of a block take the iterations of these loops, in turn if there are more iterations
        than threads. The stage whose loops the blocks are decides the number of threads of a block: it is the number of
        iterations of its thread loops, or the number given by `threads`. Other stages that are computed at such a
        block, or at a loop in it, share these threads.

            for y in 0..10:                       for p in 0..340, shared by 256 threads:
                for x in 0..34: g[y, x]    ->         g[p // 34, p % 34]
        """
        return self._of_several("thread", loops)

    def threads(self, count: int) -> StageSchedule:
        """On a GPU: each block of this definition's block loops has `count` threads, in whole warps of 32, instead of
        one for each iteration of its thread loops. thread("yi", "xi") of 12 x 32 points, and threads(512):

            block for yo, xo:  # 384 threads             block for yo, xo:  # 512 threads
                for p in 0..512, by 384 threads: g[p]        thread for p in 0..512: g[p]
                thread for q in 0..384: f[q]         ->      thread for q in 0..384: f[q]     (128 threads are idle)

        Each thread then computes one point of a stage of which the tile needs more points than it has itself. With
        fewer threads than points, each thread computes several.
        """
        return self._with("threads", self._number("threads", "number of threads", count, 1, MOST_THREADS))

    def persistent(self) -> StageSchedule:
        """On a GPU: launch only as many blocks as the GPU holds at once, each of which loops over tiles.
        block("yo", "xo").persistent(), on a GPU that holds 264 such blocks:

            block for t in 0..n:               block for b in 0..min(n, 264):
                tile t                 ->          for t in b, b + 264, b + 2*264, ... < n:
                                                       tile t

        The number of blocks is known at launch: it is the number of multiprocessors times the number of blocks that
        each one holds, according to their threads, shared memory and registers.
        """
        return self._with("persistent")

    def warp(self, *loops: Named) -> StageSchedule:
        """On a GPU: the warps of a block, 32 threads each, take the iterations of these loops, one each. A block has as
        many warps as the warp loops of its stage have iterations. A stage that is computed at such a loop, or inside of
        it and outside of `lane`, is computed by each warp for itself.

            block for yo:                         each warp computes its rows of g and of f, and waits for no other
                warp for w in 0..4:
                    lane for x: g[4*yo + w, x]
                    lane for x: f[4*yo + w, x] = g[..., x - 1] + g[..., x + 1]
        """
        return self._of_several("warp", loops)

    def lane(self, *loops: Named) -> StageSchedule:
        """On a GPU: the threads of a warp take the iterations of these loops, one each, so there are 32 at most in all.
        The values of such a stage are in the registers of these threads, and others read them there, by shuffles:

            lane for x in 0..30: f[x] = g[x - 1] + g[x + 1]    ->    f = shfl(g, x) + shfl(g, x + 2)

        Several loops, directly inside of each other, divide a warp into rows and columns: with lane("y", "x") over 2 x
        16 points, lanes 0 to 15 compute the first row. A single reduction loop of a sum, a minimum or the like may also
        be a lane loop: lanes then combine their terms in pairs.

        If a stage is stored in "shared" memory inside of a warp, lanes take any number of its points in turn.
        """
        return self._of_several("lane", loops)

    def tensor_core(self, rows: Named, columns: Named, terms: Named) -> StageSchedule:
        """On a GPU: compute the innermost three loops of an update that multiplies matrices by tensor cores. They have
        16, 8 (or 16) and 16 iterations, or 32 terms for operands of 8 bits. tensor_core("i", "j", "k"):

            for i in 0..16:                                   warp: c = mma(a, b, c)
                for j in 0..8:
                    for k in 0..16:                    ->
                        c[i, j] += float32(a[i, k])*float32(b[k, j])

        `a` and `b` have type float16 or bfloat16, accumulated in float32 (float16 also in float16), or 8-bit integers,
        accumulated in int32. Each lane has a fragment of `c`: columns 2*(lane%4) and 2*(lane%4) + 1 of rows lane//4 and
        lane//4 + 8.

        On sm_90, warpgroups multiply 24 to 256 columns, in multiples of 8: four warps with adjacent rows, 64 in all,
        execute one instruction for every 16 of 16 to 128 terms. They read `a` and `b`, of 16 bits, from shared memory,
        in rows of 8 elements: split_storage("k", "k8", "of8", 8).reorder_storage("k8", "i", "of8").
        """
        return self._with("tensor_core", *map(name_of, (rows, columns, terms)))

    def _of_several(self, verb: str, loops: tuple[Named, ...]) -> StageSchedule:
        if not loops:
            raise UserError(f'{self.head}.{verb}: no loop is named; write .{verb}("y", "x")', here())
        return self._with(verb, *map(name_of, loops))

    def _mark(self, verb: str, loop: Named, factor: int | None, tail: str) -> StageSchedule:
        given = () if factor is None else (self._factor(verb, factor),)
        return self._with(verb, name_of(loop), *given, tail=tail)

    def partition(self, loop: Named, mode: str) -> StageSchedule:
        """Partition a loop into a steady state without conditions, and edges. partition("x", "always"):

            for x in 0..n:            for x in 0..a:    f[clamp(x - 1, 0, n)]
                f[clamp(x-1,0,n)] ->  for x in a..b:    f[x - 1]
                                      for x in b..n:    f[clamp(x - 1, 0, n)]

        "auto" leaves the decision to the compiler, "never" keeps one loop.
        """
        return self._with("partition", name_of(loop), self._choice("partition", "mode", mode, PARTITIONS))

    # ---- where the stage is computed and stored

    def compute_inline(self) -> StageSchedule:
        """Compute the stage without loops and memory: its definition is substituted for every read.

        for x: g[x] = a[x] * 2
        for x: f[x] = g[x] + g[x+1]    ->    for x: f[x] = a[x] * 2 + a[x+1] * 2
        """
        return self._with("compute_inline")

    def compute_root(self) -> StageSchedule:
        """Compute all of the stage before any stage that reads it.

        for y:                                for y: g[y]
            g[y], g[y+1]               ->     for y:
            f[y] = g[y] + g[y+1]                  f[y] = g[y] + g[y+1]
        """
        return self._with("compute_root")

    def compute_at(self, stage: Named, loop: Named) -> StageSchedule:
        """At the start of each iteration of a consumer's loop, compute what it needs. compute_at("f", "yo"):

        for y: g[y]                           for yo:
        for yo:                        ->         for y in the rows this tile reads: g[y]
            for yi: f[yo, yi] = ... g             for yi: f[yo, yi] = ... g
        """
        return self._with("compute_at", name_of(stage), name_of(loop))

    def store_root(self) -> StageSchedule:
        """Keep the memory of the stage alive during the whole pipeline; see `store_at`."""
        return self._with("store_root")

    def store_at(self, stage: Named, loop: Named) -> StageSchedule:
        """Keep the memory alive during one iteration of this loop, which may be outside of the loop of compute_at:
        values computed in earlier iterations are then reused (a sliding window). compute_at("f", "y").store_root():

            for y:                                alloc g
                alloc g                           for y:
                g[y], g[y+1]               ->         g[y+1]            (and g[0] at first)
                f[y] = g[y] + g[y+1]                  f[y] = g[y] + g[y+1]
        """
        return self._with("store_at", name_of(stage), name_of(loop))

    def compute_with(self, stage: Named, loop: Named) -> StageSchedule:
        """Share the loops of another stage, down to and including `loop`. pt.on("g").compute_with("f", "y"):

            for y:                                for y:
                for x: f[y, x]                        for x: f[y, x]
            for y:                         ->         for x: g[y, x]
                for x: g[y, x]

        Both stages must have the same loops down to this one, and neither may depend on the other. An update shares
        loops of the pure definition by the name of its own stage: pt.on("f").update().compute_with("f", "x").
        """
        return self._with("compute_with", name_of(stage), name_of(loop))

    def clone_in(self, consumer: Named, name: Named, *reads: int) -> StageSchedule:
        """Have `consumer` read a clone of this stage, which is scheduled separately. pt.on("f").clone_in("b", "f_b"):

            for x: f[x]                           for x: f[x]
            for x: a[x] = f[x]             ->     for x: a[x] = f[x]
            for x: b[x] = f[x + 100]              for x: f_b[x]
                                                  for x: b[x] = f_b[x + 100]

        The copy is scheduled by its name, which several consumers may use. With numbers, only some reads use the copy:
        they number the different indices at which the consumer reads the stage, in the order in which they are written,
        from 0.
        """
        return self._with("clone_in", name_of(consumer), self._copy("clone_in", name), *self._reads("clone_in", reads))

    def copy_in(self, consumer: Named, name: Named, *dims_and_reads: Any) -> StageSchedule:
        """Have `consumer` read a copy of the values of this stage or input, which has a separate layout.
        pt.on("b").copy_in("c", "b_panels", "k", "j"):

                                                  for k: for j: b_panels[k, j] = b[k, j]
            for j: c[j] += b[k, j]         ->     for j: c[j] += b_panels[k, j]

        The copy is a stage that is placed, stored and scheduled by its name, which several consumers may use. Without
        directives, it is computed at root. Its dims get the given names; without names, the copy of a stage has the
        names of the stage's dims. With numbers, only some reads use the copy, as for `clone_in`.
        """
        names = [a for a in dims_and_reads if not _is_number(a)]
        reads = [a for a in dims_and_reads if _is_number(a)]
        dims = map(new_name, names)
        places = self._reads("copy_in", reads)
        return self._with("copy_in", name_of(consumer), self._copy("copy_in", name), *dims, *places)

    def copy_out(self, name: Named) -> StageSchedule:
        """Compute the stage under another name, and make the stage a copy of it. pt.on("c").copy_out("sums"):

            for j: c[j] = 0                       for j: sums[j] = 0
            for k: for j: c[j] += ...      ->     for k: for j: sums[j] += ...
                                                  for j: c[j] = sums[j]

        The original computation is scheduled by the new name, for example an output in blocks that have their own
        layout.
        """
        return self._with("copy_out", self._copy("copy_out", name))

    def panels(self, dim: Named, outer: Named, inner: Named, factor: int) -> StageSchedule:
        """Split one dim of the stage into two, and compute whole panels. panels("j", "p", "lane", 8):

        for j in 0..n: f[j] = a[j]     ->     for p in 0..ceil(n/8):
                                                  for lane in 0..8: f[p, lane] = a[min(8*p + lane, n - 1)]

        This is like `split_storage`, but for loops as well: other directives of the stage refer to the new dims. Loops
        over lanes have no tails, since the last panel is computed beyond the required region, where the stage must be
        computable.
        """
        names = (name_of(dim), new_name(outer), new_name(inner))
        return self._with("panels", *names, self._number("panels", "factor", factor, 1, LARGEST_PANEL))

    def _copy(self, verb: str, name: Named) -> str:
        """The checked name of a copy."""
        copy = name_of(name)
        if not copy.isidentifier():
            raise UserError(
                f"{self.head}.{verb}: {copy!r} cannot be the name of a copy; use letters, digits and _, as for a "
                "Python variable",
                here(),
            )
        return copy

    def _reads(self, verb: str, reads: Iterable[int]) -> list[int]:
        return [self._number(verb, "number of a read", k, 0, LARGEST_FACTOR) for k in reads]

    # ---- memory

    def store_in(self, memory: str) -> StageSchedule:
        """Choose the kind of memory: "heap", "stack", "register" (all indices constant after unrolling) or "auto". On a
        GPU, "shared" is the memory of a block of threads or of a warp in it, "register" is the memory of a thread, and
        "heap" is global memory.

        alloc g[8] on heap    ->    alloc g[8] in registers
        """
        return self._with("store_in", self._choice("store_in", "memory", memory, MEMORIES))

    def registers_from(self, dim: Named, first: int, *lanes: int) -> StageSchedule:
        """On a GPU: keep a part of a warp's tile in registers of its lanes instead of shared memory, namely the entries
        from `first` of a dim on. registers_from("x", 34), of 66 columns:

            lane for x in 0..66: g[x] = ...    ->    lane for x in 0..34: g[x] = ...     in shared memory
                                                     lane for x in 34..66: r[x] = ...    in a register of each lane

        `lanes` are the numbers of lanes along each lane loop of the stage, 32 together: registers_from("x", 18, 2, 16).
        The number of entries in registers must be a multiple of the lanes along the dim. Loops that read them are
        unrolled.
        """
        counts = [self._number("registers_from", "number of lanes", n, 1, WARP_SIZE) for n in lanes or (WARP_SIZE,)]
        begin = self._number("registers_from", "first entry", first, 0, LARGEST_FACTOR)
        return self._with("registers_from", name_of(dim), begin, *counts)

    def reorder_storage(self, *dims: Named) -> StageSchedule:
        """Choose the order of dims in memory; the last one is contiguous. reorder_storage("c", "y", "x"):

            alloc f[y, x, c]      ->    alloc f[c, y, x]        indices are written as before

        A partial list permutes the named dims among their positions.
        """
        return self._with("reorder_storage", *map(name_of, dims))

    def split_storage(self, dim: Named, outer: Named, inner: Named, factor: int) -> StageSchedule:
        """Split one dim into two in memory, as `split` does with a loop. split_storage("j", "panel", "lane", 8):

        alloc f[k, n]                         alloc f[k, ceil(n/8), 8]
        f[k, j] = ...                  ->     f[k, j // 8, j % 8] = ...

        Followed by reorder_storage("panel", "k", "lane"), this stores a matrix in panels of 8 columns, each of them
        contiguous. Loops are not changed: those over j should be split by the same factor, with tail="guard".
        """
        old = name_of(dim)
        names = (old, new_name(outer, old), new_name(inner))
        return self._with("split_storage", *names, self._number("split_storage", "factor", factor, 1, LARGEST_PANEL))

    def pad_storage(self, dim: Named, entries: int) -> StageSchedule:
        """Pad a dim in memory by unused entries, which changes the strides of the dims outside of it.
        pad_storage("x", 4), of 128 columns:

            f[y*128 + x] = ...             ->     f[y*132 + x] = ...

        On GPUs this avoids bank conflicts: elements of one column of shared memory are then in different banks.
        """
        return self._with(
            "pad_storage", name_of(dim), self._number("pad_storage", "number of entries", entries, 1, LARGEST_PANEL)
        )

    def fold_storage(self, dim: Named, extent: int) -> StageSchedule:
        """Fold the storage of a sliding stage into a circular buffer of `extent` entries. fold_storage("y", 3):

        alloc g[h, w]                         alloc g[3, w]
        g[y, x] = ... g[y-1, x]        ->     g[y % 3, x] = ... g[(y-1) % 3, x]

        Without it, the buffer has as many entries as are live at a time, which is also the minimum.
        """
        return self._with("fold_storage", name_of(dim), self._number("fold_storage", "extent", extent, 1, LARGEST_FOLD))

    def compute_ahead(self, iterations: int = 1) -> StageSchedule:
        """Software pipelining on GPUs: compute the stage this many iterations before the iteration of its loop that
        needs it, with multiple buffering in shared memory. compute_ahead(1), computed at loop k:

            for k:                        f[0] = ...
                f = ...                   for k:
                use f              ->         f[(k + 1) % 2] = ...
                                              use f[k % 2]

        There is one barrier per iteration, and plain copies are asynchronous: they overlap with the computation.
        """
        return self._with(
            "compute_ahead", self._number("compute_ahead", "number of iterations", iterations, 1, FARTHEST_AHEAD)
        )

    def nontemporal(self) -> StageSchedule:
        """Store results with non-temporal stores, which bypass the caches, if nothing reads them again soon.

        store f[y, x]         ->    store f[y, x] nontemporal
        """
        return self._with("nontemporal")

    def prefetch(self, buffer: Named, loop: Named, distance: int) -> StageSchedule:
        """Prefetch the elements of `buffer` that a later iteration of `loop` reads. prefetch("img", "y", 2):

        for y:                                for y:
            f[y] = img[y]              ->         prefetch img[y+2]
                                                  f[y] = img[y]

        It is a hint: nothing is prefetched if the number of cache lines per iteration is not constant, or over 64.
        """
        ahead = self._number("prefetch", "distance", distance, 1, FARTHEST_PREFETCH)
        return self._with("prefetch", name_of(buffer), name_of(loop), ahead)

    def cache_loads(self, buffer: Named, operator: str) -> StageSchedule:
        """Choose the cache operator with which the kernels of this stage load `buffer` from global memory on GPUs: "ca"
        caches in L1 and L2 (the default), "cg" only in L2, and "cs" is for streaming data, which is evicted first.
        cache_loads("img", "cg"):

        block for yo, xo:                             block for yo, xo:
            thread for yi, xi:                 ->         thread for yi, xi:
                f[y, x] = ld.global.ca(img)                   f[y, x] = ld.global.cg(img)

        The kernels are those of the stage's block loops, including everything that is computed in them.
        """
        chosen = self._choice("cache_loads", "operator", operator, CACHE_OPERATORS)
        return self._with("cache_loads", name_of(buffer), chosen)

    # ---- other programs that compute the same values

    def specialize(self, condition: str) -> StageSchedule:
        """Make a second version of the loops for the case that `condition` holds. specialize("img.shape[1] >= 64"):

            for x: f[x]           ->    if img.shape[1] >= 64:  for x: f[x]     (knowing the condition)
                                        else:                   for x: f[x]

        The condition is Python text over params (by name) and input shapes: comparisons, arithmetic, and/or/not.
        """
        return self._with("specialize", canonical(condition))

    def rfactor(self, *loops_and_vars: Named) -> StageSchedule:
        """Reduce in two steps: partial results for each value of a reduction loop, in a new stage with this loop as its
        first dim, then their combination. pt.on("s").update().rfactor("r.y", "u"):

            s[] = 0                               s_u[u] = 0
            for r.y:                              for u:
                for r.x:                   ->         for r.x: s_u[u] += img[u, r.x]
                    s[] += img[r.y, r.x]          s[] = 0
                                                  for r.y: s[] += s_u[r.y]

        The new stage is called "<stage>_<new_var>" and is scheduled by that name. It takes n reduction loops and n new
        names: rfactor("r.y", "r.x", "u", "v") makes "s_u_v". Loops may come from earlier splits. It applies only to
        updates that combine with +, *, minimum, maximum, &, | or ^, and to pt.argmin and pt.argmax; strict pipelines
        refuse it for + and * of floats.
        """
        n = self._kinds_of(
            "rfactor",
            loops_and_vars,
            2,
            'n reduction loops and n new names, such as .rfactor("r.y", "u") or .rfactor("r.y", "r.x", "u", "v")',
        )
        return self._with("rfactor", *map(name_of, loops_and_vars[:n]), *map(new_name, loops_and_vars[n:]))

    def atomic(self) -> StageSchedule:
        """Let threads and blocks of a GPU share reduction loops of this update, in any order, by atomic instructions.
        pt.on("hist").update().atomic().block("r.y").thread("r.x"):

            for r.y:                                   block for r.y:
                for r.x: hist[img[r.y, r.x]] += 1  ->      thread for r.x: hist[img[r.y, r.x]] += 1  # atomic

        It applies to +, minimum, maximum, &, | and ^ of integers of 32 and 64 bits, and to + of float32 and float64,
        which strict pipelines refuse. On CPUs it has no effect.
        """
        return self._with("atomic")

    def strips(self, loop: Named, strip: Named, length: int) -> StageSchedule:
        """Cut a scan into strips that run in parallel. pt.on("f").update().strips("r.y", "s", 8):

            f[y] = img[y]                              for s: f_s_ends[s] = the last value of strip s from 0
            for r.y:                                   for s: f_s_gains[s] = product of a over strip s
                f[r.y] = a*f[r.y - 1] + f[r.y]   ->    for s: f_s_starts[s] = gain*start + end of the previous strip
                                                       for s: f_s[s, y] = strip s, which starts with f_s_starts[s]
                                                       f[y] = f_s[y//8, y%8]

        The new stages are scheduled by these names, and the update is removed. It applies only to scans along one dim
        in which a value is a multiple of the previous value plus something else; strict pipelines refuse it for floats.
        """
        names = (name_of(loop), new_name(strip))
        return self._with("strips", *names, self._number("strips", "length", length, 2, LARGEST_PANEL))


_NO_VERBS = {"name", "directives", "head", "verbs", "with_factor", "without_updates"}
VERBS = frozenset(name for name in vars(StageSchedule) if not name.startswith("_")) - _NO_VERBS
