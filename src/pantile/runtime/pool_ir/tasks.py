"""The loop of all threads in a region: take tasks until there are none left."""

from .platform import OUT_OF_MEMORY

# Owner and helpers run the same loop. A thread claims its first task before it takes scratch memory, so that a thread
# that comes too late takes none.
TASKS = f"""
define internal void @work_on(ptr %slot) {{
entry:
  %count = load i64, ptr field Slot.count of %slot
  %first = atomicrmw add ptr field Slot.next of %slot, i64 1 monotonic
  %any = icmp slt i64 %first, %count
  br i1 %any, label %prepare, label %done
prepare:
  %body = load ptr, ptr field Slot.body of %slot
  %closure = load ptr, ptr field Slot.closure of %slot
  %scratch_bytes = load i64, ptr field Slot.scratch_bytes of %slot
  %scratch = call ptr @pantile_scratch_push(i64 %scratch_bytes)
  %short = call i1 @is_short(ptr %scratch, i64 %scratch_bytes)
  br i1 %short, label %out_of_memory, label %task
task:
  %index = phi i64 [ %first, %prepare ], [ %following, %claim ]
  %code = call i32 %body(ptr %closure, i64 %index, ptr %scratch)
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %claim, label %failed
claim:
  %following = atomicrmw add ptr field Slot.next of %slot, i64 1 monotonic
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
  %exchange = cmpxchg ptr field Slot.error of %slot, i32 0, i32 %code monotonic monotonic
  %count = load i64, ptr field Slot.count of %slot
  store atomic i64 %count, ptr field Slot.next of %slot monotonic, align 8
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
