"""Starting the pool, querying it, and resetting it in a forked child."""

from .platform import SLOTS

LIFE = f"""
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
  store atomic i64 0, ptr field Slot.state of %slot monotonic, align 8
  %finished = call i32 @pthread_cond_init(ptr field Slot.finished of %slot, ptr null)
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
