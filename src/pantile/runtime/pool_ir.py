"""The native thread pool and its scratch arenas: a target triple in, the text of one LLVM module out.

How it works. A region of parallel tasks takes one of 64 static *slots*, and idle workers join it there.
Slots are never freed, so a worker that comes too late may still look at one: no lock guards joining or
leaving. One word per slot, `state`, says everything that has to change at once:

    bits 32..  tickets   how many more workers may join
    bit  16    WAITING   the owner sleeps until the last helper leaves
    bits 0..15 helpers   workers that are inside the slot's job now

The owner (the thread that called) fills a slot, opens it by storing tickets, works, closes it by clearing the
tickets and waits until helpers is zero. A waiting owner takes no other work, and a worker belongs
to one job at a time, so waits follow the nesting of the calls and cannot form a cycle.

`epoch` counts published regions. An idle worker spins on it for a while, then sleeps until it moves; as
tickets only appear with a new epoch, none is missed.

Memory order. A release of `state` by the owner meets the acquire of the joining worker (the job's fields),
and the release of a leaving worker meets the acquire of the waiting owner (the results). Whoever sleeps and
whoever wakes each write one word and then read the other's, which only sequential consistency makes safe:
`epoch`, `sleepers` and `spinners` are seq_cst throughout.

Scratch memory is one arena per thread: a chain of blocks used as a stack. Memory returned to it stays
mapped, so the next call of a pipeline faults no pages in.
"""

import re

SLOTS = 64
MAX_THREADS = 256
OUT_OF_MEMORY = -1

# Long enough to catch the next region of the same pipeline, short enough not to show in an idle process.
WORKER_SPIN_NS = 50_000
OWNER_SPIN_NS = 50_000
POLLS_PER_CLOCK_READ = 32
WAKES_AT_ONCE = 2

TICKET = 1 << 32
WAITING = 1 << 16
HELPERS = WAITING - 1

STACK_BYTES = 8 << 20
SMALLEST_BLOCK = 256 << 10
# From here on a block is aligned to huge pages, counts against the cache limit, and may be given back.
LARGE_BLOCK = 4 << 20
HUGE_PAGE = 2 << 20
CACHE_LIMIT = 1 << 30

LINUX_CLOCK_MONOTONIC, LINUX_SIG_SETMASK, LINUX_MADV_HUGEPAGE = 1, 2, 14
# Raised by the faulting instruction itself: if blocked, they kill the process without faulthandler's trace.
LINUX_FAULT_SIGNALS = {"SIGILL": 4, "SIGBUS": 7, "SIGFPE": 8, "SIGSEGV": 11}

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

# What tells the core that it spins. AArch64 `yield` is a no-op on most cores; `isb` is a real pause.
# RISC-V's pause is encoded as a fence every core accepts, but LLVM wants to be told that it may be used.
_PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause()", ""),
    "aarch64": ("llvm.aarch64.isb(i32 15)", ""),
    "riscv64": ("llvm.riscv.pause()", '"target-features"="+m,+a,+f,+d,+c,+zihintpause"'),
}

# Each contended word has 128 bytes to itself: two lines, as adjacent ones are prefetched in pairs.
# A name that starts with an underscore is padding.
_STRUCTS = {
    "Slot": (
        ("state", "i64"),
        ("_1", "[120 x i8]"),
        ("next", "i64"),
        ("_2", "[120 x i8]"),
        ("body", "ptr"),
        ("closure", "ptr"),
        ("count", "i64"),
        ("scratch_bytes", "i64"),
        ("error", "i32"),
        ("_3", "[92 x i8]"),
        ("finished", "%Opaque"),
    ),
    "Bed": (
        ("asleep", "i32"),
        ("movable", "i32"),
        ("moved", "i32"),
        ("_1", "i32"),
        ("thread", "i64"),
        ("_2", "[104 x i8]"),
        ("lock", "%Opaque"),
        ("woken", "%Opaque"),
        ("cores", "%Opaque"),
    ),
    "Arena": (("base", "ptr"), ("top", "ptr")),
    "Block": (("above", "ptr"), ("size", "i64"), ("used", "i64")),
    "Frame": (("block", "ptr"), ("used", "i64"), ("top", "ptr")),
}

# Both headers take a whole line, so that everything handed out is 64-byte aligned.
_HEADER = 64


def pool_ir(triple: str) -> str:
    """The module's text; it needs `pantile_pool_init` called once before anything else."""
    arch = triple.split("-")[0]
    if arch not in _PAUSE:
        raise ValueError(f"the thread pool has no spin hint for {arch!r}, only for {', '.join(_PAUSE)}")
    parts = (
        _types(),
        _LIBC,
        _GLOBALS,
        _LOCKING,
        _clock_and_pause(*_PAUSE[arch]),
        _spin("spin_for_job", "icmp ne i64 %value, %seen", WORKER_SPIN_NS),
        _spin("spin_for_helpers", "icmp eq i64 %value, %seen", OWNER_SPIN_NS),
        _ARENA,
        _TASKS,
        _WAKING,
        _WORKER,
        _GROWTH,
        _OWNER,
        _LIFE,
    )
    return _expand_fields("\n".join((f'target triple = "{triple}"', *parts)))


