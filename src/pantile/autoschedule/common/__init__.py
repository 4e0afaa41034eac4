"""The common parts of strategies: facts about stages, footprints of tiles, inlining, and schedules from groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_imports import imported_later

if TYPE_CHECKING:
    from .gpu_marking import GpuMarking as GpuMarking
    from .staged_sums import StagedPart as StagedPart
    from .staged_sums import staged as staged
else:
    __getattr__, __dir__ = imported_later(__name__, gpu_marking="GpuMarking", staged_sums="StagedPart staged")
