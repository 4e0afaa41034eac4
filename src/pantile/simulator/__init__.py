"""The GPU's debugger: kernels of blocks of threads, run by NumPy with every access checked, and counted where asked.

with counting() as counts:          every launch meanwhile adds its Counts
    simulate(kernel, scalars, buffers, blocks)
print(table(counts))
"""

from .counts import Counts, counting, table
from .failures import SimulationError
from .global_memory import Global
from .launch import simulate
from .occupancy import Occupancy, occupancy

__all__ = ["Counts", "Global", "Occupancy", "SimulationError", "counting", "occupancy", "simulate", "table"]
