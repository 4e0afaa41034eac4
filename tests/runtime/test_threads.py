"""The thread pool: every task once, errors, scratch memory, nesting, many callers, forks and exits."""

import ctypes
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest

from pantile.runtime.pool_ir import pool_ir
from pantile.runtime.pool_ir.arena import LARGE_BLOCK
from pantile.runtime.pool_ir.platform import CACHE_LIMIT, SLOTS
from pantile.runtime.threads import MAX_THREADS, OUT_OF_MEMORY, ThreadPool, pool

Body = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
ParallelFor = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)

SOURCES = Path(__file__).parents[2] / "src"
PATIENCE = 60  # seconds until a wait that should end counts as a hang
INNER = 5

BODIES = f"""
declare i32 @pantile_parallel_for(ptr, ptr, i64, i64, i64)
declare i64 @pthread_self()

define i32 @count_one(ptr %counts, i64 %index, ptr %scratch) {{
  %count = getelementptr i32, ptr %counts, i64 %index
  %was = atomicrmw add ptr %count, i32 1 monotonic
  ret i32 0
}}

define i32 @fail_at_1000(ptr %counts, i64 %index, ptr %scratch) {{
  %bad = icmp eq i64 %index, 1000
  %code = select i1 %bad, i32 7, i32 0
  ret i32 %code
}}

define i32 @scribble(ptr %counts, i64 %index, ptr %scratch) {{
  store i64 -1, ptr %scratch
  %done = call i32 @count_one(ptr %counts, i64 %index, ptr null)
  ret i32 %done
}}

; When two threads are inside, the caller returns 21 and the other what a callback returns.
define i32 @fail_on_caller_first(ptr %shared, i64 %index, ptr %scratch) {{
entry:
  %was = atomicrmw add ptr %shared, i64 1 seq_cst
  br label %wait
wait:
  %arrived = load atomic i64, ptr %shared seq_cst, align 8
  %both = icmp eq i64 %arrived, 2
  br i1 %both, label %choose, label %wait
choose:
  %caller_at = getelementptr i64, ptr %shared, i64 1
  %caller = load i64, ptr %caller_at
  %self = call i64 @pthread_self()
  %on_caller = icmp eq i64 %caller, %self
  br i1 %on_caller, label %first, label %later
first:
  ret i32 21
later:
  %callback_at = getelementptr i64, ptr %shared, i64 2
  %callback = load ptr, ptr %callback_at
  %code = call i32 %callback(ptr null, i64 %index, ptr null)
  ret i32 %code
}}

; Keeps its index in scratch across a region of its own, whose tasks overwrite theirs.
define i32 @nest(ptr %counts, i64 %index, ptr %scratch) {{
  store volatile i64 %index, ptr %scratch
  %start = mul i64 %index, {INNER}
  %mine = getelementptr i32, ptr %counts, i64 %start
  %code = call i32 @pantile_parallel_for(ptr @scribble, ptr %mine, i64 {INNER}, i64 8, i64 4)
  %kept = load volatile i64, ptr %scratch
  %clobbered = icmp ne i64 %kept, %index
  %result = select i1 %clobbered, i32 5, i32 %code
  ret i32 %result
}}
"""


@pytest.fixture(scope="module")
def native() -> Iterator[dict[str, int]]:
    """Addresses of the bodies above."""
    pool()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(BODIES), machine)
    engine.finalize_object()
    yield {name: engine.get_function_address(name) for name in re.findall(r"define i32 @(\w+)", BODIES)}
    engine.close()


def run(body: int, counts: npt.NDArray[Any] | None, count: int, threads: int, scratch_bytes: int = 0) -> int:
    closure = None if counts is None else counts.ctypes.data
    function = ParallelFor(pool().symbols["pantile_parallel_for"])
    return int(function(body, closure, count, scratch_bytes, threads))


def run_python(body: Callable[[int, int | None], int], count: int, threads: int, scratch_bytes: int = 0) -> int:
    """Run a Python body of (index, scratch address)."""
    callback = Body(lambda closure, index, scratch: body(index, scratch))
    return run(ctypes.cast(callback, ctypes.c_void_p).value or 0, None, count, threads, scratch_bytes)


