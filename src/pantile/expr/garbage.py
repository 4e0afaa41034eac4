"""Expressions are many small objects, nearly all of which live until code is made; here Python is told not to look
through the young ones for garbage all the time."""

from __future__ import annotations

import gc

from .interpreter_settings import Meanwhile

_YOUNG = 5_000_000  # objects made before any is looked at: a chain of some thousand stages
_Thresholds = tuple[int, int, int]


def _rare(usual: _Thresholds) -> _Thresholds:
    """0 means that it is off."""
    return (max(usual[0], _YOUNG), *usual[1:]) if usual[0] else usual


# Around statements, or as a decorator: with rare_collections(): ...
rare_collections = Meanwhile[_Thresholds](gc.get_threshold, lambda t: gc.set_threshold(*t), _rare).inside
