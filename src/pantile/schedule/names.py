"""Names in schedules: how the names of stages, loops, dims and buffers may be spelled. A schedule is untrusted data.

A name consists of words with dots in between: "x" is a user's name, "r.x" or "r.0" the loop of a reduction, "f.out" a
stage and "f.1" a buffer that Pantile made. New loops get names without dots, so a name with dots always existed before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import UserError, UserTypeError, here, shown
from ..graph.names import LONGEST, is_name

# A stage, loop, dim or buffer: its name, or the object that has it.
Named = Any

_MOST = 5 * LONGEST  # characters: names of loops and of stages of partial results may be composed of other names


def name_of(thing: Named) -> str:
    """The name of a stage, loop, dim or buffer, given as a string or as the object itself."""
    name = thing if isinstance(thing, str) else getattr(thing, "name", None)
    if not isinstance(name, str) or not name:
        raise UserTypeError(
            f"{shown(thing)} is not a name; give a string or an object with a name, such as a Func", here()
        )
    if len(name) > _MOST or not is_name(name):
        raise UserError(
            f"{shown(name)} cannot be the name of a stage, loop, dim or buffer; those are words of letters, digits "
            'and _, some with dots between, such as "x" or "r.x"',
            here(),
        )
    return name


def new_name(thing: Named, *old: str) -> str:
    """The name of a new loop. It may be the name of one of the `old` loops, which the new one replaces."""
    name = name_of(thing)
    if name not in old and "." in name:
        raise UserError(
            f"{shown(name)} cannot be the name of a new loop; use letters, digits and _, as for a Python variable",
            here(),
        )
    return name


def fresh(name: str, is_taken: Callable[[str], bool]) -> str:
    """A name that is not taken: the given one, with as many underscores appended as necessary."""
    while is_taken(name):
        name += "_"
    return name