def push(size: int) -> int | None:
    address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(pool().symbols["pantile_scratch_push"])(size)
    return None if address is None else int(address)


def pop(address: int | None) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pool().symbols["pantile_scratch_pop"])(address)


def cached() -> int:
    """Bytes in large scratch blocks, in use or kept, of all threads."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(pool().symbols["pantile_scratch_cached"])())


def in_new_thread(work: Callable[[], None]) -> None:
    """With an arena nobody has used before; failures come back here."""
    with ThreadPoolExecutor(1) as executor:
        executor.submit(work).result(PATIENCE)


def in_new_process(script: str, **environment: str) -> str:
    """What the script prints; it must exit with zero, and exit at all."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(SOURCES), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_comes_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def thread_state(thread: int) -> str:
    """Linux's letter for what a native thread is doing: R runs, S sleeps."""
    return Path(f"/proc/self/task/{thread}/stat").read_text().rsplit(")", 1)[1].split()[0]


# --- tasks


@pytest.mark.parametrize("threads", [-1, 0, 1, 2, 3, 8, MAX_THREADS + 1])
@pytest.mark.parametrize("count", [-3, 0, 1, 2, 3, 7, 64, 1000, 10007])
def test_every_index_runs_once(native: dict[str, int], count: int, threads: int) -> None:
    counts = np.zeros(max(count, 0) + 1, np.int32)
    assert run(native["count_one"], counts, count, threads) == 0
    assert counts[-1] == 0
    assert (counts[:-1] == 1).all()


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_a_region_gets_as_many_threads_as_it_asks_for(threads: int) -> None:
    everyone = threading.Barrier(threads)
    seen = []

    def meet(index: int, scratch: int | None) -> int:
        everyone.wait(PATIENCE)
        seen.append(threading.get_native_id())
        return 0

    assert run_python(meet, threads, threads) == 0
    assert len(set(seen)) == threads
    assert threading.get_native_id() in seen


def test_one_thread_runs_in_order_on_the_caller() -> None:
    seen = []

    def note(index: int, scratch: int | None) -> int:
        seen.append((index, threading.get_native_id()))
        return 0

    assert run_python(note, 10, 1) == 0
    assert seen == [(index, threading.get_native_id()) for index in range(10)]


def test_the_pool_stops_growing_at_its_cap(native: dict[str, int]) -> None:
    assert run(native["count_one"], np.zeros(1000, np.int32), 1000, 100_000) == 0
    assert pool().workers() <= MAX_THREADS - 1


def test_thousands_of_small_regions(native: dict[str, int]) -> None:
    counts = np.zeros(8, np.int32)
    for repeat in range(5000):
        assert run(native["count_one"], counts, 2 + repeat % 7, 2 + repeat % 3) == 0
    expected = [sum(index < 2 + repeat % 7 for repeat in range(5000)) for index in range(8)]
    assert counts.tolist() == expected


# --- errors


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_an_error_skips_the_tasks_that_remain(native: dict[str, int], threads: int) -> None:
    assert run(native["fail_at_1000"], None, 1 << 50, threads) == 7  # would otherwise run for months


def test_an_error_is_one_that_a_body_returned() -> None:
    def fail(index: int, scratch: int | None) -> int:
        return 11 + index

    assert run_python(fail, 1, 4) == 11
    assert run_python(fail, 100, 1) == 11
    assert run_python(fail, 100, 4) in range(11, 15)  # no thread begins another task after its first fails


def test_a_later_error_does_not_replace_the_first(native: dict[str, int]) -> None:
    caller = threading.get_native_id()

    def fail_later(closure: int | None, index: int, scratch: int | None) -> int:
        assert_comes_true(lambda: thread_state(caller) == "S")  # it has failed, and waits for this task
        return 22

    later = Body(fail_later)
    this_thread = threading.get_ident()  # pthread_self
    shared = np.array([0, this_thread, ctypes.cast(later, ctypes.c_void_p).value], np.uint64)
    assert run(native["fail_on_caller_first"], shared, 2, 2) == 21


