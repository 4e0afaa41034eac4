"""Names of the program in LLVM text, whatever characters they have: the only place that writes them there."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[\w.$-]", re.ASCII)
_LONGEST = 64


def symbol(name: str) -> str:
    """A function by name: the bytes of the name, quoted, so that none of them can end the name.

    f.x is @"f.x", and é is @"\\C3\\A9".
    """
    shown = [c if _PLAIN.match(c) else "".join(f"\\{b:02X}" for b in _bytes(c)) for c in name]
    return '@"' + "".join(shown) + '"'


def _bytes(c: str) -> bytes:
    return c.encode("utf-8", "surrogatepass")


def readable(name: str) -> str:
    """A name as part of an SSA name; ends in a dot, so that a number may follow, which is what tells it apart."""
    return re.sub(r"[^\w.]", "_", name[:_LONGEST], flags=re.ASCII) + "."