def _types() -> str:
    lines = ["%Opaque = type [128 x i8]  ; enough for any libc's mutex, condition, signal set or core set"]
    lines += [f"%{name} = type {{ {', '.join(t for _, t in fields)} }}" for name, fields in _STRUCTS.items()]
    return "\n".join(lines)


_FIELD_USE = re.compile(r"field (\w+)\.(\w+), (%\w+)")


def _expand_fields(text: str) -> str:
    """`field Slot.next, %slot` is the address of that field: LLVM knows fields by number only."""

    def address(use: re.Match[str]) -> str:
        struct, name, base = use.groups()
        number = [field for field, _ in _STRUCTS[struct]].index(name)
        return f"getelementptr inbounds %{struct}, ptr {base}, i64 0, i32 {number}"

    return _FIELD_USE.sub(address, text)


_LIBC = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i64 @pthread_self()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i32 @sched_getcpu()
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)
"""

_GLOBALS = f"""
@epoch = internal global i64 0, align 128
@claimed = internal global i64 0, align 128     ; one bit per slot that has an owner
@workers = internal global i64 0, align 128
@sleepers = internal global i64 0, align 128
@spinners = internal global i64 0, align 128
@lock = internal global %Opaque zeroinitializer, align 128  ; for growing, and for owners that sleep
@beds = internal global [{MAX_THREADS} x %Bed] zeroinitializer, align 128
@slots = internal global [{SLOTS} x %Slot] zeroinitializer, align 128
@arena_key = internal global i64 0, align 128   ; pthread_key_t is 4 or 8 bytes; this suits both
@cached = internal global i64 0, align 128      ; bytes in large blocks, of all threads
@cache_limit = internal global i64 {CACHE_LIMIT}, align 8
"""

_LOCKING = """
define internal void @acquire() {
  %rc = call i32 @pthread_mutex_lock(ptr @lock)
  ret void
}

define internal void @release() {
  %rc = call i32 @pthread_mutex_unlock(ptr @lock)
  ret void
}
"""


def _clock_and_pause(pause: str, attributes: str) -> str:
    declared = re.sub(r"i32 \d+", "i32", pause)
    return f"""
declare void @{declared}

define internal void @pause() {attributes} {{
  call void @{pause}
  ret void
}}

