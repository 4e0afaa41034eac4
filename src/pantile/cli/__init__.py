"""The command `pantile`: a demo, the compile cache, the apps and the benchmarks."""

from .command import main

__all__ = ["main"]
