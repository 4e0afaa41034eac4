"""The parts of the system that the pool needs: C library, clock, spin hints, locks."""

import re

SLOTS = 64
MAX_THREADS = 256
OUT_OF_MEMORY = -1

# Long enough to catch the next region of the same pipeline, and short enough to be negligible in an idle process.
WORKER_SPIN_NS = 50_000
OWNER_SPIN_NS = 50_000
POLLS_PER_CLOCK_READ = 32

CACHE_LIMIT = 1 << 30  # bytes of scratch memory kept in large blocks

LINUX_CLOCK_MONOTONIC, LINUX_SIG_SETMASK, LINUX_MADV_HUGEPAGE = 1, 2, 14

# The instruction that tells the core that it spins, and the feature that LLVM needs for it. AArch64 `yield` is a no-op
# on most cores; `isb` is a real pause. RISC-V's pause is encoded as a fence that every core accepts, but LLVM emits it
# only if the feature is enabled.
PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause()", ""),
    "aarch64": ("llvm.aarch64.isb(i32 15)", ""),
    "riscv64": ("llvm.riscv.pause()", '"target-features"="+m,+a,+f,+d,+c,+zihintpause"'),
}

LIBC = """
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

GLOBALS = f"""
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

LOCKING = """
define internal void @acquire() {
  %rc = call i32 @pthread_mutex_lock(ptr @lock)
  ret void
}

define internal void @release() {
  %rc = call i32 @pthread_mutex_unlock(ptr @lock)
  ret void
}
"""


def clock_and_pause(pause: str, attributes: str) -> str:
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


def spin(name: str, condition: str, limit_ns: int) -> str:
    """A function that polls a word until `condition` of (%value, %seen) holds (true) or the time is up (false). The
    limit is a time, not a number of polls, because the cost of a pause differs a hundredfold between cores."""
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