define internal i64 @nanoseconds() {{
  %time = alloca [2 x i64], align 8
  %rc = call i32 @clock_gettime(i32 {LINUX_CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr inbounds [2 x i64], ptr %time, i64 0, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}}
"""


def _spin(name: str, condition: str, limit_ns: int) -> str:
    """Poll a word until `condition` of (%value, %seen) holds (true) or the time is up (false).

    Bounded by the clock, because what a pause costs differs a hundredfold between cores.
    """
    return f"""
define internal i1 @{name}(ptr %word, i64 %mask, i64 %seen) {{
entry:
  %start = call i64 @nanoseconds()
  br label %poll
poll:
  %polls = phi i64 [ 0, %entry ], [ %polled, %again ], [ %polled, %clock ]
  %raw = load atomic i64, ptr %word acquire, align 8
  %value = and i64 %raw, %mask
  %done = {condition}
  br i1 %done, label %stop, label %again
again:
  call void @pause()
  %polled = add i64 %polls, 1
  %turn = urem i64 %polled, {POLLS_PER_CLOCK_READ}
  %look = icmp eq i64 %turn, 0
  br i1 %look, label %clock, label %poll
clock:
  %now = call i64 @nanoseconds()
  %elapsed = sub i64 %now, %start
  %more = icmp ult i64 %elapsed, {limit_ns}
  br i1 %more, label %poll, label %stop
stop:
  ret i1 %done
}}
"""


# A frame remembers what the arena was before it, so popping it also drops whatever was pushed later and
# not popped. Blocks above the top hold nothing and are taken as empty whatever their `used` says.
_ARENA = f"""
define ptr @pantile_scratch_push(i64 %bytes) {{
entry:
  %last = add i64 %bytes, -1
  %sane = icmp ult i64 %last, {1 << 62}   ; zero and negative sizes become huge
  br i1 %sane, label %find_arena, label %none
find_arena:
  %arena = call ptr @arena_of_thread()
  %no_arena = icmp eq ptr %arena, null
  br i1 %no_arena, label %none, label %find_room
find_room:
  %with_header = add i64 %bytes, {2 * _HEADER - 1}
  %need = and i64 %with_header, -{_HEADER}
  %block = call ptr @block_with_room(ptr %arena, i64 %need)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %none, label %take
take:
  %used_at = field Block.used, %block
  %used = load i64, ptr %used_at
  %top_at = field Arena.top, %arena
  %top = load ptr, ptr %top_at
  %frame = getelementptr i8, ptr %block, i64 %used
  %frame_block_at = field Frame.block, %frame
  store ptr %block, ptr %frame_block_at
  %frame_used_at = field Frame.used, %frame
  store i64 %used, ptr %frame_used_at
  %frame_top_at = field Frame.top, %frame
  store ptr %top, ptr %frame_top_at
  %now_used = add i64 %used, %need
  store i64 %now_used, ptr %used_at
  store ptr %block, ptr %top_at
  %memory = getelementptr i8, ptr %frame, i64 {_HEADER}
  ret ptr %memory
none:
  ret ptr null
}}

define void @pantile_scratch_pop(ptr %memory) {{
entry:
  %nothing = icmp eq ptr %memory, null
  br i1 %nothing, label %done, label %restore
restore:
  %frame = getelementptr i8, ptr %memory, i64 -{_HEADER}
  %frame_block_at = field Frame.block, %frame
  %block = load ptr, ptr %frame_block_at
  %frame_used_at = field Frame.used, %frame
  %used = load i64, ptr %frame_used_at
  %frame_top_at = field Frame.top, %frame
  %top = load ptr, ptr %frame_top_at
  %used_at = field Block.used, %block
  store i64 %used, ptr %used_at
  %arena = call ptr @arena_of_thread()
  %top_at = field Arena.top, %arena
  store ptr %top, ptr %top_at
  %cached = load atomic i64, ptr @cached monotonic, align 8
  %limit = load atomic i64, ptr @cache_limit monotonic, align 8
  %too_much = icmp sgt i64 %cached, %limit
  br i1 %too_much, label %trim, label %done
trim:
  %end = call ptr @drop_unused(ptr %arena, i64 {LARGE_BLOCK})
  br label %done
done:
  ret void
}}

define void @pantile_scratch_set_limit(i64 %bytes) {{
  store atomic i64 %bytes, ptr @cache_limit monotonic, align 8
  ret void
}}

define i64 @pantile_scratch_cached() {{
  %bytes = load atomic i64, ptr @cached monotonic, align 8
  ret i64 %bytes
}}

define internal ptr @arena_of_thread() {{
entry:
  %key = load i64, ptr @arena_key
  %known = call ptr @pthread_getspecific(i64 %key)
  %first_time = icmp eq ptr %known, null
  br i1 %first_time, label %create, label %found
create:
  %made = call ptr @aligned_block(i64 {_HEADER}, i64 {_HEADER})
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %remember
remember:
  %base_at = field Arena.base, %made
  store ptr null, ptr %base_at
  %top_at = field Arena.top, %made
  store ptr null, ptr %top_at
  %rc = call i32 @pthread_setspecific(i64 %key, ptr %made)
  %refused = icmp ne i32 %rc, 0
  br i1 %refused, label %give_up, label %found
give_up:
  call void @free(ptr %made)
  br label %none
none:
  ret ptr null
found:
  %arena = phi ptr [ %known, %entry ], [ %made, %remember ]
  ret ptr %arena
}}

; Runs when a thread ends: whatever it had pushed is gone with it.
define internal void @destroy_arena(ptr %arena) {{
  %top_at = field Arena.top, %arena
  store ptr null, ptr %top_at
  %end = call ptr @drop_unused(ptr %arena, i64 0)
  call void @free(ptr %arena)
  ret void
}}

define internal ptr @block_with_room(ptr %arena, i64 %need) {{
entry:
  %top_at = field Arena.top, %arena
  %top = load ptr, ptr %top_at
  %empty = icmp eq ptr %top, null
  br i1 %empty, label %above, label %try_top
try_top:
  %top_size_at = field Block.size, %top
  %top_size = load i64, ptr %top_size_at
  %top_used_at = field Block.used, %top
  %top_used = load i64, ptr %top_used_at
  %top_room = sub i64 %top_size, %top_used
  %top_fits = icmp ule i64 %need, %top_room
  br i1 %top_fits, label %use_top, label %above
use_top:
  ret ptr %top
above:
  %first_link = call ptr @first_unused(ptr %arena)
  br label %walk
walk:
  %link = phi ptr [ %first_link, %above ], [ %above_at, %too_small ]
  %block = load ptr, ptr %link
  %end = icmp eq ptr %block, null
  br i1 %end, label %grow, label %try
try:
  %size_at = field Block.size, %block
  %size = load i64, ptr %size_at
  %room = sub i64 %size, {_HEADER}
  %fits = icmp ule i64 %need, %room
  br i1 %fits, label %use, label %too_small
too_small:
  %above_at = field Block.above, %block
  br label %walk
use:
  %used_at = field Block.used, %block
  store i64 {_HEADER}, ptr %used_at
  ret ptr %block
grow:
  ; What did not fit this time would only pile up: one larger block replaces it.
  %last_link = call ptr @drop_unused(ptr %arena, i64 0)
  %new = call ptr @create_block(i64 %need)
  store ptr %new, ptr %last_link
  ret ptr %new
}}

; Where the pointer to the first block above the top is kept.
define internal ptr @first_unused(ptr %arena) {{
  %top_at = field Arena.top, %arena
  %top = load ptr, ptr %top_at
  %empty = icmp eq ptr %top, null
  %base_at = field Arena.base, %arena
  %above_at = field Block.above, %top
  %link = select i1 %empty, ptr %base_at, ptr %above_at
  ret ptr %link
}}

; Frees the blocks above the top that have at least %smallest bytes; returns where the last link is kept.
define internal ptr @drop_unused(ptr %arena, i64 %smallest) {{
entry:
  %first_link = call ptr @first_unused(ptr %arena)
  br label %walk
walk:
  %link = phi ptr [ %first_link, %entry ], [ %link, %drop ], [ %above_at, %keep ]
  %block = load ptr, ptr %link
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %look
look:
  %above_at = field Block.above, %block
  %size_at = field Block.size, %block
  %size = load i64, ptr %size_at
  %doomed = icmp uge i64 %size, %smallest
  br i1 %doomed, label %drop, label %keep
drop:
  %above = load ptr, ptr %above_at
  store ptr %above, ptr %link
  %large = icmp uge i64 %size, {LARGE_BLOCK}
  %counted = select i1 %large, i64 %size, i64 0
  %was = atomicrmw sub ptr @cached, i64 %counted monotonic
  call void @free(ptr %block)
  br label %walk
keep:
  br label %walk
done:
  ret ptr %link
}}

define internal ptr @create_block(i64 %need) {{
entry:
  %with_header = add i64 %need, {_HEADER}
  %least = call i64 @llvm.umax.i64(i64 %with_header, i64 {SMALLEST_BLOCK})
  %large = icmp uge i64 %least, {LARGE_BLOCK}
  %alignment = select i1 %large, i64 {HUGE_PAGE}, i64 4096
  %round_up = sub i64 %alignment, 1
  %beyond = add i64 %least, %round_up
  %round_down = sub i64 0, %alignment
  %size = and i64 %beyond, %round_down
  %block = call ptr @aligned_block(i64 %alignment, i64 %size)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %done, label %fill
fill:
  %above_at = field Block.above, %block
  store ptr null, ptr %above_at
  %size_at = field Block.size, %block
  store i64 %size, ptr %size_at
  %used_at = field Block.used, %block
  store i64 {_HEADER}, ptr %used_at
  br i1 %large, label %account, label %done
account:
  %was = atomicrmw add ptr @cached, i64 %size monotonic
  %advised = call i32 @madvise(ptr %block, i64 %size, i32 {LINUX_MADV_HUGEPAGE})  ; a hint: it may fail
  br label %done
done:
  ret ptr %block
}}

define internal ptr @aligned_block(i64 %alignment, i64 %size) {{
  %out = alloca ptr, align 8
  store ptr null, ptr %out
  %rc = call i32 @posix_memalign(ptr %out, i64 %alignment, i64 %size)
  %got = load ptr, ptr %out
  %ok = icmp eq i32 %rc, 0
  %block = select i1 %ok, ptr %got, ptr null
  ret ptr %block
}}
"""

# Owner and helpers run the same loop. The first task is claimed before scratch memory is taken: who comes too
# late takes none.
_TASKS = f"""
define internal void @work_on(ptr %slot) {{
entry:
  %next_at = field Slot.next, %slot
  %count_at = field Slot.count, %slot
  %count = load i64, ptr %count_at
  %first = atomicrmw add ptr %next_at, i64 1 monotonic
  %any = icmp slt i64 %first, %count
  br i1 %any, label %prepare, label %done
prepare:
  %body_at = field Slot.body, %slot
  %body = load ptr, ptr %body_at
  %closure_at = field Slot.closure, %slot
  %closure = load ptr, ptr %closure_at
  %scratch_bytes_at = field Slot.scratch_bytes, %slot
  %scratch_bytes = load i64, ptr %scratch_bytes_at
  %scratch = call ptr @pantile_scratch_push(i64 %scratch_bytes)
  %short = call i1 @is_short(ptr %scratch, i64 %scratch_bytes)
  br i1 %short, label %out_of_memory, label %task
task:
  %index = phi i64 [ %first, %prepare ], [ %following, %claim ]
  %code = call i32 %body(ptr %closure, i64 %index, ptr %scratch)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %claim, label %failed
claim:
  %following = atomicrmw add ptr %next_at, i64 1 monotonic
  %more = icmp slt i64 %following, %count
  br i1 %more, label %task, label %pop
failed:
  call void @fail(ptr %slot, i32 %code)
  br label %pop
pop:
  call void @pantile_scratch_pop(ptr %scratch)
  br label %done
out_of_memory:
  call void @fail(ptr %slot, i32 {OUT_OF_MEMORY})
  br label %done
done:
  ret void
}}

define internal i1 @is_short(ptr %scratch, i64 %wanted_bytes) {{
  %missing = icmp eq ptr %scratch, null
  %wanted = icmp ne i64 %wanted_bytes, 0
  %short = and i1 %missing, %wanted
  ret i1 %short
}}

; The first code wins, and the tasks nobody has begun are skipped.
define internal void @fail(ptr %slot, i32 %code) {{
  %error_at = field Slot.error, %slot
  %exchange = cmpxchg ptr %error_at, i32 0, i32 %code monotonic monotonic
  %count_at = field Slot.count, %slot
  %count = load i64, ptr %count_at
  %next_at = field Slot.next, %slot
  store atomic i64 %count, ptr %next_at monotonic, align 8
  ret void
}}

define internal i32 @run_serially(ptr %body, ptr %closure, i64 %count, i64 %scratch_bytes) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %prepare, label %nothing
prepare:
  %scratch = call ptr @pantile_scratch_push(i64 %scratch_bytes)
  %short = call i1 @is_short(ptr %scratch, i64 %scratch_bytes)
  br i1 %short, label %out_of_memory, label %task
task:
  %index = phi i64 [ 0, %prepare ], [ %following, %advance ]
  %code = call i32 %body(ptr %closure, i64 %index, ptr %scratch)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %advance, label %pop
advance:
  %following = add i64 %index, 1
  %more = icmp slt i64 %following, %count
  br i1 %more, label %task, label %pop
pop:
  call void @pantile_scratch_pop(ptr %scratch)
  ret i32 %code
out_of_memory:
  ret i32 {OUT_OF_MEMORY}
nothing:
  ret i32 0
}}
"""

# Each worker has a bed to sleep in, and who wakes it picks the bed. Linux may put a woken thread on the core
# of its waker even with other cores idle; on a small machine it then waits there for milliseconds, and the
# region runs on one core. So a sleeper is moved off the waker's core before it is woken, and allows itself
# every core again once it runs.
#
# An owner wakes a few and begins to work; a worker that joins wakes a few more for the tickets still left.
# Spinners come by themselves and are not signalled.
_WAKING = f"""
define internal void @wake(i64 %wanted) {{
entry:
  %spinners = load atomic i64, ptr @spinners seq_cst, align 8
  %sleepers = load atomic i64, ptr @sleepers seq_cst, align 8
  %missing = sub i64 %wanted, %spinners
  %useful = call i64 @llvm.smin.i64(i64 %missing, i64 %sleepers)
  %wakes = call i64 @llvm.smin.i64(i64 %useful, i64 {WAKES_AT_ONCE})
  %any = icmp sgt i64 %wakes, 0
  br i1 %any, label %go, label %done
go:
  call void @wake_sleepers(i64 %wakes)
  br label %done
done:
  ret void
}}

