"""Validates the parameters of strategies and machines by their annotations, when a value is created.

    @dataclass(frozen=True)
    class Example:
        size: Count | None = None
        weights: tuple[Weight, ...] = (1.0,)
        kind: Annotated[str, OneOf("fast", "slow")] = "fast"

        def __post_init__(self) -> None:
            check_fields(self)

Example(size=0) is a UserError at the user's line: Example(size=0): pass an integer of 1 to 2147483647, or None.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from .dataclass import dataclass
from .errors import UserError, shown


@dataclass(frozen=True)
class Between:
    """An annotation: numbers from `low` to `high`."""

    low: float
    high: float

    def __str__(self) -> str:
        return f" of {_number(self.low)} to {_number(self.high)}"


class OneOf:
    """An annotation: one of some values."""

    def __init__(self, *values: str | int) -> None:
        self.values = values


SLOWEST, FASTEST = 1e-9, 1e18
Count = Annotated[int, Between(1, 2**31 - 1)]  # of loop iterations, lanes, stages
Amount = Annotated[int, Between(0, 2**31 - 1)]
Bytes = Annotated[int, Between(1, 2**50)]
Rate = Annotated[float, Between(SLOWEST, FASTEST)]  # contains all measured rates, even on a machine that stalls
Weight = Annotated[float, Between(0, 1e12)]


def check_fields(value: Any) -> None:
    """Raise a UserError for the first field of a dataclass that violates its annotation. NumPy numbers become Python
    numbers. Annotations of other kinds are ignored."""
    owner: Any = type(value)
    for name, wanted in _annotations(owner).items():
        given = getattr(value, name)
        number = plain(given)
        if not _fits(number, wanted):
            raise UserError(f"{owner.__name__}({name}={shown(given)}): {_wish(wanted)}")
        if number is not given:
            object.__setattr__(value, name, number)


def plain(value: Any) -> Any:
    """Convert NumPy numbers to Python numbers, also in tuples."""
    if isinstance(value, tuple):
        numbers = tuple(plain(v) for v in value)
        return value if all(a is b for a, b in zip(numbers, value, strict=True)) else numbers
    is_number = isinstance(value, (np.bool_, np.number)) and not isinstance(value, np.timedelta64)
    return value.item() if is_number else value


@cache
def _annotations(owner: Any) -> dict[str, Any]:
    try:
        hints = get_type_hints(owner, include_extras=True)
    except NameError:  # a user's strategy, with types that cannot be resolved
        return {}
    return {f.name: hints[f.name] for f in fields(owner) if f.init}


def _fits(value: object, wanted: Any) -> bool:
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return _fits(value, parts[0]) and all(_obeys(value, rule) for rule in parts[1:])
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and _fit_all(value, parts)
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and _is_finite(value)
    if wanted in (int, bool, str):
        return type(value) is wanted
    if wanted is type(None):
        return value is None
    return not is_dataclass(wanted) or isinstance(value, wanted)  # type: ignore[arg-type]


def _fit_all(values: tuple[object, ...], parts: tuple[Any, ...]) -> bool:
    if parts[-1:] == (Ellipsis,):
        return len(values) > 0 and all(_fits(v, parts[0]) for v in values)
    return len(values) == len(parts) and all(map(_fits, values, parts))


def _obeys(value: Any, rule: object) -> bool:
    if isinstance(rule, Between):
        return bool(rule.low <= value <= rule.high)
    return not isinstance(rule, OneOf) or value in rule.values


def _is_finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


# ---- what to write instead


_KINDS = {int: "an integer", float: "a number", bool: "True or False", str: "a string", type(None): "None"}


def _wish(wanted: Any) -> str:
    rules = [rule for part in _parts(wanted) for rule in get_args(part)[1:] if isinstance(rule, OneOf)]
    if rules:
        return f"choose one of {', '.join(map(repr, rules[0].values))}"
    return f"pass {_kind(wanted)}"


def _kind(wanted: Any) -> str:
    origin, parts = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return _kind(parts[0]) + "".join(str(rule) for rule in parts[1:] if isinstance(rule, Between))
    if origin in (Union, types.UnionType):
        return ", or ".join(map(_kind, parts))
    if origin is tuple and parts[-1:] == (Ellipsis,):
        return f"a tuple of at least one, each {_kind(parts[0])}"
    if origin is tuple:
        return f"a tuple of {len(parts)}: {', '.join(map(_kind, parts))}" if parts else "()"
    return _KINDS.get(wanted) or f"pt.machine.{wanted.__name__}(...)"


def _parts(wanted: Any) -> Iterable[Any]:
    return get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)


def _number(n: float) -> str:
    return f"{n:g}" if isinstance(n, float) else str(n)
