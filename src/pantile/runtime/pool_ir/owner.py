"""The calling thread, which opens a region, works in it, and waits for its helpers."""

from .layout import HELPERS, WAITING
from .platform import MAX_THREADS, SLOTS

OWNER = f"""
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
  store ptr %body, ptr field Slot.body of %slot
  store ptr %closure, ptr field Slot.closure of %slot
  store atomic i64 %count, ptr field Slot.count of %slot monotonic, align 8
  store i64 %scratch_bytes, ptr field Slot.scratch_bytes of %slot
  store atomic i64 0, ptr field Slot.next of %slot monotonic, align 8
  store atomic i32 0, ptr field Slot.error of %slot monotonic, align 4
  %helpers = sub i64 %threads, 1
  call void @grow_to(i64 %helpers)
  call void @publish(ptr %slot, i64 %helpers)
  call void @work_on(ptr %slot)
  call void @close(ptr %slot)
  %code = load atomic i32, ptr field Slot.error of %slot monotonic, align 4
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
  %tickets = shl i64 %helpers, 32
  store atomic i64 %tickets, ptr field Slot.state of %slot release, align 8
  %was = atomicrmw add ptr @epoch, i64 1 seq_cst
  call void @wake(i64 %helpers)
  ret void
}}

; Returns when no helper is left inside; none can join once the tickets are gone.
define internal void @close(ptr %slot) {{
entry:
  %before = atomicrmw and ptr field Slot.state of %slot, i64 {HELPERS} acq_rel
  %inside = and i64 %before, {HELPERS}
  %alone = icmp eq i64 %inside, 0
  br i1 %alone, label %done, label %spin
spin:
  %finished = call i1 @spin_for_helpers(ptr field Slot.state of %slot, i64 {HELPERS}, i64 0)
  br i1 %finished, label %done, label %prepare_sleep
prepare_sleep:
  call void @acquire()
  %marked = atomicrmw or ptr field Slot.state of %slot, i64 {WAITING} acq_rel
  br label %test
test:
  %state = load atomic i64, ptr field Slot.state of %slot acquire, align 8
  %left = and i64 %state, {HELPERS}
  %over = icmp eq i64 %left, 0
  br i1 %over, label %awake, label %sleep
sleep:
  %rc = call i32 @pthread_cond_wait(ptr field Slot.finished of %slot, ptr @lock)
  br label %test
awake:
  call void @release()
  br label %done
done:
  ret void
}}
"""
