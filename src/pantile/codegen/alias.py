"""Metadata that tells LLVM which buffers cannot overlap.

No two buffers alias, except those that may share memory (`ir/overlap.py`): moving a store to one before a load of the
other would then be wrong. Buffers are numbered, and all that are connected by sharing have the same number. For each
binary digit there is a domain with two scopes: a buffer's accesses are in the scopes of its digits, and not in the
opposite ones, so two buffers of different numbers do not alias by the first digit that differs. LLVM goes through these
lists for every two accesses that it compares; they grow with the logarithm of the number of buffers, where a scope per
buffer would make lists of all others. Only buffers of the same number have scopes of their own as well, in one more
domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..dataclass import dataclass
from ..ir.nodes import Program
from ..ir.overlap import overlaps

_FIRST = 6  # number of the first metadata node; those below belong to `emit`


@dataclass(frozen=True)
class Alias:
    """The metadata that follows the loads and stores of each buffer, and its definitions."""

    notes: Mapping[str, str]
    lines: list[str]


def alias_metadata(program: Program, names: tuple[str, ...]) -> Alias:
    """The scopes that each buffer is in, and those that it cannot alias."""
    known = overlaps(program)
    sharing = {name: known.get(name, []) for name in names}
    groups = _linked(sharing)
    nodes = _Nodes([])
    digits = [nodes.scopes(2) for _ in range(max([1, *groups.values()]).bit_length())]
    mates = {g: [n for n in names if groups[n] == g] for g in set(groups.values())}
    single = {n: scope for g in mates.values() if len(g) > 1 for n, scope in zip(g, nodes.scopes(len(g)), strict=True)}
    notes: dict[str, str] = {}
    for name in names:
        bits = [groups[name] >> k & 1 for k in range(len(digits))]
        mine = [pair[bit] for pair, bit in zip(digits, bits, strict=True)] + ([single[name]] if name in single else [])
        others = [pair[1 - bit] for pair, bit in zip(digits, bits, strict=True)]
        others += [single[n] for n in mates[groups[name]] if n != name and n not in sharing[name]]
        notes[name] = f", !alias.scope {nodes.list(mine)}, !noalias {nodes.list(others)}"
    return Alias(notes, nodes.lines)


@dataclass(frozen=True)
class _Nodes:
    """Metadata nodes, one line for each."""

    lines: list[str]

    def _add(self, node: Callable[[str], str]) -> str:
        name = f"!{_FIRST + len(self.lines)}"
        self.lines.append(f"{name} = {node(name)}")
        return name

    def scopes(self, count: int) -> list[str]:
        """The scopes of a new domain."""
        domain = self._add(lambda node: f"distinct !{{{node}}}")
        return [self._add(lambda node: f"distinct !{{{node}, {domain}}}") for _ in range(count)]

    def list(self, scopes: Iterable[str]) -> str:
        return self._add(lambda _: f"!{{{', '.join(scopes)}}}")


def _linked(sharing: Mapping[str, list[str]]) -> dict[str, int]:
    """A number for each buffer, equal for those that are connected by sharing memory."""
    numbers: dict[str, int] = {}
    count = 0
    for name in sharing:
        pending = [] if name in numbers else [name]
        count += len(pending)
        while pending:
            n = pending.pop()
            if n not in numbers:
                numbers[n] = count - 1
                pending += sharing[n]
    return numbers