define internal void @wake_sleepers(i64 %wakes) {{
entry:
  %workers = load atomic i64, ptr @workers acquire, align 8
  br label %each
each:
  %number = phi i64 [ 0, %entry ], [ %next, %look ]
  %left = phi i64 [ %wakes, %entry ], [ %now_left, %look ]
  %beds_left = icmp slt i64 %number, %workers
  %wakes_left = icmp sgt i64 %left, 0
  %go_on = and i1 %beds_left, %wakes_left
  br i1 %go_on, label %look, label %done
look:
  %bed = getelementptr inbounds [{MAX_THREADS} x %Bed], ptr @beds, i64 0, i64 %number
  %woke = call i1 @wake_sleeper(ptr %bed)
  %used = zext i1 %woke to i64
  %now_left = sub i64 %left, %used
  %next = add i64 %number, 1
  br label %each
done:
  ret void
}}

define internal i1 @wake_sleeper(ptr %bed) {{
entry:
  %ours = call i1 @end_sleep(ptr %bed)
  br i1 %ours, label %signal, label %no
signal:
  ; Taking the lock waits for a sleeper that has just tested its flag to be really waiting.
  %lock = field Bed.lock, %bed
  %lock_rc = call i32 @pthread_mutex_lock(ptr %lock)
  call void @move_elsewhere(ptr %bed)
  %woken = field Bed.woken, %bed
  %signal_rc = call i32 @pthread_cond_signal(ptr %woken)
  %unlock_rc = call i32 @pthread_mutex_unlock(ptr %lock)
  ret i1 true
no:
  ret i1 false
}}

