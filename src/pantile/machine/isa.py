"""The width of vectors, from the features that LLVM names."""

from __future__ import annotations

from collections.abc import Callable


def vector_bits(has: Callable[[str], bool]) -> int:
    """The width of the registers that vector code is best written for; `has` tells whether there is a feature."""
    return 512 if has("avx512f") else 256 if has("avx2") else 128
