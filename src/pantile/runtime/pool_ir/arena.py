"""Scratch memory: one arena per thread, a chain of blocks used as a stack."""

from .layout import HEADER
from .platform import LINUX_MADV_HUGEPAGE

SMALLEST_BLOCK = 256 << 10
# A block of at least this size is aligned to huge pages, counts against the cache limit, and may be returned to the
# system.
LARGE_BLOCK = 4 << 20
HUGE_PAGE = 2 << 20

# A frame remembers the state of the arena before it, so popping it also drops whatever was pushed later and not popped.
# Blocks above the top hold nothing and count as empty, whatever their `used` says.
ARENA = f"""
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
  %with_header = add i64 %bytes, {2 * HEADER - 1}
  %need = and i64 %with_header, -{HEADER}
  %block = call ptr @block_with_room(ptr %arena, i64 %need)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %none, label %take
take:
  %used = load i64, ptr field Block.used of %block
  %top = load ptr, ptr field Arena.top of %arena
  %frame = getelementptr i8, ptr %block, i64 %used
  store ptr %block, ptr field Frame.block of %frame
  store i64 %used, ptr field Frame.used of %frame
  store ptr %top, ptr field Frame.top of %frame
  %now_used = add i64 %used, %need
  store i64 %now_used, ptr field Block.used of %block
  store ptr %block, ptr field Arena.top of %arena
  %memory = getelementptr i8, ptr %frame, i64 {HEADER}
  ret ptr %memory
none:
  ret ptr null
}}

define void @pantile_scratch_pop(ptr %memory) {{
entry:
  %nothing = icmp eq ptr %memory, null
  br i1 %nothing, label %done, label %restore
restore:
  %frame = getelementptr i8, ptr %memory, i64 -{HEADER}
  %block = load ptr, ptr field Frame.block of %frame
  %used = load i64, ptr field Frame.used of %frame
  %top = load ptr, ptr field Frame.top of %frame
  store i64 %used, ptr field Block.used of %block
  %arena = call ptr @arena_of_thread()
  store ptr %top, ptr field Arena.top of %arena
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
  %made = call ptr @aligned_block(i64 {HEADER}, i64 {HEADER})
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %remember
remember:
  store ptr null, ptr field Arena.base of %made
  store ptr null, ptr field Arena.top of %made
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
  store ptr null, ptr field Arena.top of %arena
  %end = call ptr @drop_unused(ptr %arena, i64 0)
  call void @free(ptr %arena)
  ret void
}}

define internal ptr @block_with_room(ptr %arena, i64 %need) {{
entry:
  %top = load ptr, ptr field Arena.top of %arena
  %empty = icmp eq ptr %top, null
  br i1 %empty, label %above, label %try_top
try_top:
  %top_size = load i64, ptr field Block.size of %top
  %top_used = load i64, ptr field Block.used of %top
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
  %size = load i64, ptr field Block.size of %block
  %room = sub i64 %size, {HEADER}
  %fits = icmp ule i64 %need, %room
  br i1 %fits, label %use, label %too_small
too_small:
  %above_at = field Block.above of %block
  br label %walk
use:
  store i64 {HEADER}, ptr field Block.used of %block
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
  %top = load ptr, ptr field Arena.top of %arena
  %empty = icmp eq ptr %top, null
  %link = select i1 %empty, ptr field Arena.base of %arena, ptr field Block.above of %top
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
  %above_at = field Block.above of %block
  %size = load i64, ptr field Block.size of %block
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
  %with_header = add i64 %need, {HEADER}
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
  store ptr null, ptr field Block.above of %block
  store i64 %size, ptr field Block.size of %block
  store i64 {HEADER}, ptr field Block.used of %block
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
