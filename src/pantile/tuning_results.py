"""Winners of `pantile tune`: the schedules that were measured to be fastest, saved in the cache directory.

The key is the pipeline, its size class, the number of threads and the machine. A file is text, which is validated as
strictly as if a user had written it: a damaged file, or an illegal schedule, counts as missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from . import cache_directory, untrusted_json
from .analysis.fingerprint import fingerprint
from .autoschedule import Problem
from .dataclass import dataclass
from .errors import PantileError
from .schedule.default import complete
from .schedule.resolve import resolve
from .schedule.schedule import Schedule

SUFFIX = ".tuned"
FORMAT = 1
_LARGEST_FILE = 16 << 20


_FIELDS = {
    "format": int,
    "pipeline": str,
    "schedule": str,
    "name": str,
    "seconds": untrusted_json.NUMBER,
    "auto_seconds": untrusted_json.NUMBER,
    "tried": int,
}


class NotTuned(UserWarning):
    """schedule="tuned" uses the schedule of auto, because nothing was measured."""


@dataclass(frozen=True)
class Winner:
    """The fastest schedule, its origin, and the seconds of its best call and of the best call with `auto`."""

    schedule: Schedule
    name: str
    seconds: float
    auto_seconds: float
    tried: int  # the number of schedules that were measured


def read(problem: Problem, threads: int) -> Winner | None:
    """The schedule that was measured to be fastest; None if there is none, or if its file is damaged."""
    place = cache_directory.directory()
    data = None if place is None else cache_directory.read(_file(place, problem, threads), _LARGEST_FILE)
    try:
        fields = untrusted_json.loads(data or b"")
        if not untrusted_json.fits(fields, _FIELDS) or fields["format"] != FORMAT:
            return None
        schedule = Schedule.from_json(fields["schedule"])
        _check(problem, schedule)
    except (PantileError, ValueError):
        return None
    return Winner(schedule, fields["name"], fields["seconds"], fields["auto_seconds"], fields["tried"])


def write(problem: Problem, threads: int, winner: Winner) -> Path:
    """Save a winner, and return its directory."""
    place = writable()
    described = {"format": FORMAT, "pipeline": problem.graph.name}
    fields = {**described, **vars(winner), "schedule": winner.schedule.to_json()}
    cache_directory.write(_file(place, problem, threads), json.dumps(fields).encode())
    return place


def writable() -> Path:
    """The directory for winners. Raises an error if it cannot be written to."""
    place = cache_directory.directory()
    if place is None or not os.access(place, os.W_OK):
        where = f"{place} cannot be written" if place else "there is no folder for it that only you can write"
        raise OSError(f"nothing can be saved: {where}; name another folder with {cache_directory.DIRECTORY_VARIABLE}")
    return place


def files() -> list[Path]:
    """All files of winners."""
    place = cache_directory.directory()
    return [] if place is None else sorted(place.glob(f"*{SUFFIX}"))


def _file(place: Path, problem: Problem, threads: int) -> Path:
    m = problem.cpu
    machine = (m.name, m.architecture, m.cores, m.vector_bits)  # without its rates, which may be measured again
    key = (fingerprint(problem.graph), problem.strict, problem.size_class, threads, machine)
    return place / (hashlib.sha256(repr(key).encode()).hexdigest() + SUFFIX)


def _check(problem: Problem, schedule: Schedule) -> None:
    """Raise an error if the schedule is illegal for the pipeline."""
    completed = complete(problem.graph, schedule, problem.target, strict=problem.strict)
    whole = Schedule(*completed.values(), *(s for name, s in schedule.items() if name not in completed))
    resolve(problem.graph, whole, strict=problem.strict, target=problem.target)
