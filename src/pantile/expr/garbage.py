"""Rare garbage collection: expressions are many small objects, nearly all of which live until code is generated, so
that Python need not look for garbage among the young ones all the time."""

from __future__ import annotations

import gc

from .interpreter_settings import TemporarySetting

_YOUNG = 5_000_000  # objects made before a collection: a chain of some thousand stages
_Thresholds = tuple[int, int, int]


def _rare(usual: _Thresholds) -> _Thresholds:
    """The thresholds of rare collections; a first threshold of 0 means that collection is off, and stays."""
    return (max(usual[0], _YOUNG), *usual[1:]) if usual[0] else usual


# Around statements, or as a decorator: with rare_collections(): ...
rare_collections = TemporarySetting[_Thresholds](gc.get_threshold, lambda t: gc.set_threshold(*t), _rare).inside
