"""Assembly as data: the loops of a program and what their instructions are, for each architecture.

Only the text that LLVM prints is looked at, so that code for any target can be judged on any host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LABEL = re.compile(r"([\w.$]+):")
_INSTRUCTION = re.compile(r"\s+[a-zA-Z]")


@dataclass(frozen=True)
class Dialect:
    """How an architecture writes what tests look for: patterns of instructions, written as `mnemonic operands`."""

    jump: str  # to a label, which is the last operand
    call: str
    vector: str  # anything on vector registers
    setting: str  # of the vector unit, which is no work
    scalar_float: str  # arithmetic on one float
    stack: str  # a register kept on the stack
    vector_stack: str  # a vector register kept there
    share: float = 0.5  # of vector instructions in code that does hardly anything else


DIALECTS = {
    "aarch64": Dialect(
        jump=r"(b|b\.\w+|cbn?z|tbn?z) ",
        call=r"blr? ",
        vector=r"\S+ .*\b(v\d+\.(16b|8h|4s|2d)|q\d+)\b",
        setting=r"(?!)",
        scalar_float=r"f(n?m(add|sub|ul)|add|sub|div|abs|neg|sqrt) [hsd]\d+,",
        stack=r".*\[sp\b",
        vector_stack=r"\S+ [qv]\d+.*\[sp\b",
    ),
    "x86": Dialect(
        jump=r"j\w+ ",
        call=r"call",
        vector=r"v\S+ .*%[yz]mm\d+",
        setting=r"(?!)",
        scalar_float=r"v(f?n?m(add|sub)\d*|mul|add|sub|div|sqrt)s[sd] ",
        stack=r".*\(%rsp\)",
        vector_stack=r"v.*\(%rsp\)",
    ),
    "riscv": Dialect(
        jump=r"(j|b\w+) ",
        call=r"(call|jalr?|tail) ",
        vector=r"v(?!set)\S+ ",
        setting=r"vset",
        scalar_float=r"f(n?m(add|sub)|mul|add|sub|div|sqrt)\.[shd] ",
        stack=r".*\(sp\)|vs[1248]r\.v |vl[1248]r(e\d+)?\.v ",
        vector_stack=r"v\S+ .*\(sp\)|vs[1248]r\.v |vl[1248]r(e\d+)?\.v ",
        share=0.4,  # every address is an instruction of its own
    ),
}


@dataclass(frozen=True)
class Loop:
    """A loop with no loop inside."""

    function: str
    instructions: tuple[str, ...]
    dialect: Dialect

    def like(self, pattern: str) -> list[str]:
        """The instructions that start like this."""
        return [i for i in self.instructions if re.match(pattern, i)]

    @property
    def vectors(self) -> list[str]:
        return self.like(self.dialect.vector)

    @property
    def is_steady(self) -> bool:
        """Whether it does vector work most of the time; edges and set-up code do not."""
        work = len(self.instructions) - len(self.like(self.dialect.setting))
        return len(self.vectors) >= self.dialect.share * work

    def __str__(self) -> str:
        return "\n    ".join([f"{self.function}:", *self.instructions])


def steady_loops(text: str, arch: str) -> list[Loop]:
    """The innermost loops of a program that work on vectors: the middles of its stages."""
    dialect = DIALECTS[arch]
    inner = [loop for name, lines in _functions(text).items() for loop in _innermost(name, lines, dialect)]
    return [loop for loop in inner if loop.is_steady]


def hottest(text: str, arch: str) -> Loop:
    """The steady loop with the most vector instructions."""
    return max(steady_loops(text, arch), key=lambda loop: len(loop.vectors))


def _functions(text: str) -> dict[str, list[str]]:
    """The labels and instructions of every function."""
    names = set(re.findall(r"\.type\s+(\S+),@function", text))
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label and label[1] in names:
            lines = found[label[1]] = []
        elif label or _INSTRUCTION.match(line):
            lines.append(" ".join(line.split()))
    return found


def _innermost(name: str, lines: list[str], dialect: Dialect) -> Iterator[Loop]:
    """A jump backwards closes a loop."""
    starts = {m[1]: k for k, line in enumerate(lines) if (m := _LABEL.match(line))}
    jumps = [(starts.get(re.split(r"[ ,]+", x)[-1]), k) for k, x in enumerate(lines) if re.match(dialect.jump, x)]
    loops = {(start, end) for start, end in jumps if start is not None and start < end}
    for start, end in sorted(loops):
        if not any(start <= a and b <= end for a, b in loops - {(start, end)}):
            yield Loop(name, tuple(x for x in lines[start : end + 1] if not _LABEL.match(x)), dialect)
