"""Programs that fork beside their threads: each runs in a process of its own, and a child that hangs is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
PATIENCE = 300  # seconds for a whole program, many times what it takes

# What all programs begin with. `child(work)` forks, and is "right", "wrong" or "hung".
COMMON = """
import gc, os, signal, sys, threading, time, warnings
import numpy as np, pantile as pt

warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of forking beside threads
PIXELS = np.random.default_rng(0).integers(0, 200, (40, 50)).astype("float32")
USUAL = sys.getrecursionlimit(), gc.get_threshold()
Y, X = pt.vars("y x")

def pipeline(number, stages=3, **options):
    img, before = pt.Input("img", "float32", 2), None
    for k in range(stages):
        f = pt.Func(f"f{k}")
        read = img if before is None else before
        f[Y, X] = read[Y, X] * float(number) + read[Y, X + 1]
        before = f
    return pt.Pipeline(before, (img.shape[0], img.shape[1] - stages), name=f"p{number}", **options)

def right(p):
    return bool(np.allclose(p(img=PIXELS, num_threads=2), p.reference(img=PIXELS)))

def settings_are_usual():
    return (sys.getrecursionlimit(), gc.get_threshold()) == USUAL

def child(work, patience=60):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return ended(pid, patience)

def ended(pid, patience=60):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return "right" if status == 0 else "wrong"
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"

class Background:
    "Does something again and again in a thread; `work` is given numbers."
    def __init__(self, work):
        self.stopped, self.done = False, 0
        self.thread = threading.Thread(target=self.run, args=(work,))
        self.thread.start()
    def run(self, work):
        while not self.stopped:
            work(1000 + self.done)
            self.done += 1
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.stopped = True
        self.thread.join()
"""


def run(program: str) -> str:
    """What the program prints, without a compile cache."""
    environment = {**os.environ, "PANTILE_CACHE_DIR": "/dev/null", "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, "-c", COMMON + program], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