; Whoever clears the flag, the sleeper or one that wakes it, takes it off the count: true for just one.
define internal i1 @end_sleep(ptr %bed) {{
entry:
  %asleep_at = field Bed.asleep, %bed
  %seen = load atomic i32, ptr %asleep_at seq_cst, align 4
  %asleep = icmp ne i32 %seen, 0
  br i1 %asleep, label %try, label %no
try:
  %before = atomicrmw xchg ptr %asleep_at, i32 0 seq_cst
  %ours = icmp ne i32 %before, 0
  br i1 %ours, label %yes, label %no
yes:
  %was = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  ret i1 true
no:
  ret i1 false
}}

; Movable is a thread that waits in its bed now (we hold the lock of the bed) and whose cores are known. Where
; this core is the only one allowed, Linux refuses, and the thread wakes where it was.
define internal void @move_elsewhere(ptr %bed) {{
entry:
  %movable_at = field Bed.movable, %bed
  %movable = load i32, ptr %movable_at
  %can = icmp ne i32 %movable, 0
  br i1 %can, label %move, label %done
move:
  %others = alloca %Opaque, align 64
  call void @cores_but_this(ptr %bed, ptr %others)
  %thread_at = field Bed.thread, %bed
  %thread = load i64, ptr %thread_at
  %rc = call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %others)
  %ok = icmp eq i32 %rc, 0
  %moved = zext i1 %ok to i32
  %moved_at = field Bed.moved, %bed
  store i32 %moved, ptr %moved_at
  br label %done
done:
  ret void
}}

