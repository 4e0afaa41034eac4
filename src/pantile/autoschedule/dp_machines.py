"""What dp knows of a machine: its caches and cores, and numbers that the paper chooses per machine, by trial.

The weights are those of equation 2 (polymage-plus §7.3, Table 2), INNERMOSTTILESIZE that of §7.1. Machines that were
not tried have the Xeon's numbers.

Neoverse-N1, tried as in §7.3 on Harris corners, interpolation and the camera pipeline (CPU ms of one thread):
- w1: its L1 has twice the Xeon's size, which halves the first term, so w1 is doubled (that of the Opteron, with half
  the size, has less than half). With 1.0 the camera pipeline falls into groups of single stages: 72 ms instead of 36.
- Tiles for L1 that overlap by more than half of their volume are worse than tiles for L2, which is large and near:
  Harris corners 51 and 41 ms.
- Rows of 512: 19 instead of 20 ms for unsharp mask, 34 instead of 38 for the camera pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.description import Machine


@dataclass(frozen=True)
class Weights:
    """Of the four terms of equation 2 (Table 2, Intel Xeon)."""

    w1: float = 1.0
    w2: float = 100.0
    w3: float = 46_875.0
    w4: float = 1.5


@dataclass(frozen=True)
class Limits:
    """What Algorithm 2 knows of the machine."""

    l1: int
    l2: int
    cores: int
    innermost: int = 256
    overlap: float = 1.0  # line 5: how much tiles for L1 may overlap, in volumes of a tile


@dataclass(frozen=True)
class _Chosen:
    """By trial."""

    weights: Weights = Weights()
    innermost: int = 256
    overlap: float = 1.0


XEON = _Chosen()
_TRIED = {
    "opteron-6386-se": _Chosen(Weights(w1=0.3, w4=2.0), innermost=128),
    "neoverse-n1": _Chosen(Weights(w1=2.0), innermost=512, overlap=0.5),
}


def weights_for(machine: Machine) -> Weights:
    return _TRIED.get(machine.name, XEON).weights


def limits_for(machine: Machine) -> Limits:
    chosen = _TRIED.get(machine.name, XEON)
    return Limits(machine.l1.size, machine.l2.per_core, machine.cores, chosen.innermost, chosen.overlap)
