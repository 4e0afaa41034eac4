"""Blocks and threads of GPUs: check which loops may be which, and how many threads a block has.

The loops around every statement are, outermost first: loops of the host, block loops, loops of a block, thread loops,
and loops of a thread. Instead of thread loops, there may be warp loops, loops of a warp, lane loops, and loops of a
lane. A kernel begins with its block loops. A stage in it is computed by all threads of a block together, by the threads
of a warp together, or by each thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import InternalError
from ..target.gpu import MOST_THREADS, WARP_SIZE, whole_warps
from ..target.kinds import AT_ONCE, Kind, Memory
from ..target.mma import COLUMN_LANES, ROW_LANES, ROWS
from ..target.wgmma import WARPS
from .directives import Directive
from .draft import StageDraft
from .nest import LoopDraft, NestDraft, split_from
from .placement import Placement
from .plan import Site, Split
from .refuse import did_you_mean, unknown_lanes


def check_grid(drafts: dict[str, StageDraft], placement: Placement) -> None:
    """Refuse schedules that no GPU can run."""
    for s in drafts.values():
        if not s.is_inline:
            _check_place(s, placement)
            _check_memory(s, placement)
            _check_ahead(s, placement)
            _check_hybrid(s, placement)
            for nest in s.nests:
                _check_order(s, nest, placement)
                _check_threads(s, nest)
                _check_tensor_core(s, nest, placement)
            _check_blocks(s)
            _check_cached(s, placement)


def _check_order(s: StageDraft, nest: NestDraft, placement: Placement) -> None:
    """Refuse loops that are not nested as in a grid: blocks outermost, threads or warps inside of them, loops of one
    kind directly inside of each other, and lanes inside of warps."""
    around = {placement.kind(x) for chain in placement.chains_around(s.stage.name) for x in chain}
    for kind, not_in in _NOT_INSIDE.items():
        own = [k for k, x in enumerate(nest.loops) if x.kind is kind]
        if not own:
            continue
        loop = nest.loops[own[0]]
        if loop.mark is None:
            continue
        inside = next((k for k in (kind, *not_in) if k in around), None)
        if inside is not None:
            raise s.no(
                loop.mark,
                f"{s.stage.name} is computed inside of {inside} loops already",
                f"leave loop {loop.name} serial, or compute {s.stage.name} outside",
            )
        if own[-1] - own[0] != len(own) - 1:
            between = next(x for x in nest.loops[own[0] :] if x.kind is not kind)
            raise s.no(
                loop.mark,
                f"loop {between.name} ({between.kind}) lies between {kind} loops",
                f"reorder the {kind} loops so that they are directly inside each other",
            )
        other = next((x for x in nest.loops[: own[0]] if x.kind in not_in), None)
        if other is not None:
            raise s.no(loop.mark, f"{kind} loop {loop.name} lies inside of {other.kind} loops", _REMEDY[kind])
    _check_lanes(s, nest, around)


# Kind of loop -> the kinds that it is never inside of, besides loops of its own kind that belong to another stage.
_NOT_INSIDE = {
    Kind.BLOCK: (Kind.THREAD, Kind.WARP, Kind.LANE),
    Kind.THREAD: (Kind.WARP, Kind.LANE),
    Kind.WARP: (Kind.THREAD, Kind.LANE),
    Kind.LANE: (Kind.THREAD,),
    Kind.TENSOR_CORE: (Kind.THREAD, Kind.LANE),
}
_REMEDY = {
    Kind.BLOCK: "reorder the block loops outermost",
    Kind.THREAD: "mark loops of one definition .thread(...), or .warp(...) and .lane(...)",
    Kind.WARP: "reorder the lane loop innermost, and mark no loop .thread(...)",
    Kind.LANE: "mark the loops around it .warp(...)",
    Kind.TENSOR_CORE: "mark the loops around it .warp(...), and no loop .lane(...)",
}


def _check_lanes(s: StageDraft, nest: NestDraft, around: set[Kind]) -> None:
    """Refuse lane loops that are outside of warps, that together have more iterations than a warp has lanes, or that
    take an unknown number of lanes."""
    lanes = [x for x in nest.loops if x.kind is Kind.LANE]
    if not lanes:
        return
    if Kind.WARP not in around and all(x.kind is not Kind.WARP for x in nest.loops):
        raise _no(
            s,
            lanes[0],
            f"loop {lanes[0].name} is shared by the lanes of a warp, and lies in no warp loop",
            f"mark a loop around it .warp(...), or compute {s.stage.name} at one",
        )
    summed = next((x for x in lanes if x.ordered), None)
    if summed is not None and len(lanes) > 1:
        raise _no(
            s,
            summed,
            f"all lanes of a warp combine the terms of loop {summed.name}, and share another loop",
            "leave one of them serial",
        )
    if summed is None and s.memory is not None and Memory(s.memory.args[0]) is Memory.SHARED and Kind.WARP in around:
        return  # lanes take the points in turn
    unknown = next((x for x in lanes[1:] if x.extent is None and not x.inferred), None)
    if unknown is not None:
        raise unknown_lanes(s.stage, unknown.mark, unknown.name)
    count = math.prod(x.extent or 1 for x in lanes)
    if count > WARP_SIZE:
        most = max(lanes, key=lambda x: x.extent or 1)
        room = WARP_SIZE * (most.extent or 1) // count or 1
        names = f"loops {' and '.join(x.name for x in lanes)} have" if len(lanes) > 1 else f"loop {most.name} has"
        raise _no(
            s,
            most,
            f"{names} {count} iterations, and a warp {WARP_SIZE} lanes",
            f'split it, as in .split("{most.name}", "outer", "inner", {room}), and leave the outer one '
            "serial, or to warps",
        )


def _check_tensor_core(s: StageDraft, nest: NestDraft, placement: Placement) -> None:
    """Refuse a product by tensor cores that is outside of warps, that is around other loops, or whose sums lanes do not
    hold as fragments in registers."""
    d, name = nest.tensor_core, s.stage.name
    if d is None:
        return
    last = [x.name for x in nest.loops][-len(d.args) :]
    if last != [*d.args]:
        why = f"the innermost loops are {', '.join(last)}, and an instruction computes them at once"
        raise s.no(d, why, f"reorder {', '.join(map(str, d.args))} innermost, in this order")
    around = {placement.kind(x) for chain in placement.chains_around(s.stage.name) for x in chain}
    if Kind.WARP not in around and all(x.kind is not Kind.WARP for x in nest.loops):
        why = "a warp executes matrix instructions, and these loops lie in no warp loop"
        raise s.no(d, why, f"mark a loop around them .warp(...), or compute {name} at one")
    if s.memory is None or Memory(s.memory.args[0]) is not Memory.REGISTER:
        raise s.no(
            d, f"instructions add to what lanes have in registers, as {name} is not", 'add .store_in("register")'
        )
    rows, columns = (str(split_from(nest, str(loop))) for loop in d.args[:2])
    lanes = [(split_from(s.nests[0], x.name), x.extent) for x in s.nests[0].loops if x.kind is Kind.LANE]
    if lanes != [(rows, ROW_LANES.size), (columns, COLUMN_LANES.size)]:
        split = (
            f'.split("{rows}", "rows", "row", 8).split("{columns}", "columns", "two", 8).split("two", "pair", "one", 2)'
        )
        why = f"the lanes of a warp do not have {name} as the instruction does, in 8 rows of 4 times two columns"
        raise s.no(d, why, f'write {split} and .lane("row", "pair") for the pure definition')
    if nest.is_of_warpgroups:
        _check_warpgroups(s, nest, d, placement)


def _check_warpgroups(s: StageDraft, nest: NestDraft, d: Directive, placement: Placement) -> None:
    """Refuse a product of warpgroups unless four warps with adjacent numbers have adjacent rows."""
    warps = next((x for x in reversed(nest.loops) if x.kind is Kind.WARP), None)
    rows = str(d.args[0])
    if warps is None or (warps.extent or 0) % WARPS or not _counts_rows(nest, warps.name, split_from(nest, rows)):
        raise s.no(
            d,
            f"four warps with adjacent rows multiply by so many columns at once, {ROWS} rows each, and the innermost "
            f"warp loop does not count them",
            f'write .split("{split_from(nest, rows)}", "warp", "{rows}", {ROWS}) and .warp("warp"), with a multiple of '
            f"{WARPS} warps",
        )
    around = [x for chain in placement.chains_around(s.stage.name) for x in chain]
    hosts = [placement.drafts[site.stage].nests[site.definition] for site in around]
    for n in (*hosts, nest):
        if n.threads is not None and int(n.threads.args[0]) % (WARPS * WARP_SIZE):
            why = f"warpgroups multiply matrices in these blocks, and have {WARPS * WARP_SIZE} threads"
            raise n.no(n.threads, why, "choose a multiple of it")


def _counts_rows(nest: NestDraft, loop: str, rows: str | None) -> bool:
    """Whether each iteration of a loop covers the rows of one instruction."""
    is_split = any(isinstance(r, Split) and r.outer == loop and r.factor == ROWS for r in nest.rewrites)
    return is_split and split_from(nest, loop) == rows


def _no(s: StageDraft, loop: LoopDraft, why: str, remedy: str) -> Exception:
    if loop.mark is None:
        raise InternalError(f"loop {loop.name} of {s.stage.name} is {loop.kind}, but no directive marked it: {why}")
    return s.no(loop.mark, why, remedy)


def _check_threads(s: StageDraft, nest: NestDraft) -> None:
    """Refuse blocks of too many threads. Unless `threads` gives their number, it is the number of iterations of all
    thread loops of the stage whose blocks these are."""
    threads = [x for x in nest.loops if x.kind in (Kind.THREAD, Kind.WARP)]
    if not threads or nest.threads is not None or all(x.kind is not Kind.BLOCK for x in nest.loops):
        return
    count = math.prod(x.extent or 1 for x in threads) * (WARP_SIZE if threads[0].kind is Kind.WARP else 1)
    if count > MOST_THREADS:
        raise _no(
            s,
            threads[0],
            f"a block would have {count} threads, and a GPU has {MOST_THREADS} at most",
            "split these loops further, and leave some of them serial",
        )


def _check_blocks(s: StageDraft) -> None:
    """Refuse directives about blocks if there are none or if these belong to another definition, and blocks that are
    not whole warps."""
    for k, nest in enumerate(s.nests):
        host = s.within.get(k, s.together)
        blocks = [x.name for x in nest.loops if x.kind is Kind.BLOCK]
        for d in (d for d in nest.of_blocks if d is not None):
            if not blocks:
                why = f"{nest.title} of {s.stage.name} has no block loops"
                raise s.no(d, why, "write it for the definition whose loops the blocks are")
            if host is not None:
                why = f"{nest.title} of {s.stage.name} shares the loop {blocks[0]}, by {host}"
                raise s.no(d, why, "write it for the definition whose loops these are")
        count = 0 if nest.threads is None else int(nest.threads.args[0])
        if nest.threads is not None and count != whole_warps(count):
            why = f"blocks consist of warps of {WARP_SIZE} threads"
            raise s.no(nest.threads, why, f"use .threads({whole_warps(count)})")


def _check_cached(s: StageDraft, placement: Placement) -> None:
    """Refuse cache operators outside of kernels, and for buffers that are not in global memory before the kernel
    begins."""
    name = s.stage.name
    for buffer, d in s.cached.items():
        if s.together is not None or all(x.kind is not Kind.BLOCK for nest in s.nests for x in nest.loops):
            raise s.no(d, f"{name} has no block loops of its own", "write it for the stage whose loops the blocks are")
        inlined = {n for n, draft in placement.drafts.items() if draft.is_inline}
        read = [n for n in placement.read_in(name) if n not in inlined]
        if buffer not in read:
            raise s.no(d, f"nothing in the loops of {name} reads {buffer!r}", did_you_mean(buffer, read))
        if buffer == name or buffer in placement.drafts and placement.runs_in(buffer, name):
            why = f"the kernel that loads {buffer} computes it as well"
            raise s.no(d, why, "leave it out: this is for inputs and stages that are computed before")


def _check_place(s: StageDraft, placement: Placement) -> None:
    """Refuse a stage that is computed at a loop of tensor cores, or at a block, thread, warp or lane loop other than
    the innermost of its kind."""
    if s.compute is None:
        return
    for site in placement.sites(s.stage.name):
        kind = placement.kind(site)
        last = _innermost(placement.drafts[site.stage].nests[site.definition].loops, kind)
        if kind is Kind.TENSOR_CORE:
            why = f"an instruction computes loop {site.loop} of {site.stage}, and nothing else in it"
            raise s.no(s.compute, why, "compute it at a loop around those of .tensor_core(...)")
        if kind in _NOT_INSIDE and last != site.loop:
            raise s.no(
                s.compute,
                f"loop {site.loop} of {site.stage} is a {kind} loop around another, {last}",
                f'use .compute_at("{site.stage}", "{last}")',
            )


def _innermost(loops: Sequence[LoopDraft], kind: Kind) -> str:
    return [x.name for x in loops if x.kind is kind][-1]


def _check_memory(s: StageDraft, placement: Placement) -> None:
    """Refuse shared memory that does not belong to one block, and registers that do not belong to one thread."""
    if s.memory is None:
        return
    for chain in placement.chains_around_memory(s.stage.name):
        _check_memory_inside(s, s.memory, {placement.kind(x) for x in chain})


def _check_memory_inside(s: StageDraft, d: Directive, kinds: set[Kind]) -> None:
    """Refuse memory that cannot be allocated inside of loops of these kinds."""
    memory = Memory(d.args[0])
    inside = next((k for k in (Kind.THREAD, Kind.LANE) if k in kinds), None)
    if memory is Memory.SHARED and (Kind.BLOCK not in kinds or inside is not None):
        where = "outside of all blocks" if inside is None else f"inside of a {inside}"
        raise s.no(
            d,
            f"{s.stage.name} is stored {where}, and threads of one block or warp share this memory",
            "store it at a block or warp loop, or at a loop between these and threads or lanes",
        )
    if memory is Memory.SHARED and Kind.WARP in kinds and all(x.kind is not Kind.LANE for x in s.nests[0].loops):
        raise s.no(
            d,
            f"the {WARP_SIZE} lanes of a warp share this memory, and no loop of {s.stage.name}",
            f'mark its loops .lane("{s.nests[0].loops[-1].name}"); lanes take more than {WARP_SIZE} points in turn',
        )
    atomic = next((nest.atomic for nest in s.nests if nest.atomic is not None), None)
    if memory in (Memory.REGISTER, Memory.STACK) and atomic is not None:
        raise s.no(atomic, f"{s.stage.name} is memory of one thread, by {d}", "store it in shared memory")
    if memory in (Memory.REGISTER, Memory.STACK) and not kinds.intersection(AT_ONCE):
        raise s.no(
            d,
            f"{s.stage.name} is stored outside of all threads, and this is memory of one thread",
            "compute it at a thread loop or in it, or at a block whose threads each keep their own",
        )
    if memory is Memory.HEAP and kinds.intersection(AT_ONCE):
        raise s.no(
            d,
            f"{s.stage.name} is stored inside of a block, for which nobody allocates such memory",
            'use "shared" or "register", or store it at root',
        )


def _check_hybrid(s: StageDraft, placement: Placement) -> None:
    """Refuse registers_from unless the stage is in shared memory of a warp, is stored as a whole by one definition, and
    the lanes are those of a warp."""
    d = s.hybrid
    if d is None:
        return
    name, lanes = s.stage.name, [x.name for x in s.nests[0].loops if x.kind is Kind.LANE]
    kinds = {placement.kind(x) for chain in placement.chains_around_memory(name) for x in chain}
    is_shared = s.memory is not None and Memory(s.memory.args[0]) is Memory.SHARED
    if not is_shared or Kind.WARP not in kinds:
        why = f"{name} is not in shared memory of a warp"
        raise s.no(d, why, 'compute it at a warp loop, by lanes, and add .store_in("shared")')
    if s.store is not None or s.folds or s.storage_splits or len(s.nests) > 1:
        raise s.no(d, f"not all of {name} is stored at once", "leave out updates, sliding windows, and split storage")
    part = next((n for n in lanes if n not in s.stage.dims), None)
    if part is not None or d.args[0] not in lanes:
        why = f"loop {part} is a part of a dim" if part is not None else f"loop {d.args[0]} is no lane loop"
        raise s.no(d, why, f"mark its loops over whole dims .lane(...), {d.args[0]} among them")
    widths = [int(n) for n in d.args[2:]]
    if len(widths) != len(lanes) or math.prod(widths) != WARP_SIZE:
        why = f"{' x '.join(map(str, widths))} lanes are stated for {len(lanes)} lane loops of a warp of {WARP_SIZE}"
        raise s.no(d, why, f"give a number for each of {', '.join(lanes)}, whose product is {WARP_SIZE}")


def _check_ahead(s: StageDraft, placement: Placement) -> None:
    """Refuse compute_ahead of a stage that is not computed by all threads of a block at a serial loop, or whose
    producers are computed in that loop as well."""
    if s.ahead is None:
        return
    name, site = s.stage.name, placement.compute(s.stage.name)
    chain = placement.to(site)
    kinds = [placement.kind(x) for x in chain]
    if site is None or Kind.BLOCK not in kinds or {Kind.THREAD, Kind.WARP} & {*kinds} or kinds[-1] is not Kind.SERIAL:
        raise s.no(
            s.ahead,
            f"{name} is not computed at a serial loop between blocks and threads",
            "compute it at such a loop, or leave this out",
        )
    if len(placement.sites(name)) > 1 or placement.store(name) != site:
        raise s.no(
            s.ahead,
            f"{name} is stored outside of the loop that it is computed at, or computed at several",
            "store it where it is computed, and nowhere else",
        )
    if s.memory is not None and Memory(s.memory.args[0]) is not Memory.SHARED:
        raise s.no(
            s.ahead, f"threads of a block do not share {name} in {s.memory.args[0]} memory", 'use .store_in("shared")'
        )
    for k in range(len(s.stage.definitions)):
        for read in placement.graph.reads[name, k]:
            if read != name and read in placement.drafts and site in _around(read, placement):
                raise s.no(
                    s.ahead,
                    f"{name} reads {read}, which is computed in the same loop",
                    f"compute {read} outside of it, or inline it",
                )
    if s.together is not None or any(
        o.together is not None and o.together.args[0] == name for o in placement.drafts.values()
    ):
        raise s.no(s.ahead, f"{name} shares its loops with another stage", "give it loops of its own")


def _around(name: str, placement: Placement) -> set[Site]:
    """The loops around a stage, or around the stages that it reads if it is inlined."""
    if placement.drafts[name].is_inline:
        inside = [placement.graph.reads[name, k] for k in range(len(placement.graph.stage[name].definitions))]
        return {x for reads in inside for read in reads if read in placement.drafts for x in _around(read, placement)}
    return {x for chain in placement.chains_around(name) for x in chain}
