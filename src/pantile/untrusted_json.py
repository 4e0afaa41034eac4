"""Validates JSON from untrusted sources: its structure and types are checked before its content is used.

fits(fields, {"name": str, "seconds": NUMBER, "levels": [{...: int}]})
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import cache_directory
from .errors import shown

NUMBER = (int, float)  # but not bool
_LARGEST_FILE = 1 << 20  # bytes
_MOST_BITS = 64  # of integers, since larger ones may not fit a float


def loads(text: str | bytes, infinite: bool = False) -> Any:
    """Parse JSON. Raise a ValueError for invalid JSON, duplicate names, NaN and, unless `infinite`, infinity."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_constant=lambda name: _number(name, infinite),
            parse_float=lambda digits: _number(digits, infinite),
        )
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind: a type, or a tuple of types; `[kind]`, a list of one kind; `{"name": kind}`, an
    object with exactly these names; or `{...: kind}`, an object with any names."""
    if isinstance(kind, list):
        return type(value) is list and all(fits(v, kind[0]) for v in value)
    if isinstance(kind, dict):
        if type(value) is not dict:
            return False
        if ... in kind:
            return all(fits(v, kind[...]) for v in value.values())
        return value.keys() == kind.keys() and all(fits(v, kind[name]) for name, v in value.items())
    if type(value) is int and value.bit_length() > _MOST_BITS:
        return False
    return type(value) in (kind if isinstance(kind, tuple) else (kind,))


def read_entries(directory: Path | None, file_name: str, kind: Any) -> dict[str, Any]:
    """The entries of a file by name, all of one kind; empty if the file is missing or invalid."""
    text = None if directory is None else cache_directory.read(directory / file_name, _LARGEST_FILE)
    try:
        entries: dict[str, Any] = loads(text or b"{}")
    except ValueError:
        return {}
    return entries if fits(entries, {...: kind}) else {}


def write_entries(directory: Path | None, file_name: str, entries: Mapping[str, Any]) -> None:
    """Write the entries to a file, if there is a directory."""
    if directory is not None:
        with contextlib.suppress(OSError):
            cache_directory.write(directory / file_name, f"{json.dumps(entries, indent=2)}\n".encode())


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{shown(next(n for n in names if names.count(n) > 1))} occurs twice")
    return fields


def _number(text: str, infinite: bool) -> float:
    number = float(text)
    if not (math.isfinite(number) or (infinite and math.isinf(number))):
        raise ValueError(f"{text[:40]} is not a number")
    return number
