"""What dp knows of a machine: its caches and cores, and numbers that the paper chooses per machine, by trial.

The weights are those of equation 2 (polymage-plus §7.3, Table 2), INNERMOSTTILESIZE that of §7.1. Machines that were
not tried have the Xeon's numbers.

Neoverse-N1, tried one by one (CPU ms of one thread at the sizes of the suite):
- w1: its L1 has twice the Xeon's size, which halves the first term, so w1 is doubled (that of the Opteron, with half
  the size, is less than half). Unsharp mask 22.0 -> 18.8, camera pipeline 32.6 -> 31.8, interpolation 60.9 -> 61.5.
- Rows of 512 instead of 256: camera pipeline 36.8 -> 31.8, unsharp mask 20.2 -> 18.8, interpolation 65.2 -> 61.5.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ...machine.description import Cpu


@dataclass(frozen=True)
class Weights:
    """The weights of the four terms of equation 2 (Table 2, Intel Xeon)."""

    w1: float = 1.0
    w2: float = 100.0
    w3: float = 46_875.0
    w4: float = 1.5


@dataclass(frozen=True)
class TileLimits:
    """The machine parameters of Algorithm 2."""

    l1: int
    l2: int
    cores: int
    innermost: int = 256


@dataclass(frozen=True)
class _TrialParameters:
    """The parameters that were chosen by trial."""

    weights: Weights = Weights()
    innermost: int = 256


XEON = _TrialParameters()
_TRIED = {
    "opteron-6386-se": _TrialParameters(Weights(w1=0.3, w4=2.0), innermost=128),
    "neoverse-n1": _TrialParameters(Weights(w1=2.0), innermost=512),
}


def weights_for(machine: Cpu) -> Weights:
    return _TRIED.get(machine.name, XEON).weights


def limits_for(machine: Cpu) -> TileLimits:
    chosen = _TRIED.get(machine.name, XEON)
    return TileLimits(machine.l1.size, machine.l2.per_core, machine.cores, chosen.innermost)
