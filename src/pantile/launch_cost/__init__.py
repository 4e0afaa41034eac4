"""The cost model for GPUs: the work of a kernel launch, found without running it, and the seconds that it takes."""

from __future__ import annotations

from .instruction_counts import Pipe
from .l2_reuse import shares_in_l2
from .launch_time import LaunchTime, launch_time
from .sampled_launch import Work, work_of

__all__ = ["LaunchTime", "Pipe", "Work", "launch_time", "shares_in_l2", "work_of"]
