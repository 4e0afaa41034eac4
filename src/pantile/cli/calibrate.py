"""`pantile calibrate`: measure this machine, or with `--gpu` a GPU, and print the results."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import fields

import pantile as pt

from ..apps.names import WrongArgument
from ..machine.description import of_core
from ..machine.host import NOTICEABLE, busy_cores
from ..runtime.cuda import machine as gpus
from ..runtime.cuda.device import count, device
from ..target import host


def run(options: Namespace) -> int:
    """Measure the machine or a GPU, save and print the result, and return the exit code."""
    return _calibrate() if options.gpu is None else _calibrate_gpu(options.gpu)


def _calibrate() -> int:
    busy = busy_cores()
    if busy is not None and busy > NOTICEABLE:
        print(f"other processes keep {busy:.1f} cores busy: the machine is faster than these measurements")
    machine = pt.machine.calibrate(_show_progress)
    _show_progress("")
    print(f"{machine.name}, {machine.cores} cores, {machine.ghz:.2f} GHz, vectors of {machine.vector_bits} bits")
    issue = machine.issue
    per_cycle = {"fma": issue.fma, "int": issue.int, "load": issue.load, "store": issue.store}
    print("instructions per cycle:", ", ".join(f"{name} {n:.2f}" for name, n in per_cycle.items()))
    rates = [f"L{k} {c.bandwidth / 1e9:.0f}" for k, c in enumerate(machine.caches, 1)]
    memory = f"memory {machine.core_bandwidth / 1e9:.0f} by one core, {machine.bandwidth / 1e9:.0f} by all"
    print(f"GB/s: {', '.join([*rates, memory])}")
    usual = of_core({}, machine.vector_bits, host().gathers)
    measured = [f.name for f in fields(usual) if getattr(machine.costs, f.name) != getattr(usual, f.name)]
    print("cycles:", ", ".join(f"{name} {getattr(machine.costs, name):.2f}" for name in measured))
    return 0


def _show_progress(what: str) -> None:
    """Replace the progress line by a new one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _calibrate_gpu(number: int) -> int:
    if number >= count():
        raise WrongArgument(f"there is no GPU {number}; pantile devices lists the available ones")
    gpu = gpus.calibrate(device(number), _show_progress)
    _show_progress("")
    has, capability = gpu.multiprocessor, ".".join(map(str, gpu.capability))
    print(
        f"{gpu.name}, compute capability {capability}, {gpu.multiprocessors} multiprocessors of {has.cores} cores, "
        f"{gpu.ghz:.2f} GHz"
    )
    print(
        f"GB/s: global memory {gpu.bandwidth / 1e9:.0f}; bytes per cycle of a multiprocessor: shared memory "
        f"{has.shared_per_cycle:.0f}"
    )
    return 0
