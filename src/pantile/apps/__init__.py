"""Pipelines as readable examples, each with a schedule written by hand."""

from __future__ import annotations

from . import blur, harris, unsharp
from .app import App

APPS: dict[str, App] = {m.APP.name: m.APP for m in (blur, unsharp, harris)}

__all__ = ["APPS", "App"]
