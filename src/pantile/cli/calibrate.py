"""`pantile calibrate`: measure this machine, and print the results."""

from __future__ import annotations

from dataclasses import fields

import pantile as pt

from ..machine.costs import of_core
from ..machine.quiet import NOTICEABLE, busy_cores
from ..target import host
from .progress import show_progress


def calibrate() -> int:
    """Measure the machine, save and print the result, and return the exit code."""
    busy = busy_cores()
    if busy is not None and busy > NOTICEABLE:
        print(f"other processes keep {busy:.1f} cores busy: the machine is faster than these measurements")
    machine = pt.machine.calibrate(show_progress)
    show_progress("")
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
