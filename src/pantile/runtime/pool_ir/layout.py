"""The pool's structs, their fields by name, and the bits of a slot's state."""

import re

# In the word `state` of a slot (see the package).
TICKET = 1 << 32
WAITING = 1 << 16
HELPERS = WAITING - 1

# Each contended word has 128 bytes to itself: two lines, as adjacent ones are prefetched in pairs.
# A name that starts with an underscore is padding.
STRUCTS = {
    "Slot": (
        ("state", "i64"),
        ("_1", "[120 x i8]"),
        ("next", "i64"),
        ("_2", "[120 x i8]"),
        ("body", "ptr"),
        ("closure", "ptr"),
        ("count", "i64"),
        ("scratch_bytes", "i64"),
        ("error", "i32"),
        ("_3", "[92 x i8]"),
        ("finished", "%Opaque"),
    ),
    "Bed": (
        ("asleep", "i32"),
        ("movable", "i32"),
        ("moved", "i32"),
        ("_1", "i32"),
        ("thread", "i64"),
        ("_2", "[104 x i8]"),
        ("lock", "%Opaque"),
        ("woken", "%Opaque"),
        ("cores", "%Opaque"),
    ),
    "Arena": (("base", "ptr"), ("top", "ptr")),
    "Block": (("above", "ptr"), ("size", "i64"), ("used", "i64")),
    "Frame": (("block", "ptr"), ("used", "i64"), ("top", "ptr")),
}

# Both headers take a whole line, so that everything handed out is 64-byte aligned.
HEADER = 64


def types() -> str:
    lines = ["%Opaque = type [128 x i8]  ; enough for any libc's mutex, condition, signal set or core set"]
    lines += [f"%{name} = type {{ {', '.join(t for _, t in fields)} }}" for name, fields in STRUCTS.items()]
    return "\n".join(lines)


FIELD_USE = re.compile(r"field (\w+)\.(\w+), (%\w+)")


def expand_fields(text: str) -> str:
    """`field Slot.next, %slot` is the address of that field: LLVM knows fields by number only."""

    def address(use: re.Match[str]) -> str:
        struct, name, base = use.groups()
        number = [field for field, _ in STRUCTS[struct]].index(name)
        return f"getelementptr inbounds %{struct}, ptr {base}, i64 0, i32 {number}"

    return FIELD_USE.sub(address, text)
