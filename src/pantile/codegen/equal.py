"""Functions that are equal but for names and a few constants are written once: compiling them takes most of the time.

The sweeps of an iterated stencil, and the levels of many a pyramid, become parallel bodies of the same instructions:
they find buffers and extents in their closures, so that one function serves them all. Where an index constant differs
(a margin, the number of a layer), or a float (a weight), it becomes one more value of the closure. Which ones do is
known once all bodies have been written, so a module that has such bodies is written a second time, around bodies as
they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .function import Function

# Names end in a number that tells them apart within a function; what comes before helps readers only.
_NAME = re.compile(r"(?<=%)[\w.]*\.(?=\d+(?:\.slot)?\b)")
_NOTE = re.compile(r", !alias\.scope !\d+, !noalias !\d+")
# Index arithmetic with a constant as its last operand, and choices of one as against something else.
_CONSTANT = re.compile(
    r"^(  %\S+ = )((?:add|mul|ashr|icmp \w+)(?: nsw)? i64|getelementptr \w+, ptr|select i1)( %\S+, )(i64 )?(-?\d+)"
    r"(, i64 %\S+)?$", re.MULTILINE
)  # fmt: skip
# Arithmetic with a float as its last operand: one lane's digits, whether or not all lanes have it. Not divisions: LLVM
# multiplies instead where it knows the divisor.
_FLOAT = re.compile(
    r"^(  %\S+)( = f(?:add|sub|mul)(?: contract)? )((?:<\d+ x )?(float|double)>?)( %\S+, )(splat \(\w+ )?"
    r"(0x[0-9A-F]{16})\)?$", re.MULTILINE
)  # fmt: skip
_SLOT = 8
_MOST_PARAMETERS = 8  # beyond, the code would suffer

Shape = tuple[object, ...]
Constants = tuple[int, ...]  # those of index arithmetic, then the bits of floats, as doubles


class _Seen(NamedTuple):
    """A body: its text, what bodies of one function have in common, and its constants with whether each is added."""

    text: str
    shape: Shape
    constants: Constants
    added: tuple[bool, ...]


class Family:
    """Bodies of one shape that differ in a few constants only.

    `added`: for each constant whether it is added, so that a difference to the first member's may be added before it;
    of the others each member needs its own. Constants that differ alike in all members are one parameter.
    """

    def __init__(self, first: Constants, added: tuple[bool, ...]) -> None:
        self.first = first
        self._added = added
        self._members = {first}
        # Of each constant: a number that it shares with those that are alike so far, and which of these numbers stand
        # for constants that differ between members.
        self._alike = list(self._needs(first))
        self._differ: list[int] = []

    def __contains__(self, member: Constants) -> bool:
        return member in self._members

    @property
    def is_shared(self) -> bool:
        """Whether there are several members."""
        return len(self._members) > 1

    def _needs(self, member: Constants) -> Iterator[int]:
        return (c - f if added else c for c, f, added in zip(member, self.first, self._added, strict=True))

    def join(self, member: Constants) -> bool:
        """Take one more member, unless there would be too many parameters."""
        if member in self._members:
            return True
        numbers: dict[tuple[int, int], int] = {}
        needs, base = tuple(self._needs(member)), tuple(self._needs(self.first))
        alike = [numbers.setdefault(pair, len(numbers)) for pair in zip(self._alike, needs, strict=True)]
        before = set(self._differ)
        differ = {
            k: None for k, old, mine, first in zip(alike, self._alike, needs, base, strict=True)
            if old in before or mine != first
        }  # fmt: skip
        if len(differ) > _MOST_PARAMETERS:
            return False
        self._alike, self._differ = alike, list(differ)
        self._members.add(member)
        return True

    def parameters(self, member: Constants) -> tuple[int, ...]:
        """What a member puts into its closure."""
        needs = tuple(self._needs(member))
        return tuple(needs[self._alike.index(k)] for k in self._differ)

    def function(self, text: str, place: int) -> str:
        """The function for all members, given that of one; its parameters lie at this byte of the closure."""
        number = {alike: k for k, alike in enumerate(self._differ)}
        constants = iter(zip(self._alike, self.first, strict=True))

        def rewrite(found: re.Match[str]) -> str:
            alike, first = next(constants)
            if alike not in number:
                return found[0]
            target, operation, operand, type_, _, other = found.groups(default="")
            parameter = f"%parameter{number[alike]}"
            if not _is_added(operation):
                return f"{target}{operation}{operand}{type_}{parameter}{other}"
            moved = f"{target.strip().split(' ')[0]}.moved"
            before = f"  {moved} = {operation.replace(' nsw', '')}{operand}{type_}{parameter}"
            return f"{before}\n{target}{operation} {moved}, {type_}{first}"

        loads = [
            f"  %slot{k} = getelementptr inbounds i8, ptr %closure, i64 {place + k * _SLOT}\n"
            f"  %parameter{k} = load i64, ptr %slot{k}, align 8, !invariant.load !0\n"
            for k in number.values()
        ]

        def rewrite_float(found: re.Match[str]) -> str:
            alike, _ = next(constants)
            return _with_float(found, f"%parameter{number[alike]}") if alike in number else found[0]

        text = _FLOAT.sub(rewrite_float, _CONSTANT.sub(rewrite, text))
        return text.replace("entry:\n", "entry:\n" + "".join(loads), 1)


class Bodies:
    """The bodies written so far, each under what it is equal by."""

    def __init__(self, apart: Mapping[str, frozenset[str]], first_time: Bodies | None = None) -> None:
        """`apart`: for the alias metadata of each buffer, that of all buffers that cannot overlap it.

        `first_time`: what the same module had when it was written before.
        """
        self.texts: list[str] = []
        self._families: dict[Shape, list[Family]] = {}  # as they were found
        self._drafts: dict[str, tuple[Function, list[tuple[str, str]]]] = {}
        self._seen: dict[int, _Seen] = {}  # by the id of a draft
        self._count = 0
        self._apart = apart
        self._before = first_time
        self._names: dict[tuple[object, ...], str] = {}

    def keep_draft(self, body: Function, asked: list[tuple[str, str]]) -> None:
        """Remember a body that calls no others, and what it asks its closure for."""
        if self._before is None and not body.has_regions:
            self._drafts[body.head] = (body, list(asked))

    def draft(self, body: Function) -> tuple[Function, list[tuple[str, str]]] | None:
        """The same body as it was written the first time."""
        return None if self._before is None else self._before._drafts.get(body.head)

    def new_number(self) -> int:
        """A number for the name of one more body, the same each time that the module is written."""
        self._count += 1
        return self._count - 1

    def add(self, body: Function, place: int) -> tuple[str, tuple[int, ...]]:
        """Write the function unless there is one for it: its name, and what it takes at this byte of its closure."""
        known = None if self._before is None else self._before._seen.get(id(body))
        seen = known or self._looked_at(body)
        text, shape, constants, _ = seen
        if self._before is None:
            if body.head in self._drafts:
                self._seen[id(body)] = seen
            self._find_family(seen)
        families = [] if self._before is None else self._before._families.get(shape, [])
        family = next((f for f in families if f.is_shared and constants in f), None)
        name = "@" + body.head.split("@")[1].split("(")[0]
        found = self._names.setdefault((shape, constants if family is None else id(family)), name)
        if found == name:
            self.texts.append(text if family is None else family.function(text, place))
        return found, () if family is None else family.parameters(constants)

    def _find_family(self, seen: _Seen) -> None:
        """Let the body join the first family that stays small enough."""
        families = self._families.setdefault(seen.shape, [])
        if not any(family.join(seen.constants) for family in families):
            families.append(Family(seen.constants, seen.added))

    def shared(self) -> bool:
        """Whether bodies may share functions."""
        return any(family.is_shared for found in self._families.values() for family in found)

    def _looked_at(self, body: Function) -> _Seen:
        """The instructions without names and constants; buffers by number, and which of them cannot overlap."""
        text = body.text()
        _, instructions = text.split("\n", 1)
        whole: list[int] = []
        added: list[bool] = []
        floats: list[int] = []
        buffers: dict[str, int] = {}

        def without_constant(found: re.Match[str]) -> str:
            target, operation, operand, type_, constant, other = found.groups("")
            whole.append(int(constant))
            added.append(_is_added(operation))
            return f"{target}{operation}{operand}{type_}K{other}"

        def without_float(found: re.Match[str]) -> str:
            target, operation, type_, _, operand, splat, digits = found.groups("")
            bits = int(digits, 16)
            floats.append(bits - (1 << 64) if bits >> 63 else bits)
            return f"{target}{operation}{type_}{operand}{splat}K"

        def number(note: re.Match[str]) -> str:
            return f", !{buffers.setdefault(note[0], len(buffers))}"

        without = _FLOAT.sub(without_float, _CONSTANT.sub(without_constant, instructions))
        plain = _NOTE.sub(number, _NAME.sub("", without))
        shape = plain, tuple(b in self._apart[a] for a in buffers for b in buffers)
        return _Seen(text, shape, (*whole, *floats), (*added, *[False] * len(floats)))


def _is_added(operation: str) -> bool:
    return operation.startswith(("add", "getelementptr"))


def _with_float(found: re.Match[str], parameter: str) -> str:
    """The operation with the float whose bits, as a double, are in a parameter."""
    target, operation, type_, scalar, operand, splat, _ = found.groups()
    before = [f"{target}.double = bitcast i64 {parameter} to double"]
    value = f"{target}.double".strip()
    if scalar == "float":
        before.append(f"{target}.float = fptrunc double {value} to float")
        value = f"{target}.float".strip()
    if splat:
        before.append(f"{target}.lane = insertelement {type_} poison, {scalar} {value}, i64 0")
        lanes = type_[1:].split(" ")[0]
        lane, value = f"{target}.lane".strip(), f"{target}.splat".strip()
        before.append(
            f"  {value} = shufflevector {type_} {lane}, {type_} poison, <{lanes} x i32> zeroinitializer"
        )
    return "\n".join([*before, f"{target}{operation}{type_}{operand}{value}"])
