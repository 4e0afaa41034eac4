"""Explanations of a pipeline for people: its time and the causes, its schedule, and the runners-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import imported_later
from .explanation import Explanation, Timing

if TYPE_CHECKING:
    from .page import as_page, write_page
    from .text import as_text
else:
    __getattr__, __dir__ = imported_later(__name__, page="as_page write_page", text="as_text")

__all__ = ["Explanation", "Timing", "as_page", "as_text", "write_page"]
