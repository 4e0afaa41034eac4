"""Schedule errors that only lowering can detect. All others are reported when a schedule is resolved.

Each reason is about the region of a stage at some point of the loop nest. The region is not known earlier: it depends
on inlining, on the splits and fuses of the loops around it, and on the extents that a variant knows. Schedules are
resolved without regions, since searches resolve hundreds of them for one pipeline.
"""

from __future__ import annotations

from ..analysis.messages import readable
from ..errors import UserError
from ..expr.nodes import Expr
from ..graph.nodes import Stage
from ..schedule.directives import Directive
from ..schedule.plan import Loop
from ..schedule.refuse import refuse
from ..target.kinds import Kind, Memory


def different_regions(stage: Stage, host: Stage) -> UserError:
    """The error for two stages that cannot share loops."""
    return UserError(
        f'pt.on("{stage.name}").compute_with("{host.name}", ...): {stage.name} and {host.name} (defined at '
        f"{host.where}) are needed over different regions, so their loops cannot be shared; compute them one after "
        "the other",
        stage.where,
    )


def unbounded(stage: Stage, k: int) -> UserError:
    """The error for a read whose region is unbounded."""
    return UserError(
        f"{stage.name} is read at a position along {stage.dims[k]} that has no known bounds; limit the index with "
        f"pt.clamp(index, low, high) or promise its range with pt.within(index, low, high)",
        stage.where,
    )


def not_constant(stage: Stage, loop: Loop, extent: Expr) -> UserError:
    """The error for a vector or unrolled loop whose trip count is not constant."""
    verb = "unroll" if loop.kind is Kind.UNROLL else "vectorize"
    return refuse(
        stage,
        loop.mark,
        f"the extent of loop {loop.name} is not constant where {stage.name} is computed: it is {readable(extent)}",
        f'split it by a constant, as in .{verb}("{loop.name}", 8)',
    )


def too_many_values(stage: Stage, loop: Loop, lanes: int, copies: int) -> UserError:
    """The error for vectors and unrolled loops that would produce too much code."""
    return refuse(
        stage,
        loop.mark,
        f"{copies} copies of {lanes} lanes would be too much code where {stage.name} is computed",
        "split it by a smaller constant",
    )


def _memory_call(memory: Memory, otherwise: str) -> tuple[str, str]:
    """The call that chose a memory, and what to do instead. On GPUs, the memory may not have been chosen explicitly."""
    return ("", otherwise) if memory is Memory.AUTO else (f'.store_in("{memory.value}")', "leave store_in out")


def no_constant_size(stage: Stage, memory: Memory) -> UserError:
    """The error for memory that must be allocated at compile time, but for a region whose size is not known then."""
    call, otherwise = _memory_call(memory, "compute it at root")
    return UserError(
        f'pt.on("{stage.name}"){call}: the region of {stage.name} that is kept '
        f"has no constant size there; compute and store it inside a split loop, or {otherwise}",
        stage.where,
    )


def too_large_for_the_stack(stage: Stage, memory: Memory, size: int, others: int, room: int) -> UserError:
    """The error for a buffer that exceeds a thread's stack."""
    call, otherwise = _memory_call(memory, "compute it outside of threads")
    return UserError(
        f'pt.on("{stage.name}"){call}: {size} bytes of {stage.name} would be on the '
        f"stack, with {others} of other buffers, and there is room for {room}; compute it in "
        f"smaller blocks, or {otherwise}",
        stage.where,
    )


def not_of_one_thread(stage: Stage, memory: Memory, why: str) -> UserError:
    """The error for values of a block that cannot be distributed over the registers of its threads."""
    return UserError(
        f'pt.on("{stage.name}").store_in("{memory.value}"): the threads of a block cannot keep {stage.name}: {why}; '
        f'cut all loops over {stage.name} alike and mark the same ones .thread(...), or use .store_in("shared")',
        stage.where,
    )


def not_of_lanes(stage: Stage | None, buffer: str, why: str) -> UserError:
    """The error for values of a warp that cannot be distributed over its lanes."""
    return UserError(
        f"the lanes of a warp cannot share {buffer if stage is None else stage.name}: {why}; cut its loops so that "
        "each lane has some values side by side, and mark the same ones .lane(...), or use .thread(...)",
        None if stage is None else stage.where,
    )


def not_in_two_memories(stage: Stage, directive: Directive, why: str) -> UserError:
    """The error for a stage that cannot be split over shared memory and registers."""
    return refuse(stage, directive, why, "begin with another entry, or leave all of it in shared memory")


def too_large_for_a_block(stage: Stage, size: int, room: int, each: tuple[int, int] | None = None) -> UserError:
    """The error for buffers that exceed the shared memory of a block. `each` is its number of warps and the bytes per
    warp, if warps have memory of their own."""
    of_warps = "" if each is None else f", {each[1]:,} for each of its {each[0]} warps"
    return UserError(
        f"the block that computes {stage.name} would need {size:,} bytes of memory that its threads share{of_warps}; a "
        f"GPU has {room:,} at most: cut its tiles smaller, or compute at root what is kept there",
        stage.where,
    )


def not_for_warpgroups(stage: Stage, mark: Directive | None, factor: str) -> UserError:
    """The error for a factor that is not laid out in shared memory as the instructions of warpgroups read it."""
    return refuse(
        stage,
        mark,
        f"four warps multiply by so many columns at once, and {factor} does not lie in shared memory as they read it: "
        "in rows of 8 elements along one dim, which follow each other along the other one",
        'copy a slice of it, as in .copy_in("sums", "left", "i", "k"), and lay that out, as in .store_in("shared")'
        '.split_storage("k", "k8", "of8", 8).reorder_storage("k8", "i", "of8")',
    )
