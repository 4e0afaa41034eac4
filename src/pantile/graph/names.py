"""Names of a graph: those that users gave, kept, and those made up, kept apart by a number."""

from __future__ import annotations

from collections.abc import Container

from ..errors import Location, UserError


class Names:
    """One namespace."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def claim(self, name: str, kind: str, where: Location) -> str:
        """Take a name that a user gave; two owners are the user's mistake."""
        owner = f"{kind} {name!r} (from {where})"
        if name in self._owners:
            raise UserError(f"{owner} and {self._owners[name]} have the same name; rename one of them")
        self._owners[name] = owner
        return name

    def fresh(self, base: str) -> str:
        """`base`, or `base` with the first number that makes it new."""
        name = first_free(base, self._owners)
        self._owners[name] = name
        return name


def first_free(base: str, taken: Container[str]) -> str:
    """`base`, or `base` with the first number that makes it new."""
    name, k = base, 0
    while name in taken:
        k += 1
        name = f"{base}{k}"
    return name