define internal void @cores_but_this(ptr %bed, ptr %others) {{
  %cores = field Bed.cores, %bed
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %cores, i64 128, i1 false)
  %core = call i32 @sched_getcpu()
  %word = lshr i32 %core, 6
  %in_set = and i32 %word, 15       ; a core beyond the set's 1024 makes sleepers not movable
  %word_at = getelementptr i64, ptr %others, i32 %in_set
  %bits = load i64, ptr %word_at
  %bit_number = and i32 %core, 63
  %shift = zext i32 %bit_number to i64
  %bit = shl i64 1, %shift
  %all_but = xor i64 %bit, -1
  %without = and i64 %bits, %all_but
  store i64 %without, ptr %word_at
  ret void
}}

define internal void @sleep_for_job(ptr %bed, i64 %seen) {{
entry:
  %lock = field Bed.lock, %bed
  %lock_rc = call i32 @pthread_mutex_lock(ptr %lock)
  call void @note_cores(ptr %bed)
  %asleep_at = field Bed.asleep, %bed
  store atomic i32 1, ptr %asleep_at seq_cst, align 4
  %was = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %test
test:
  %epoch = load atomic i64, ptr @epoch seq_cst, align 8
  %same = icmp eq i64 %epoch, %seen
  %flag = load atomic i32, ptr %asleep_at seq_cst, align 4
  %asleep = icmp ne i32 %flag, 0
  %stay = and i1 %same, %asleep
  br i1 %stay, label %wait, label %up
wait:
  %woken = field Bed.woken, %bed
  %wait_rc = call i32 @pthread_cond_wait(ptr %woken, ptr %lock)
  br label %test
up:
  %by_itself = call i1 @end_sleep(ptr %bed)
  call void @allow_all_cores(ptr %bed)
  %unlock_rc = call i32 @pthread_mutex_unlock(ptr %lock)
  ret void
}}

; Each time, as the cores a thread may use can be changed from outside.
define internal void @note_cores(ptr %bed) {{
  %self = call i64 @pthread_self()
  %thread_at = field Bed.thread, %bed
  store i64 %self, ptr %thread_at
  %cores = field Bed.cores, %bed
  %rc = call i32 @pthread_getaffinity_np(i64 %self, i64 128, ptr %cores)
  %known = icmp eq i32 %rc, 0
  %movable = zext i1 %known to i32
  %movable_at = field Bed.movable, %bed
  store i32 %movable, ptr %movable_at
  ret void
}}

define internal void @allow_all_cores(ptr %bed) {{
entry:
  %movable_at = field Bed.movable, %bed
  store i32 0, ptr %movable_at
  %moved_at = field Bed.moved, %bed
  %moved = load i32, ptr %moved_at
  %restricted = icmp ne i32 %moved, 0
  br i1 %restricted, label %allow, label %done
allow:
  store i32 0, ptr %moved_at
  %self = call i64 @pthread_self()
  %cores = field Bed.cores, %bed
  %rc = call i32 @pthread_setaffinity_np(i64 %self, i64 128, ptr %cores)
  br label %done
done:
  ret void
}}
"""

_WORKER = f"""
define internal ptr @worker(ptr %bed) {{
entry:
  br label %look
look:
  %seen = load atomic i64, ptr @epoch seq_cst, align 8
  %helped = call i1 @help_any()
  br i1 %helped, label %look, label %spin
spin:
  %was_spinning = atomicrmw add ptr @spinners, i64 1 seq_cst
  %moved = call i1 @spin_for_job(ptr @epoch, i64 -1, i64 %seen)
  %now_spinning = atomicrmw sub ptr @spinners, i64 1 seq_cst
  br i1 %moved, label %look, label %sleep
sleep:
  call void @sleep_for_job(ptr %bed, i64 %seen)
  br label %look
}}

