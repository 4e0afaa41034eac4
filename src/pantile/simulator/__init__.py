"""A GPU simulator for debugging. It runs kernels in NumPy, checks every access, and on request counts accesses.

with counting() as counts:          every launch in this context adds its Counts
    simulate(kernel, scalars, buffers, blocks)
print(table(counts))
"""

from typing import TYPE_CHECKING

from ..lazy_imports import imported_later

if TYPE_CHECKING:
    from ..machine.multiprocessor import Occupancy
    from .accesses import SimulationError
    from .block_batch import simulate
    from .counts import Counts, counting, occupancy, table
    from .global_memory import Global
else:
    __getattr__, __dir__ = imported_later(
        __name__,
        accesses="SimulationError",
        block_batch="simulate",
        counts="Counts Occupancy counting occupancy table",
        global_memory="Global",
    )

__all__ = [
    "Counts", "Global", "Occupancy", "SimulationError", "counting", "occupancy",
    "simulate", "table",
]  # fmt: skip
