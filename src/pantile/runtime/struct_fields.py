"""Named fields for structs in LLVM text, since LLVM itself only numbers them."""

import re
from collections.abc import Mapping, Sequence

Structs = Mapping[str, Sequence[tuple[str, str]]]  # names and types of the fields
FIELD = re.compile(r"(= )?field (\w+)\.(\w+) of (%\w+)")


def types(structs: Structs) -> str:
    """LLVM text that defines the structs."""
    return "\n".join(f"%{name} = type {{ {', '.join(t for _, t in fields)} }}" for name, fields in structs.items())


def expand_fields(text: str, structs: Structs) -> str:
    """Replace `field Slot.next of %slot`, as an operand or a value, by the address of that field."""
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
