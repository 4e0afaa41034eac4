"""A GPU simulator for debugging: runs kernels in NumPy with every access checked, and counted on request.

with counting() as counts:          every launch meanwhile adds its Counts
    simulate(kernel, scalars, buffers, blocks)
print(table(counts))
"""

from ..machine.occupancy import Occupancy
from .counts import Counts, counting, occupancy, table
from .failures import SimulationError
from .global_memory import Global
from .launch import simulate

__all__ = ["Counts", "Global", "Occupancy", "SimulationError", "counting", "occupancy", "simulate", "table"]
