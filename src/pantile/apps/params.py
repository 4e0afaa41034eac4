"""--param NAME=VALUE: the params of a pipeline, as users type them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

import pantile as pt

from .names import WrongArgument, suggestion


def params(pipeline: pt.Pipeline, given: Sequence[str], stated: Collection[str] = ()) -> dict[str, Any]:
    """What is given; each param of the pipeline must be, unless it has a default or is stated elsewhere."""
    known = {p.name: p for p in pipeline.graph.params}
    values: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise WrongArgument(f"--param {item} has no value; write it like --param {item}=1")
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "it has none"
            raise WrongArgument(f"{pipeline.graph.name} has no param {name!r}{suggestion(name, known)}; {there}")
        values[name] = _number(name, text, known[name].dtype.numpy)
    for name, p in known.items():
        if name not in values and name not in stated and p.default is None:
            raise WrongArgument(f"{pipeline.graph.name} needs --param {name}=<{p.dtype}>")
    return values


def _number(name: str, text: str, dtype: np.dtype[Any]) -> bool | int | float:
    try:
        if dtype.kind == "b":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return float(text) if dtype.kind == "f" else int(text)
    except (ValueError, KeyError):
        raise WrongArgument(f"--param {name}={text}: {text!r} is not a {dtype}") from None
