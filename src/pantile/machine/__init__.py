"""Descriptions of hardware: `pt.machine.detect()` for this machine, `pt.machine.named("cortex-a57")` for another.

description   `Machine`, and `Cpu` with the costs of its instructions
host          this machine, from what its system reports and what `measure` finds
known         the CPUs of the cited documents, and two current ones
multiprocessor  `Gpu` and `Multiprocessor`, and how many blocks one holds
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
