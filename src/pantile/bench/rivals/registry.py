"""The rivals by name."""

from __future__ import annotations

from . import halide
from .rival import Rival

RIVALS: dict[str, Rival] = {
    "halide": Rival(halide.SCHEDULES, halide.apps(), halide.find_python, halide.HalideContender),
}
