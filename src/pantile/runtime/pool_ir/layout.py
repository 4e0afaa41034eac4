"""The structs of the pool with named fields, and the bits of a slot's state."""

# In the word `state` of a slot (see the package).
TICKET = 1 << 32
WAITING = 1 << 16
HELPERS = WAITING - 1

# Each contended word has 128 bytes to itself: two cache lines, since adjacent lines are prefetched in pairs.
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

# Both headers take a whole line, so that all allocations are 64-byte aligned.
HEADER = 64

OPAQUE = "%Opaque = type [128 x i8]  ; enough for any libc's mutex, condition, signal set or core set"