def test_a_region_after_an_error_is_unharmed(native: dict[str, int]) -> None:
    counts = np.zeros(100, np.int32)
    for _ in range(100):
        assert run(native["fail_at_1000"], None, 2000, 3) == 7
        assert run(native["count_one"], counts, 100, 3) == 0
    assert (counts == 100).all()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("scratch_bytes", [1 << 60, -1])
def test_no_memory_for_scratch_is_an_error(threads: int, scratch_bytes: int) -> None:
    ran = []

    def note(index: int, scratch: int | None) -> int:
        ran.append(index)
        return 0

    assert run_python(note, 10, threads, scratch_bytes) == OUT_OF_MEMORY
    assert not ran


# --- scratch


def test_scratch_is_aligned_and_each_threads_own() -> None:
    everyone = threading.Barrier(4)
    seen = []

    def meet(index: int, scratch: int | None) -> int:
        assert scratch is not None
        ctypes.memset(scratch, index, 5000)
        everyone.wait(PATIENCE)
        seen.append((scratch, ctypes.string_at(scratch, 5000) == bytes([index]) * 5000))
        return 0

    assert run_python(meet, 4, 4, 5000) == 0
    assert all(intact for _, intact in seen)
    assert all(address % 64 == 0 for address, _ in seen)
    assert len({address for address, _ in seen}) == 4


@pytest.mark.parametrize("threads", [1, 3])
def test_no_scratch_is_null(threads: int) -> None:
    seen = []

    def note(index: int, scratch: int | None) -> int:
        seen.append(scratch)
        return 0

    assert run_python(note, 5, threads) == 0
    assert seen == [None] * 5


def test_scratch_is_reused_by_the_next_region() -> None:
    seen = []

    def note(index: int, scratch: int | None) -> int:
        seen.append(scratch)
        return 0

    for _ in range(3):
        assert run_python(note, 2, 1, 1 << 20) == 0
    assert len(set(seen)) == 1


def test_pushes_do_not_overlap_and_pops_give_back() -> None:
    def work() -> None:
        sizes = [1, 64, 100, 1 << 18, 3, 1 << 20, 10]
        rounds = []
        for _ in range(3):
            addresses = [push(size) for size in sizes]
            spans = sorted((a, a + size) for a, size in zip(addresses, sizes, strict=True) if a is not None)
            assert len(spans) == len(sizes)
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))
            assert all(start % 64 == 0 for start, _ in spans)
            rounds.append(addresses)
            for address in reversed(addresses):
                pop(address)
        assert rounds[0] == rounds[1] == rounds[2]

    in_new_thread(work)


def test_a_pop_drops_what_was_pushed_later() -> None:
    def work() -> None:
        outer = push(100)
        inner = [push(1 << 20), push(2 << 20)]
        pop(outer)
        assert [push(100), push(1 << 20), push(2 << 20)] == [outer, *inner]
        pop(outer)

    in_new_thread(work)


def test_pushing_nothing_and_too_much() -> None:
    assert push(0) is None
    assert push(1 << 60) is None
    assert push(-1) is None
    pop(None)


@pytest.fixture
def scratch_limit() -> Iterator[Callable[[int], None]]:
    set_limit = ctypes.CFUNCTYPE(None, ctypes.c_int64)(pool().symbols["pantile_scratch_set_limit"])
    yield set_limit
    set_limit(CACHE_LIMIT)


def test_large_scratch_is_kept_up_to_the_limit(scratch_limit: Callable[[int], None]) -> None:
    size = 4 * LARGE_BLOCK

    def work() -> None:
        before = cached()
        first = push(size)
        pop(first)
        assert cached() >= before + size
        assert push(size) == first
        pop(first)
        scratch_limit(0)
        pop(push(size))
        assert cached() <= before

    in_new_thread(work)


def test_a_thread_that_ends_gives_its_scratch_back() -> None:
    before = cached()
    in_new_thread(lambda: pop(push(4 * LARGE_BLOCK)))
    assert_comes_true(lambda: cached() <= before)


