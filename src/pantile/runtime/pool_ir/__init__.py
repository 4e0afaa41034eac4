"""The native thread pool and its scratch arenas, as the text of one LLVM module for a target triple.

How it works. A region of parallel tasks takes one of 64 static *slots*, and idle workers join it there. Slots are never
freed, so a worker that comes too late may still read one: no lock guards joining or leaving. One word per slot,
`state`, holds everything that has to change atomically:

    bits 32..  tickets   the number of workers that may still join
    bit  16    WAITING   the owner sleeps until the last helper leaves
    bits 0..15 helpers   the number of workers that are inside the slot's job

The owner (the calling thread) fills a slot, opens it by storing tickets, works, closes it by clearing the tickets, and
waits until helpers is zero. A waiting owner takes no other work, and a worker belongs to one job at a time, so waits
follow the nesting of the calls and cannot form a cycle.

`epoch` counts published regions. An idle worker spins on it for a while, then sleeps until it changes. Tickets appear
only with a new epoch, so none is missed.

Memory order. The owner's release of `state` synchronizes with the acquire of a joining worker (for the job's fields),
and the release of a leaving worker with the acquire of the waiting owner (for the results). The thread that goes to
sleep and the thread that wakes it each write one word and then read the other's, which is safe only with sequential
consistency: `epoch`, `sleepers` and `spinners` are seq_cst throughout.

Scratch memory is one arena per thread: a chain of blocks used as a stack. Memory returned to it stays mapped, so that
the next call of a pipeline causes no page faults.
"""

from ..struct_fields import expand_fields, types
from .arena import ARENA
from .layout import OPAQUE, STRUCTS
from .life import LIFE
from .owner import OWNER
from .platform import GLOBALS, LIBC, LOCKING, OWNER_SPIN_NS, PAUSE, WORKER_SPIN_NS, clock_and_pause, spin
from .tasks import TASKS
from .workers import GROWTH, WAKING, WORKER

EXPORTS = (
    "pantile_parallel_for",
    "pantile_scratch_push",
    "pantile_scratch_pop",
    "pantile_scratch_set_limit",
    "pantile_scratch_cached",
    "pantile_pool_init",
    "pantile_pool_workers",
    "pantile_pool_after_fork",
)


def pool_ir(triple: str) -> str:
    """The text of the module. `pantile_pool_init` must be called once before anything else."""
    arch = triple.split("-")[0]
    if arch not in PAUSE:
        raise ValueError(f"the thread pool has no spin hint for {arch!r}, only for {', '.join(PAUSE)}")
    parts = (
        OPAQUE,
        types(STRUCTS),
        LIBC,
        GLOBALS,
        LOCKING,
        clock_and_pause(*PAUSE[arch]),
        spin("spin_for_job", "icmp ne i64 %value, %seen", WORKER_SPIN_NS),
        spin("spin_for_helpers", "icmp eq i64 %value, %seen", OWNER_SPIN_NS),
        ARENA,
        TASKS,
        WAKING,
        WORKER,
        GROWTH,
        OWNER,
        LIFE,
    )
    return expand_fields("\n".join((f'target triple = "{triple}"', *parts)), STRUCTS)
