"""Broadcasts of scalars on a target whose multiply-add takes a lane of a register as an operand.

If `a[k]`, `a[k + 1]`, `a[k + 2]` and `a[k + 3]` are each multiplied by a vector, one vector load serves them all. A
single one of them is loaded as a scalar, into the first lane: a load that broadcasts takes as long as two products
(Neoverse N1).
"""

from __future__ import annotations

from ..dataclass import cached_property
from ..expr.nodes import Broadcast, Load
from ..expr.types import FLOAT32, DType
from ..expr.visit import key
from ..ir.nodes import Stmt
from .function import Function
from .strided_loads import certain, split_offset

_REGISTER_BITS = 128
_Family = tuple[object, ...]


def is_multiplied_by(t: DType) -> bool:
    """Whether multiplying by a lane of a register is worth a special load for this type."""
    return t.is_float and t.bits >= FLOAT32.bits


def apart(fn: Function, value: str, element: str) -> str:
    """Freeze a scalar, so that LLVM does not combine its load with its broadcast. The freeze itself costs nothing."""
    return fn.value(f"freeze {element} {value}")


class Neighbours:
    """The scalars that a statement loads unconditionally and broadcasts, by the common part of their addresses."""

    def __init__(self, s: Stmt) -> None:
        self._stmt = s

    def run(self, load: Load) -> range | None:
        """The offsets of the loads that share a register with this one; None if it is loaded alone."""
        return self._runs.get(_family(load), {}).get(split_offset(load.indices[0])[1])

    @cached_property
    def _runs(self) -> dict[_Family, dict[int, range]]:
        """The runs of offsets, collected on first use."""
        noted: dict[_Family, tuple[DType, set[int]]] = {}
        for e in certain(self._stmt, Broadcast):
            if isinstance(e.value, Load) and e.value.mask is None:
                _, offsets = noted.setdefault(_family(e.value), (e.dtype, set()))
                offsets.add(split_offset(e.value.indices[0])[1])
        return {family: _registers(offsets, _REGISTER_BITS // t.bits) for family, (t, offsets) in noted.items()}


def _registers(noted: set[int], lanes: int) -> dict[int, range]:
    """Fill registers with consecutive offsets, from the lowest up: offset -> all offsets in its register."""
    registers: dict[int, range] = {}
    for start in sorted(noted):
        run = range(start, start + lanes)
        if start not in registers and noted.issuperset(run):
            registers.update(dict.fromkeys(run, run))
    return registers


def _family(load: Load) -> _Family:
    rest, _ = split_offset(load.indices[0])
    return (load.buffer, () if rest is None else key(rest))
