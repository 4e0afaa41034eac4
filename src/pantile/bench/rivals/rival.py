"""What another system must offer to be measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..contender import Array, Contender


@dataclass(frozen=True)
class Task:
    """What a rival is asked to compute, and how."""

    app: str
    schedule: str
    threads: int
    inputs: Mapping[str, Array]
    outputs: tuple[Array, ...]  # of the right types and shapes; what is in them does not matter
    limit_s: float  # for compiling, and for each batch of runs


@dataclass(frozen=True)
class Rival:
    """Another system. `enter` and `require` raise `Unavailable`."""

    schedules: tuple[str, ...]
    apps: frozenset[str]
    require: Callable[[], object]  # complains if the system is not installed
    enter: Callable[[Task], Contender]
