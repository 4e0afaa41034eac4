"""The threads that join regions: waking them, their loop, and starting more of them."""

from .layout import TICKET, WAITING
from .platform import LINUX_SIG_SETMASK, MAX_THREADS, SLOTS

WAKES_AT_ONCE = 2
STACK_BYTES = 8 << 20

# Signals that a faulting instruction raises. If they were blocked, they would kill the process without faulthandler's
# trace.
LINUX_FAULT_SIGNALS = {"SIGILL": 4, "SIGBUS": 7, "SIGFPE": 8, "SIGSEGV": 11}

# Each worker sleeps in a bed of its own, and the waking thread picks the bed. Linux may put a woken thread on the core
# of its waker even if other cores are idle; on a small machine, the thread then waits there for milliseconds, and the
# region runs on one core. Therefore, a sleeper is barred from the waker's core before it is woken, and allows itself
# all cores again once it runs.
#
# An owner wakes a few workers and begins to work. A worker that joins wakes a few more for the remaining tickets.
# Spinning workers join without a signal.
WAKING = f"""
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
  %lock_rc = call i32 @pthread_mutex_lock(ptr field Bed.lock of %bed)
  call void @move_elsewhere(ptr %bed)
  %signal_rc = call i32 @pthread_cond_signal(ptr field Bed.woken of %bed)
  %unlock_rc = call i32 @pthread_mutex_unlock(ptr field Bed.lock of %bed)
  ret i1 true
no:
  ret i1 false
}}

; Whoever clears the flag, the sleeper or one that wakes it, takes it off the count: true for just one.
define internal i1 @end_sleep(ptr %bed) {{
entry:
  %seen = load atomic i32, ptr field Bed.asleep of %bed seq_cst, align 4
  %asleep = icmp ne i32 %seen, 0
  br i1 %asleep, label %try, label %no
try:
  %before = atomicrmw xchg ptr field Bed.asleep of %bed, i32 0 seq_cst
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
  %movable = load i32, ptr field Bed.movable of %bed
  %can = icmp ne i32 %movable, 0
  br i1 %can, label %move, label %done
move:
  %others = alloca %Opaque, align 64
  call void @cores_but_this(ptr %bed, ptr %others)
  %thread = load i64, ptr field Bed.thread of %bed
  %rc = call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %others)
  %ok = icmp eq i32 %rc, 0
  %moved = zext i1 %ok to i32
  store i32 %moved, ptr field Bed.moved of %bed
  br label %done
done:
  ret void
}}

define internal void @cores_but_this(ptr %bed, ptr %others) {{
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr field Bed.cores of %bed, i64 128, i1 false)
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
  %lock_rc = call i32 @pthread_mutex_lock(ptr field Bed.lock of %bed)
  call void @note_cores(ptr %bed)
  store atomic i32 1, ptr field Bed.asleep of %bed seq_cst, align 4
  %was = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %test
test:
  %epoch = load atomic i64, ptr @epoch seq_cst, align 8
  %same = icmp eq i64 %epoch, %seen
  %flag = load atomic i32, ptr field Bed.asleep of %bed seq_cst, align 4
  %asleep = icmp ne i32 %flag, 0
  %stay = and i1 %same, %asleep
  br i1 %stay, label %wait, label %up
wait:
  %wait_rc = call i32 @pthread_cond_wait(ptr field Bed.woken of %bed, ptr field Bed.lock of %bed)
  br label %test
up:
  %by_itself = call i1 @end_sleep(ptr %bed)
  call void @allow_all_cores(ptr %bed)
  %unlock_rc = call i32 @pthread_mutex_unlock(ptr field Bed.lock of %bed)
  ret void
}}

; Each time, as the cores a thread may use can be changed from outside.
define internal void @note_cores(ptr %bed) {{
  %self = call i64 @pthread_self()
  store i64 %self, ptr field Bed.thread of %bed
  %rc = call i32 @pthread_getaffinity_np(i64 %self, i64 128, ptr field Bed.cores of %bed)
  %known = icmp eq i32 %rc, 0
  %movable = zext i1 %known to i32
  store i32 %movable, ptr field Bed.movable of %bed
  ret void
}}

define internal void @allow_all_cores(ptr %bed) {{
entry:
  store i32 0, ptr field Bed.movable of %bed
  %moved = load i32, ptr field Bed.moved of %bed
  %restricted = icmp ne i32 %moved, 0
  br i1 %restricted, label %allow, label %done
allow:
  store i32 0, ptr field Bed.moved of %bed
  %self = call i64 @pthread_self()
  %rc = call i32 @pthread_setaffinity_np(i64 %self, i64 128, ptr field Bed.cores of %bed)
  br label %done
done:
  ret void
}}
"""

WORKER = f"""
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
  %seen = load atomic i64, ptr field Slot.state of %slot acquire, align 8
  %worth = call i1 @has_tasks(ptr %slot)
  br i1 %worth, label %try, label %closed
try:
  %state = phi i64 [ %seen, %entry ], [ %current, %exchange ]
  %open = icmp uge i64 %state, {TICKET}
  br i1 %open, label %exchange, label %closed
exchange:
  %inside = add i64 %state, {1 - TICKET}
  %result = cmpxchg weak ptr field Slot.state of %slot, i64 %state, i64 %inside acquire monotonic
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
  %next = load atomic i64, ptr field Slot.next of %slot monotonic, align 8
  %count = load atomic i64, ptr field Slot.count of %slot monotonic, align 8
  %any = icmp slt i64 %next, %count
  ret i1 %any
}}

; After the subtraction the job may be gone; the slot and its condition never are.
define internal void @leave(ptr %slot) {{
entry:
  %before = atomicrmw sub ptr field Slot.state of %slot, i64 1 acq_rel
  %awaited = icmp eq i64 %before, {WAITING + 1}
  br i1 %awaited, label %notify, label %done
notify:
  call void @acquire()
  call void @release()
  %rc = call i32 @pthread_cond_broadcast(ptr field Slot.finished of %slot)
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


# Workers block the signals of the process, which are for Python's own threads. A thread that cannot be started is not
# an error, since the owner runs every task that no other thread takes.
GROWTH = f"""
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
  store atomic i32 0, ptr field Bed.asleep of %bed monotonic, align 4
  store i32 0, ptr field Bed.moved of %bed
  %lock_rc = call i32 @pthread_mutex_init(ptr field Bed.lock of %bed, ptr null)
  %woken_rc = call i32 @pthread_cond_init(ptr field Bed.woken of %bed, ptr null)
  ret void
}}
"""
