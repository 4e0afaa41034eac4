"""One measured time, and the file that holds them all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .contender import Label
from .machine import run


@dataclass(frozen=True)
class Result:
    """The best time of a contender on an app. `extra` are further keys of the JSON object."""

    app: str
    label: Label
    ms: float
    compile_s: float
    schedule_s: float
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As an object of the file's "results"."""
        return {
            "app": self.app,
            "system": self.label.system,
            "schedule": self.label.schedule,
            "threads": self.label.threads,
            "ms": self.ms,
            "compile_s": self.compile_s,
            "schedule_s": self.schedule_s,
            **self.extra,
        }


def ratio(results: Sequence[Result], app: str, over: Label, under: Label) -> float | None:
    """The time of one contender over that of another, if both were measured."""
    ms = {r.label: r.ms for r in results if r.app == app}
    return ms[over] / ms[under] if over in ms and under in ms else None


def write_json(path: Path, machine: Mapping[str, object], results: Sequence[Result]) -> None:
    """Write `{"run": ..., "machine": ..., "results": [...]}`."""
    write_document(path, machine, "results", [r.to_json() for r in results])


def write_document(path: Path, machine: Mapping[str, object], kind: str, results: Sequence[object]) -> None:
    """Write results of one kind, with what they were measured on, as indented JSON."""
    document = {"run": run(), "machine": machine, kind: results}
    path.write_text(json.dumps(document, indent=2) + "\n")
