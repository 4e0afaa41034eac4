"""Expressions are walked recursively; here Python is told to follow as deep as people write them."""

from __future__ import annotations

import sys

from .meanwhile import Meanwhile

_DEEPEST = 20_000  # nested operands: a sum of n terms written out nests n deep

# Around statements, or as a decorator: with deep_expressions(): ...
deep_expressions = Meanwhile(sys.getrecursionlimit, sys.setrecursionlimit, lambda usual: max(usual, _DEEPEST)).inside
