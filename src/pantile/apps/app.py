"""What an app consists of, and random inputs that apps share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pantile as pt
from pantile.target import Target

from .photo import Photo

# How an app can be scheduled: by its author, plainly, or by a strategy.
SCHEDULES = ("expert", "plain", *pt.autoschedule.STRATEGIES, *pt.autoschedule.VARIANTS)

By = pt.Schedule | pt.autoschedule.Strategy
Expert = Callable[[Target, int], By]  # a schedule by hand, for a target and so many cores
MANY_CORES = 8  # as many share smaller tasks than few do; measured on two and on sixteen
Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Make = Callable[[str, Shape, np.random.Generator], Array]  # from the name and the shape of an input


@dataclass(frozen=True)
class App:
    """A pipeline, its hand-written schedules for CPUs and GPUs if it has some, and sizes of input to run it at."""

    name: str
    description: str
    build: Callable[[], pt.Pipeline]
    expert: Expert | None
    sizes: Mapping[str, Mapping[str, Shape]]  # size name -> input name -> shape
    make: Make
    # What results of other systems and schedules may differ by, where rounding does more than usual (bench/agreement):
    # floats relative to the largest, integers absolutely.
    tolerance: float | None = None
    off_by: int = 0
    margin: int = 0  # rows and columns of pixels at every edge where rivals follow rules of their own
    photo: Photo | None = None  # for an app that works on pictures
    on_gpu: Callable[[], By] | None = None  # a schedule by hand for GPUs
    params: Mapping[str, Any] = field(default_factory=dict)  # of calls, where they are not the defaults

    def called(self, how: str) -> str:
        """One of SCHEDULES as this app has it: where nobody wrote a schedule, what pipelines without one run by."""
        return "auto" if how == "expert" and self.expert is None else how

    def schedule(self, how: str, target: Target, cores: int | None = None) -> By | str:
        """What `with_schedule` takes for one of SCHEDULES. `cores`: that share the work, by default this machine's."""
        if target.has_blocks:
            if how == "expert" and self.on_gpu is not None:
                return self.on_gpu()
            chosen = pt.autoschedule.STRATEGIES.get(how)
            return how if chosen is not None and chosen.for_gpus else "plain"
        if how == "expert" and self.expert is not None:
            return self.expert(target, pt.machine.usable_cores() if cores is None else cores)
        return self.called(how)

    def random(self, shapes: Mapping[str, Shape], seed: int = 0) -> dict[str, Array]:
        """Random data of such shapes, by the names of the inputs."""
        rng = np.random.default_rng(seed)
        return {name: self.make(name, shape, rng) for name, shape in shapes.items()}

    def size_called(self, name: str) -> str:
        """One of its sizes: GPUs get another one than `paper` only where that is too little for them."""
        return "paper" if name == "gpu" and name not in self.sizes else name

    def arguments(self, size: str) -> dict[str, Any]:
        """Of a call: random data of one of the sizes, and params."""
        return {**self.inputs(size), **self.params}

    def inputs(self, size: str, seed: int = 0) -> dict[str, Array]:
        """Random data of one of the sizes."""
        return self.random(self.sizes[size], seed)


def below(end: int, dtype: str) -> Make:
    """Integers from 0 up to an end, every value as likely."""
    return lambda _, shape, rng: rng.integers(0, end, shape, dtype=dtype)


def between(low: float, high: float) -> Make:
    """Numbers of single precision in [low, high)."""
    return lambda _, shape, rng: np.asarray(rng.random(shape, dtype=np.float32) * (high - low) + low, np.float32)


integers, words, octets = below(2**32, "uint32"), below(2**16, "uint16"), below(2**8, "uint8")


def floats(_: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Single precision in [0, 1)."""
    return rng.random(shape, dtype=np.float32)


def doubles(_: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Double precision in [0, 1)."""
    return rng.random(shape)
