"""One measured time, the file that holds them all, and numbers and texts in columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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


def aligned(rows: Sequence[Sequence[str]], text_columns: int) -> Iterator[str]:
    """Columns of equal width, text to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = [c.ljust(w) for c, w in zip(row[:text_columns], widths, strict=False)]
        right = [c.rjust(w) for c, w in zip(row[text_columns:], widths[text_columns:], strict=True)]
        yield "  ".join(left + right).rstrip()


def two_digits(value: float | None) -> str:
    """Two digits, or an empty cell."""
    return "" if value is None else f"{value:.2f}"


def milliseconds(value: object) -> str:
    """Three digits or a bit more."""
    assert isinstance(value, float)
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0}f}"


def microseconds(value: object) -> str:
    """Of milliseconds, as many digits."""
    assert isinstance(value, float)
    return f"{1e3 * value:.{1 if value < 1 else 0}f}"
