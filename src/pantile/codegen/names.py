"""Names of the program in LLVM text, whatever characters they contain; no other module writes them there."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[\w.$-]", re.ASCII)
_LONGEST = 64


def symbol(name: str) -> str:
    """The symbol of a function: the bytes of its name, quoted and escaped. f.x is @"f.x", and é is @"\\C3\\A9"."""
    shown = [c if _PLAIN.match(c) else "".join(f"\\{b:02X}" for b in c.encode("utf-8", "surrogatepass")) for c in name]
    return '@"' + "".join(shown) + '"'


def readable(name: str) -> str:
    """A name as the prefix of an SSA name; it ends in a dot, and the number that follows makes it unique."""
    return re.sub(r"[^\w.]", "_", name[:_LONGEST], flags=re.ASCII) + "."
