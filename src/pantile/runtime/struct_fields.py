"""Structs in LLVM text whose fields have names: LLVM knows fields by number only."""

import re
from collections.abc import Mapping, Sequence

Structs = Mapping[str, Sequence[tuple[str, str]]]  # names and types of the fields
FIELD = re.compile(r"(= )?field (\w+)\.(\w+) of (%\w+)")


def types(structs: Structs) -> str:
    """The definitions of the structs."""
    return "\n".join(f"%{name} = type {{ {', '.join(t for _, t in fields)} }}" for name, fields in structs.items())


def expand_fields(text: str, structs: Structs) -> str:
    """`field Slot.next of %slot`, as an operand or a value, becomes the address of that field."""
    lines: list[str] = []

    def address(use: re.Match[str]) -> str:
        equals, struct, name, base = use.groups()
        number = [field for field, _ in structs[struct]].index(name)
        code = f"getelementptr inbounds %{struct}, ptr {base}, i64 0, i32 {number}"
        if equals:
            return f"= {code}"
        lines.append(f"  %field.{len(lines)} = {code}")
        return f"%field.{len(lines) - 1}"

    for line in text.split("\n"):
        lines.append(FIELD.sub(address, line))
    return "\n".join(lines)
