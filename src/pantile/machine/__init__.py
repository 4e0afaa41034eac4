"""What the hardware is: `pt.machine.detect()` for the one at hand, `pt.machine.named("cortex-a57")` for another.

    description   the value that both give
    costs         of instructions and beginnings, for predicted times
    host          what the system tells of this machine, and what `measure` finds
    known         the machines of the documents, and two of today
"""

from __future__ import annotations

from .costs import Costs
from .description import Cache, Issue, Machine
from .host import calibrate, detect, usable_cores
from .known import NAMED, named

__all__ = ["NAMED", "Cache", "Costs", "Issue", "Machine", "calibrate", "detect", "named", "usable_cores"]
