"""Forks beside threads that compile, schedule or hold a lock: the child compiles and is right, and nobody waits."""

from __future__ import annotations

import pytest

from ..long import LONG
from .forking import run

TIMES, STAGES = (16, 5) if LONG else (6, 3)


@pytest.mark.parametrize("lines", [800, 40])
def test_while_another_thread_compiles_again_and_again(lines: int) -> None:
    """Also where each module is compiled in several parts at once."""
    found = run(f"""
from pantile.codegen import parts
parts._LEAST = {lines}
with Background(lambda number: right(pipeline(number))) as compiling:
    while compiling.done < 2:
        time.sleep(0.01)
    found = set()
    for k in range({TIMES}):
        time.sleep(0.003 * k)
        found.add(child(lambda: right(pipeline(k)) and settings_are_usual()))
        if "hung" in found:
            break
print(*found)
""")
    assert found == "right"


@pytest.mark.parametrize("strategy", ["dp", "posttile", "greedy"])
def test_while_a_strategy_searches_again_and_again(strategy: str) -> None:
    found = run(f"""
def searched(number):
    return pipeline(number, stages={STAGES}, schedule={strategy!r}, estimates={{"img": (400, 500)}}, machine=MACHINE)

MACHINE = pt.machine.named("i7-6700")
with Background(searched) as searching:
    while searching.done < 2:
        time.sleep(0.01)
    found = set()
    for k in range({TIMES // 2}):
        time.sleep(0.007 * k)
        found.add(child(lambda: right(searched(k)) and settings_are_usual()))
        if "hung" in found:
            break
print(*found)
""")
    assert found == "right"


def test_of_a_pipeline_that_is_being_scheduled() -> None:
    found = run("""
class Slow(pt.autoschedule.Strategy):
    name = "slow"
    begun, go_on = threading.Event(), threading.Event()
    def find(self, problem):
        self.begun.set()
        self.go_on.wait()
        return pt.autoschedule.Naive().find(problem)

def work():
    Slow.go_on = threading.Event()
    Slow.go_on.set()
    return right(p) and settings_are_usual()

p = pipeline(1, schedule=Slow())
scheduling = threading.Thread(target=lambda: right(p))
scheduling.start()
Slow.begun.wait()
print(child(work))
Slow.go_on.set()
scheduling.join()
print(right(p))
""")
    assert found.split() == ["right", "True"]


def test_by_the_strategy_itself() -> None:
    """The thread that forks holds the pipeline's lock, in the child as well, and lets go of it in both."""
    found = run("""
class Forking(pt.autoschedule.Strategy):
    name = "forking"
    def find(self, problem):
        global pid
        pid = os.fork()
        return pt.autoschedule.Naive().find(problem)

p = pipeline(1, schedule=Forking())
good = right(p) and right(p)
if pid == 0:
    os._exit(0 if good and settings_are_usual() else 1)
print(good, ended(pid))
""")
    assert found.split() == ["True", "right"]


def test_by_a_thread_that_is_in_llvm() -> None:
    found = run("""
from llvmlite.binding import ffi
with ffi.lib._lock:
    print(child(lambda: right(pipeline(1))))
print(right(pipeline(2)))
""")
    assert found.split() == ["right", "True"]


def test_while_another_thread_has_changed_settings() -> None:
    found = run("""
from pantile.expr.depth import rare_collections
inside, leave = threading.Event(), threading.Event()

def enter():
    with rare_collections():
        inside.set()
        leave.wait()

entering = threading.Thread(target=enter)
entering.start()
inside.wait()
print(not settings_are_usual(), child(settings_are_usual))

def both():
    with rare_collections():
        pass
    return settings_are_usual()

print(child(both))
with rare_collections():
    pid = os.fork()
    unusual = not settings_are_usual()
if pid == 0:
    os._exit(0 if unusual and settings_are_usual() else 1)
print(unusual, ended(pid))
leave.set()
entering.join()
print(settings_are_usual())
""")
    assert found.split() == ["True", "right", "right", "True", "right", "True"]


def test_llvm_that_does_not_come_back_in_time() -> None:
    """The fork does not wait for ever. What was compiled runs in the child, and it says why it compiles nothing."""
    found = run("""
from llvmlite.binding import ffi
from pantile import forks
forks.PATIENCE = 0.1
inside, leave = threading.Event(), threading.Event()

def enter():
    with ffi.lib._lock:
        inside.set()
        leave.wait()

compiled = pipeline(1)
right(compiled)
entering = threading.Thread(target=enter)
entering.start()
inside.wait()

def work():
    assert right(compiled)
    try:
        right(pipeline(2))
    except pt.RunError as error:
        return "forked while another thread" in str(error)

print(child(work))
leave.set()
entering.join()
print(right(pipeline(2)))
print(child(lambda: right(pipeline(3))))
""")
    assert found.split() == ["right", "True", "right"]


def test_while_a_strategy_is_imported() -> None:
    found = run("""
late = threading.Thread(target=lambda: pt.autoschedule.PostTile)
late.start()
while "islpy" not in sys.modules:
    time.sleep(0.001)
print(child(lambda: pt.autoschedule.PostTile.name == "posttile", patience=10))
late.join()
""")
    assert found == "right"
