"""Text that no name is made of, and the places in schedules where names, numbers and conditions stand."""

from __future__ import annotations

# Defines a function of its own where it is written into LLVM text as it is.
INJECTION = 'x" () {ret i32 0}\ndefine void @mine() {\n  ret void\n}\n\0"'

TEXTS = {
    "injection": INJECTION,
    "quote": 'x"',
    "backslash": "x\\22",
    "newline": "x\ny",
    "nul": "x\0",
    "surrogate": "x\udc80",
    "space": "x y",
    "dot at the end": "x.",
    "dots": "x..y",
    "number": "0",
    "prime": "x'",
    "hash": "#first x",
    "star": "*x",
    "percent": "%x",
    "not as Python reads it": "\ufb01",
    "empty": "",
    "long": "x" * 100_000,
    "long with dots": "x." * 50_000 + "x",
}

# One directive for every place: what stands there is written as None.
PLACES: list[tuple[object, ...]] = [
    ("split", None, "xo", "xi", 4),
    ("split", "x", None, "xi", 4),
    ("split", "x", "xo", None, 4),
    ("split", "x", "xo", "xi", None),
    ("split", "x", "xo", "xi", 4, {"tail": None}),
    ("tile", None, "x", "yo", "xo", "yi", "xi", 4, 4),
    ("tile", "y", "x", "yo", None, "yi", "xi", 4, 4),
    ("tile", "y", "x", "yo", "xo", "yi", None, 4, 4),
    ("tile", "y", "x", "yo", "xo", "yi", "xi", 4, None),
    ("reorder", "x", None),
    ("fuse", None, "x", "p"),
    ("fuse", "y", None, "p"),
    ("fuse", "y", "x", None),
    ("vectorize", None, 4),
    ("vectorize", "x", None),
    ("unroll", None, 4),
    ("unroll", "x", None),
    ("parallel", None, 4),
    ("parallel", "y", None),
    ("parallel", "y", 4, {"tail": None}),
    ("partition", None, "never"),
    ("partition", "x", None),
    ("compute_at", None, "y"),
    ("compute_at", "g", None),
    ("store_at", None, "y"),
    ("store_at", "g", None),
    ("compute_with", None, "y"),
    ("compute_with", "g", None),
    ("store_in", None),
    ("reorder_storage", "x", None),
    ("fold_storage", None, 4),
    ("fold_storage", "y", None),
    ("prefetch", None, "y", 1),
    ("prefetch", "img", None, 1),
    ("prefetch", "img", "y", None),
    ("specialize", None),
    ("update", None),
    ("rfactor", None, "u"),
    ("rfactor", "r.x", None),
    ("strips", None, "s", 8),
    ("strips", "r.x", None, 8),
    ("strips", "r.x", "s", None),
    ("clone_in", None, "copy"),
    ("clone_in", "g", None),
    ("clone_in", "g", "copy", None),
    ("copy_in", None, "copy", "y"),
    ("copy_in", "g", None, "y"),
    ("copy_in", "g", "copy", None),
    ("copy_in", "g", "copy", "y", None),
    ("copy_out", None),
    ("split_storage", None, "xo", "xi", 4),
    ("split_storage", "x", None, "xi", 4),
    ("split_storage", "x", "xo", None, 4),
    ("split_storage", "x", "xo", "xi", None),
    ("panels", None, "xo", "xi", 4),
    ("panels", "x", None, "xi", 4),
    ("panels", "x", "xo", None, 4),
    ("panels", "x", "xo", "xi", None),
]


def filled(place: tuple[object, ...], value: object) -> list[object]:
    """The directive as JSON has it, with `value` in its place."""
    return [{"tail": value} if isinstance(p, dict) else value if p is None else p for p in place]
