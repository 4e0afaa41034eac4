"""What the hardware is: `pt.machine.detect()` for the one at hand, `pt.machine.named("cortex-a57")` for another.

description   what a CPU is and what its instructions cost, and what all machines are
host          what the system tells of this machine, and what `measure` finds
known         the CPUs of the documents, and two of today
multiprocessor  what a GPU is, what a multiprocessor of one has, and how many blocks it holds
capabilities  multiprocessors by compute capability, and GPUs by name
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import imported_later
from .description import Cache, Costs, Cpu, Issue, Machine
from .host import calibrate, detect, usable_cores
from .known import NAMED, named

if TYPE_CHECKING:
    from .capabilities import GPUS, occupancy_of, of_target
    from .multiprocessor import Gpu, GpuCosts, MatrixInstruction, Multiprocessor, Occupancy
else:
    __getattr__, __dir__ = imported_later(
        __name__,
        capabilities="GPUS occupancy_of of_target",
        multiprocessor="Gpu GpuCosts MatrixInstruction Multiprocessor Occupancy",
    )

__all__ = [
    "GPUS", "NAMED", "Cache", "Costs", "Cpu", "Gpu", "GpuCosts", "Issue", "Machine", "MatrixInstruction",
    "Multiprocessor", "Occupancy", "calibrate", "detect", "named", "occupancy_of", "of_target", "usable_cores",
]  # fmt: skip
