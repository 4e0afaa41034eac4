"""Splits a module of LLVM text into several parts. LLVM takes half of the time of most compilations, and can compile
each part on its own thread.

The split depends only on the text of the module, so that a pipeline's code is the same on all machines.
"""

from __future__ import annotations

import re

_LEAST = 800  # average lines per part; the overhead of a part equals that of 40 lines
_WORTH = 400  # lines outside of the longest function that justify one more part
_MOST = 8
_END = "\n}\n"  # the end of a function
_BODY = "define internal i32 "  # a parallel loop's function, which the runtime calls by address
_NAME = re.compile(r'@"[^"]*"')


def parts(text: str) -> list[str]:
    """Split a module into modules that each define some of the functions and declare the others."""
    *functions, common = text.split(_END)
    lengths = [f.count("\n") for f in functions]
    total, longest = sum(lengths), max(lengths, default=0)
    count = min(_MOST, len(functions), total // _LEAST, 1 + (total - longest) // _WORTH)
    if count < 2:
        return [text]
    bodies = {_NAME.findall(f.split("(", 1)[0])[0] for f in functions if f.lstrip().startswith(_BODY)}
    return [_module([functions[k] for k in share], bodies, common) for share in _shares(lengths, count)]


def _shares(lengths: list[int], count: int) -> list[list[int]]:
    """Assign functions to parts of about equal length: in order of decreasing length, each to the shortest part."""
    shares: list[list[int]] = [[] for _ in range(count)]
    totals = [0] * count
    for k in sorted(range(len(lengths)), key=lambda k: (-lengths[k], k)):
        shortest = totals.index(min(totals))
        shares[shortest].append(k)
        totals[shortest] += lengths[k]
    return [sorted(share) for share in shares]


def _module(functions: list[str], bodies: set[str], common: str) -> str:
    defined = "".join(f.replace(_BODY, "define i32 ", 1) + _END for f in functions)
    names = {name for f in functions for name in _NAME.findall(f.split("(", 1)[0])}
    others = sorted(bodies.intersection(_NAME.findall(defined)) - names)
    return "\n".join([defined, *(f"declare i32 {name}(ptr, i64, ptr)" for name in others), common])