# --- nesting and many callers


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_nested_regions_keep_the_outer_scratch(native: dict[str, int], threads: int) -> None:
    counts = np.zeros(200 * INNER, np.int32)
    for _ in range(20):
        assert run(native["nest"], counts, 200, threads, 8) == 0
    assert (counts == 20).all()


def test_regions_nest_deeply() -> None:
    ran = []

    def descend(depth: int) -> Callable[[int, int | None], int]:
        def body(index: int, scratch: int | None) -> int:
            ran.append(depth)
            return run_python(descend(depth - 1), 3, 3, 100) if depth else 0

        return body

    assert run_python(descend(4), 3, 3, 100) == 0
    assert [ran.count(depth) for depth in (4, 3, 2, 1, 0)] == [3, 9, 27, 81, 243]


def test_an_error_passes_through_nested_regions(native: dict[str, int]) -> None:
    assert run_python(lambda index, scratch: run(native["fail_at_1000"], None, 2000, 3), 4, 3) == 7


def test_more_callers_than_slots(native: dict[str, int]) -> None:
    callers = SLOTS + 16
    everyone = threading.Barrier(callers)

    def call(_: int) -> bool:
        counts = np.zeros(100 * INNER, np.int32)
        everyone.wait(PATIENCE)
        codes = {run(native["nest"], counts, 100, 4, 8) for _ in range(20)}
        return codes == {0} and bool((counts == 20).all())

    with ThreadPoolExecutor(callers) as executor:
        assert all(executor.map(call, range(callers)))


def test_more_open_regions_than_slots() -> None:
    callers = SLOTS + 6
    all_inside = threading.Barrier(callers)

    def wait_once(index: int, scratch: int | None) -> int:
        if index == 0:
            all_inside.wait(PATIENCE)
        return 0

    with ThreadPoolExecutor(callers) as executor:
        codes = executor.map(lambda _: run_python(wait_once, 3, 2, 64), range(callers))
        assert list(codes) == [0] * callers


def test_idle_workers_sleep(native: dict[str, int]) -> None:
    everyone = threading.Barrier(3)
    ids = set()

    def meet(index: int, scratch: int | None) -> int:
        ids.add(threading.get_native_id())
        everyone.wait(PATIENCE)
        return 0

    assert run_python(meet, 3, 3) == 0
    workers = ids - {threading.get_native_id()}

    assert_comes_true(lambda: all(thread_state(worker) == "S" for worker in workers))
    assert run(native["count_one"], np.zeros(9, np.int32), 9, 3) == 0


def test_workers_may_use_every_core_again_after_waking() -> None:
    everyone = threading.Barrier(2)
    cores = []

    def meet(index: int, scratch: int | None) -> int:
        everyone.wait(PATIENCE)
        cores.append(os.sched_getaffinity(0))
        return 0

    for _ in range(50):
        assert run_python(meet, 2, 2) == 0
        time.sleep(0.001)  # long enough for the worker to fall asleep; right either way
    assert cores == [os.sched_getaffinity(0)] * 100


# --- forks and exits


def run_in_child(work: Callable[[], bool]) -> int:
    """The exit status of a forked child that does the work: zero if it was right."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 2
    try:
        status = 0 if work() else 1
    finally:
        os._exit(status)


def meets_two_helpers() -> bool:
    everyone = threading.Barrier(3)

    def meet(index: int, scratch: int | None) -> int:
        everyone.wait(PATIENCE)
        return 0

    return run_python(meet, 3, 3, 100) == 0 and pool().workers() == 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_workers_of_its_own(native: dict[str, int]) -> None:
    counts = np.zeros(100, np.int32)
    assert run(native["count_one"], counts, 100, 4) == 0
    assert run_in_child(meets_two_helpers) == 0
    assert run_in_child(lambda: run_in_child(meets_two_helpers) == 0) == 0
    assert run(native["count_one"], counts, 100, 4) == 0
    assert (counts == 2).all()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forking_while_other_threads_run_regions(native: dict[str, int]) -> None:
    stop = threading.Event()

    def keep_busy() -> None:
        counts = np.zeros(50 * INNER, np.int32)
        while not stop.is_set():
            assert run(native["nest"], counts, 50, 4, 8) == 0

    with ThreadPoolExecutor(3) as executor:
        busy = [executor.submit(keep_busy) for _ in range(3)]
        statuses = [run_in_child(meets_two_helpers) for _ in range(8)]
        stop.set()
        for caller in busy:
            caller.result(PATIENCE)
    assert statuses == [0] * 8


IN_PROCESS = """
import ctypes, threading, time
from pantile.runtime.threads import compile_pool, pool

