"""The command `pantile`: a demo, the compile cache, apps and benchmarks."""

from .command import main

__all__ = ["main"]
