"""What a thread has of the caches, and how many rows of a tile of a statement's arrays they hold."""

from __future__ import annotations

from collections.abc import Mapping

from ...cached import cached_property
from ...dataclass import dataclass
from ...machine.description import Cpu
from .emulation import Prefetcher, most_rows
from .references import Numbers
from .statement import Statement


@dataclass(frozen=True, eq=False)
class Capacity:
    """The capacities of caches for the arrays of one statement."""

    s: Statement
    machine: Cpu
    prefetcher: Prefetcher  # of L2

    @cached_property
    def element(self) -> int:
        """DTS: the bytes of an element of the widest array."""
        return max(r.bytes for r in self.s.references)

    @cached_property
    def per_line(self) -> int:
        """The elements of a cache line, lc in the thesis."""
        return max(1, self.machine.l1.line // self.element)

    @cached_property
    def threads(self) -> int:
        """The hardware threads of a core."""
        return max(1, self.machine.threads // self.machine.cores)

    @property
    def l1(self) -> float:
        """The bytes of the first-level cache that a thread can count on."""
        return self.machine.l1.per_core / self.threads

    @property
    def l2(self) -> float:
        """The bytes of the second-level cache that a thread can count on; the other half is for prefetched lines."""
        return self.machine.l2.per_core / self.threads / 2

    def rows_in_l1(self, row: int, pitch: int) -> int:
        """Algorithm 1 for L1."""
        return most_rows(self.machine.l1, self.threads, self.element, row, pitch)

    def rows_in_l2(self, row: int, pitch: int) -> int:
        """Algorithm 1 for L2."""
        return most_rows(self.machine.l2, self.threads, self.element, row, pitch, self.prefetcher)

    def enough_tiles(self, loop: str, tile: Mapping[str, Numbers]) -> Numbers:
        """Equation 4.13: at least one iteration of the outermost inter-tile loop per thread."""
        return self.s.extents[loop] / tile[loop] >= self.machine.threads