define internal i1 @help_any() {{
entry:
  %claimed = load atomic i64, ptr @claimed acquire, align 8
  br label %next
next:
  %left = phi i64 [ %claimed, %entry ], [ %others, %try ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %idle, label %try
try:
  %number = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %below = sub i64 %left, 1
  %others = and i64 %left, %below
  %slot = getelementptr inbounds [{SLOTS} x %Slot], ptr @slots, i64 0, i64 %number
  %joined = call i1 @join(ptr %slot)
  br i1 %joined, label %help, label %next
help:
  call void @work_on(ptr %slot)
  call void @leave(ptr %slot)
  ret i1 true
idle:
  ret i1 false
}}

; Trades a ticket for a place among the helpers. Should the slot have changed hands since it was looked
; at, the exchange joins the new job or fails; the job's fields are trusted only afterwards.
define internal i1 @join(ptr %slot) {{
entry:
  %state_at = field Slot.state, %slot
  %seen = load atomic i64, ptr %state_at acquire, align 8
  %worth = call i1 @has_tasks(ptr %slot)
  br i1 %worth, label %try, label %closed
try:
  %state = phi i64 [ %seen, %entry ], [ %current, %exchange ]
  %open = icmp uge i64 %state, {TICKET}
  br i1 %open, label %exchange, label %closed
exchange:
  %inside = add i64 %state, {1 - TICKET}
  %result = cmpxchg weak ptr %state_at, i64 %state, i64 %inside acquire monotonic
  %current = extractvalue {{ i64, i1 }} %result, 0
  %joined = extractvalue {{ i64, i1 }} %result, 1
  br i1 %joined, label %pass_on, label %try
pass_on:
  %tickets = lshr i64 %inside, 32
  call void @wake(i64 %tickets)
  ret i1 true
closed:
  ret i1 false
}}

; A guess that saves joining in vain. It misjudges only a slot that is being filled again, and the new job
; comes with a new epoch.
define internal i1 @has_tasks(ptr %slot) {{
  %next_at = field Slot.next, %slot
  %next = load atomic i64, ptr %next_at monotonic, align 8
  %count_at = field Slot.count, %slot
  %count = load atomic i64, ptr %count_at monotonic, align 8
  %any = icmp slt i64 %next, %count
  ret i1 %any
}}

; After the subtraction the job may be gone; the slot and its condition never are.
define internal void @leave(ptr %slot) {{
entry:
  %state_at = field Slot.state, %slot
  %before = atomicrmw sub ptr %state_at, i64 1 acq_rel
  %awaited = icmp eq i64 %before, {WAITING + 1}
  br i1 %awaited, label %notify, label %done
notify:
  call void @acquire()
  call void @release()
  %finished = field Slot.finished, %slot
  %rc = call i32 @pthread_cond_broadcast(ptr %finished)
  br label %done
done:
  ret void
}}
"""


def _spare_fault_signals() -> str:
    return "\n".join(
        f"  %spare{number} = call i32 @sigdelset(ptr %all, i32 {number})  ; {name}"
        for name, number in LINUX_FAULT_SIGNALS.items()
    )


# Workers block the signals of the process: those are for Python's own threads. That a thread could not be
# started is no error, as the owner runs every task that nobody else takes.
_GROWTH = f"""
define internal void @grow_to(i64 %wanted) {{
entry:
  %have = load atomic i64, ptr @workers monotonic, align 8
  %enough = icmp sge i64 %have, %wanted
  br i1 %enough, label %done, label %grow
grow:
  call void @start_workers(i64 %wanted)
  br label %done
done:
  ret void
}}

define internal void @start_workers(i64 %wanted) {{
entry:
  %all = alloca %Opaque, align 64
  %old = alloca %Opaque, align 64
  %filled = call i32 @sigfillset(ptr %all)
{_spare_fault_signals()}
  call void @acquire()
  %blocked = call i32 @pthread_sigmask(i32 {LINUX_SIG_SETMASK}, ptr %all, ptr %old)
  br label %test
test:
  %count = load atomic i64, ptr @workers monotonic, align 8
  %full = icmp sge i64 %count, %wanted
  br i1 %full, label %finish, label %start
start:
  %rc = call i32 @start_worker(i64 %count)
  %started = icmp eq i32 %rc, 0
  br i1 %started, label %record, label %finish
record:
  %more = add i64 %count, 1
  store atomic i64 %more, ptr @workers release, align 8
  br label %test
finish:
  %restored = call i32 @pthread_sigmask(i32 {LINUX_SIG_SETMASK}, ptr %old, ptr null)
  call void @release()
  ret void
}}

; Detached: nothing ever joins a worker, and the end of the process takes it along.
define internal i32 @start_worker(i64 %number) {{
  %bed = getelementptr inbounds [{MAX_THREADS} x %Bed], ptr @beds, i64 0, i64 %number
  call void @make_bed(ptr %bed)
  %attributes = alloca [2 x %Opaque], align 64
  %thread = alloca %Opaque, align 64
  %inited = call i32 @pthread_attr_init(ptr %attributes)
  %detached = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 {STACK_BYTES})
  %rc = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %bed)
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  ret i32 %rc
}}

; Anew each time: in the child of a fork the bed may be that of a worker which stayed behind.
define internal void @make_bed(ptr %bed) {{
  %asleep_at = field Bed.asleep, %bed
  store atomic i32 0, ptr %asleep_at monotonic, align 4
  %moved_at = field Bed.moved, %bed
  store i32 0, ptr %moved_at
  %lock = field Bed.lock, %bed
  %lock_rc = call i32 @pthread_mutex_init(ptr %lock, ptr null)
  %woken = field Bed.woken, %bed
  %woken_rc = call i32 @pthread_cond_init(ptr %woken, ptr null)
  ret void
}}
"""

_OWNER = f"""
define i32 @pantile_parallel_for(ptr %body, ptr %closure, i64 %count, i64 %scratch_bytes, i64 %num_threads) {{
entry:
  %useful = call i64 @llvm.smin.i64(i64 %count, i64 %num_threads)
  %threads = call i64 @llvm.smin.i64(i64 %useful, i64 {MAX_THREADS})
  %parallel = icmp sgt i64 %threads, 1
  br i1 %parallel, label %claim, label %serial
claim:
  %slot = call ptr @claim_slot()
  %none_free = icmp eq ptr %slot, null   ; that many regions at once keep every core busy already
  br i1 %none_free, label %serial, label %shared
serial:
  %serial_code = call i32 @run_serially(ptr %body, ptr %closure, i64 %count, i64 %scratch_bytes)
  ret i32 %serial_code
shared:
  %body_at = field Slot.body, %slot
  store ptr %body, ptr %body_at
  %closure_at = field Slot.closure, %slot
  store ptr %closure, ptr %closure_at
  %count_at = field Slot.count, %slot
  store atomic i64 %count, ptr %count_at monotonic, align 8
  %scratch_bytes_at = field Slot.scratch_bytes, %slot
  store i64 %scratch_bytes, ptr %scratch_bytes_at
  %next_at = field Slot.next, %slot
  store atomic i64 0, ptr %next_at monotonic, align 8
  %error_at = field Slot.error, %slot
  store atomic i32 0, ptr %error_at monotonic, align 4
  %helpers = sub i64 %threads, 1
  call void @grow_to(i64 %helpers)
  call void @publish(ptr %slot, i64 %helpers)
  call void @work_on(ptr %slot)
  call void @close(ptr %slot)
  %code = load atomic i32, ptr %error_at monotonic, align 4
  call void @free_slot(ptr %slot)
  ret i32 %code
}}