Body = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
For = ctypes.CFUNCTYPE(ctypes.c_int32, Body, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

def run(body, count, threads):
    return For(pool().symbols["pantile_parallel_for"])(body, None, count, 64, threads)
"""


def test_exit_with_idle_workers() -> None:
    script = """
    barrier = threading.Barrier(4)
    meet = Body(lambda closure, index, scratch: barrier.wait(30) * 0)
    print(run(meet, 4, 4), pool().workers())
    """
    assert in_new_process(IN_PROCESS + textwrap.dedent(script)) == "0 3\n"


def test_exit_while_a_daemon_thread_runs_regions() -> None:
    script = """
    sleep = ctypes.CDLL(None).usleep  # native, so that no task needs the interpreter that goes away
    body = ctypes.cast(sleep, Body)
    begun = threading.Event()
    def forever():
        begun.set()
        run(body, 1 << 40, 4)
    threading.Thread(target=forever, daemon=True).start()
    begun.wait()
    while pool().workers() < 3: time.sleep(0.001)
    print("leaving")
    """
    assert in_new_process(IN_PROCESS + textwrap.dedent(script)) == "leaving\n"


# --- loading


def test_many_threads_load_one_pool() -> None:
    script = """
    compiled, loaded, everyone = [], [], threading.Barrier(16)
    def compile_once():
        compiled.append(compile_pool())
        return compiled[-1]
    def load():
        everyone.wait()
        loaded.append(pool(compile_once))
    threads = [threading.Thread(target=load) for _ in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(len(compiled), len(loaded), len(set(map(id, loaded))))
    """
    assert in_new_process(IN_PROCESS + textwrap.dedent(script)) == "1 16 1\n"


def test_the_environment_sets_the_number_of_threads() -> None:
    script = IN_PROCESS + "print(pool().get_num_threads())"
    assert in_new_process(script, PANTILE_NUM_THREADS="7") == "7\n"
    assert in_new_process(script, PANTILE_NUM_THREADS="") == f"{len(os.sched_getaffinity(0))}\n"


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("many", "PANTILE_NUM_THREADS must be a number of threads, not 'many'"),
        ("0", "PANTILE_NUM_THREADS needs 1 to 256 threads, not 0"),
    ],
)
def test_a_bad_environment_is_named(value: str, complaint: str) -> None:
    script = """
    try:
        pool()
    except ValueError as error:
        print(error)
    """
    assert in_new_process(IN_PROCESS + textwrap.dedent(script), PANTILE_NUM_THREADS=value) == complaint + "\n"


@pytest.fixture
def restored() -> Iterator[ThreadPool]:
    before = pool().get_num_threads()
    yield pool()
    pool().set_num_threads(before)


def test_the_number_of_threads_can_be_set(restored: ThreadPool) -> None:
    restored.set_num_threads(5)
    assert restored.get_num_threads() == 5
    with pytest.raises(ValueError, match="set_num_threads needs 1 to 256 threads, not 0"):
        restored.set_num_threads(0)
    assert restored.get_num_threads() == 5


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_the_pool_compiles_for_every_host(arch: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = f"{arch}-unknown-linux-gnu"
    features = "+m,+a,+f,+d,+c" if arch == "riscv64" else ""
    machine = llvm.Target.from_triple(triple).create_target_machine(features=features, opt=0, reloc="pic")
    module = llvm.parse_assembly(pool_ir(triple))
    module.verify()
    assert b"pantile_parallel_for" in machine.emit_object(module)


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(ValueError, match="no spin hint for 'sparc'"):
        pool_ir("sparc-unknown-linux-gnu")
