"""Text that was saved as JSON, read again: from whatever place it comes, nothing of it is relied on before it is known
to be of the right kinds.

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

NUMBER = (int, float)  # a kind may be any of several; bool is another one
_LARGEST_FILE = 1 << 20  # bytes
_MOST_BITS = 64  # of integers; others may have any number of digits, and are no floats


def loads(text: str | bytes, infinite: bool = False) -> Any:
    """What the text says; a ValueError where it is no JSON, an object has two values of one name, or a number is none.
    `infinite`: numbers may be infinite."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_twins,
            parse_constant=lambda name: _number(name, infinite),
            parse_float=lambda digits: _number(digits, infinite),
        )
    except RecursionError:
        raise ValueError("its lists lie too deep inside each other") from None


def fits(value: Any, kind: Any) -> bool:
    """Whether it is of a kind: a type or several; lists of one, `[kind]`; objects with these names and no others,
    `{"name": kind}`; or with any names, `{...: kind}`."""
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
    """What a file of the directory has for each of several names, all of one kind; nothing of a file that is not there,
    or not ours."""
    text = None if directory is None else cache_directory.read(directory / file_name, _LARGEST_FILE)
    try:
        entries: dict[str, Any] = loads(text or b"{}")
    except ValueError:
        return {}
    return entries if fits(entries, {...: kind}) else {}


def write_entries(directory: Path | None, file_name: str, entries: Mapping[str, Any]) -> None:
    """Write such a file, if there is a place for it."""
    if directory is not None:
        with contextlib.suppress(OSError):
            cache_directory.write(directory / file_name, f"{json.dumps(entries, indent=2)}\n".encode())


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{shown(next(n for n in names if names.count(n) > 1))} comes twice")
    return fields


def _number(text: str, infinite: bool) -> float:
    number = float(text)
    if not (math.isfinite(number) or (infinite and math.isinf(number))):
        raise ValueError(f"{text[:40]} is not a number")
    return number
