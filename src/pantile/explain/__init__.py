"""What a person sees of a pipeline: how long it takes and why, how it is scheduled, and what else was considered."""

from __future__ import annotations

from .explanation import Explanation, Timing
from .page import as_page, write_page
from .text import as_text

__all__ = ["Explanation", "Timing", "as_page", "as_text", "write_page"]
