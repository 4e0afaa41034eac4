"""What the hardware is: `pt.machine.detect()` for the one at hand, `pt.machine.named("cortex-a57")` for another.

description   what a CPU is, and what all machines are
costs         of instructions and beginnings, for predicted times
host          what the system tells of this machine, and what `measure` finds
known         the CPUs of the documents, and two of today
gpu           what a GPU is, `multiprocessor` what one of those has
capabilities  multiprocessors by compute capability
gpus          GPUs by name
occupancy     how many blocks a multiprocessor holds
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import imported_later
from .costs import Costs
from .description import Cache, Cpu, Issue, Machine
from .host import calibrate, detect, usable_cores
from .known import NAMED, named

if TYPE_CHECKING:
    from .capabilities import occupancy_of as occupancy_of
    from .gpu import Gpu as Gpu
    from .gpus import GPUS as GPUS
    from .gpus import of_target as of_target
    from .multiprocessor import MatrixInstruction as MatrixInstruction
    from .multiprocessor import Multiprocessor as Multiprocessor
    from .occupancy import Occupancy as Occupancy
else:
    __getattr__, __dir__ = imported_later(
        __name__,
        GPUS="gpus",
        Gpu="gpu",
        MatrixInstruction="multiprocessor",
        Multiprocessor="multiprocessor",
        Occupancy="occupancy",
        occupancy_of="capabilities",
        of_target="gpus",
    )

__all__ = [
    "GPUS", "NAMED", "Cache", "Costs", "Cpu", "Gpu", "Issue", "Machine", "MatrixInstruction", "Multiprocessor",
    "Occupancy", "calibrate", "detect", "named", "occupancy_of", "of_target", "usable_cores",
]  # fmt: skip