define internal ptr @claim_slot() {{
entry:
  %seen = load atomic i64, ptr @claimed monotonic, align 8
  br label %try
try:
  %claimed = phi i64 [ %seen, %entry ], [ %current, %exchange ]
  %free = xor i64 %claimed, -1
  %full = icmp eq i64 %free, 0
  br i1 %full, label %none, label %exchange
exchange:
  %number = call i64 @llvm.cttz.i64(i64 %free, i1 true)
  %bit = shl i64 1, %number
  %with_ours = or i64 %claimed, %bit
  %result = cmpxchg weak ptr @claimed, i64 %claimed, i64 %with_ours acquire monotonic
  %current = extractvalue {{ i64, i1 }} %result, 0
  %ours = extractvalue {{ i64, i1 }} %result, 1
  br i1 %ours, label %found, label %try
found:
  %slot = getelementptr inbounds [{SLOTS} x %Slot], ptr @slots, i64 0, i64 %number
  ret ptr %slot
none:
  ret ptr null
}}

define internal void @free_slot(ptr %slot) {{
  %address = ptrtoint ptr %slot to i64
  %start = ptrtoint ptr @slots to i64
  %offset = sub i64 %address, %start
  %slot_end = getelementptr %Slot, ptr null, i64 1
  %slot_bytes = ptrtoint ptr %slot_end to i64
  %number = udiv i64 %offset, %slot_bytes
  %bit = shl i64 1, %number
  %others = xor i64 %bit, -1
  %was = atomicrmw and ptr @claimed, i64 %others release
  ret void
}}

define internal void @publish(ptr %slot, i64 %helpers) {{
  %state_at = field Slot.state, %slot
  %tickets = shl i64 %helpers, 32
  store atomic i64 %tickets, ptr %state_at release, align 8
  %was = atomicrmw add ptr @epoch, i64 1 seq_cst
  call void @wake(i64 %helpers)
  ret void
}}

; Returns when no helper is left inside; none can join once the tickets are gone.
define internal void @close(ptr %slot) {{
entry:
  %state_at = field Slot.state, %slot
  %before = atomicrmw and ptr %state_at, i64 {HELPERS} acq_rel
  %inside = and i64 %before, {HELPERS}
  %alone = icmp eq i64 %inside, 0
  br i1 %alone, label %done, label %spin
spin:
  %finished = call i1 @spin_for_helpers(ptr %state_at, i64 {HELPERS}, i64 0)
  br i1 %finished, label %done, label %prepare_sleep
prepare_sleep:
  call void @acquire()
  %marked = atomicrmw or ptr %state_at, i64 {WAITING} acq_rel
  br label %test
test:
  %state = load atomic i64, ptr %state_at acquire, align 8
  %left = and i64 %state, {HELPERS}
  %over = icmp eq i64 %left, 0
  br i1 %over, label %awake, label %sleep
sleep:
  %condition = field Slot.finished, %slot
  %rc = call i32 @pthread_cond_wait(ptr %condition, ptr @lock)
  br label %test
awake:
  call void @release()
  br label %done
done:
  ret void
}}
"""

_LIFE = f"""
; Once per process, before anything else. Zero, or why libc refused.
define i32 @pantile_pool_init() {{
  call void @pantile_pool_after_fork()
  %rc = call i32 @pthread_key_create(ptr @arena_key, ptr @destroy_arena)
  ret i32 %rc
}}

; In the child of a fork only the forking thread lives: no workers, no jobs, and a lock nobody will release.
; Its own arena is still its own; the other threads' arenas stay unused copies.
define void @pantile_pool_after_fork() {{
entry:
  %lock = call i32 @pthread_mutex_init(ptr @lock, ptr null)
  store atomic i64 0, ptr @claimed monotonic, align 8
  store atomic i64 0, ptr @workers monotonic, align 8
  store atomic i64 0, ptr @sleepers monotonic, align 8
  store atomic i64 0, ptr @spinners monotonic, align 8
  br label %each
each:
  %number = phi i64 [ 0, %entry ], [ %next, %each ]
  %slot = getelementptr inbounds [{SLOTS} x %Slot], ptr @slots, i64 0, i64 %number
  %state_at = field Slot.state, %slot
  store atomic i64 0, ptr %state_at monotonic, align 8
  %condition = field Slot.finished, %slot
  %finished = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %each, label %done
done:
  ret void
}}

define i64 @pantile_pool_workers() {{
  %workers = load atomic i64, ptr @workers monotonic, align 8
  ret i64 %workers
}}
"""
