"""One LLVM function under construction: its instructions, value numbers, basic blocks and bound names.

Value numbering: an instruction without effects is looked up by its own text, so writing it again returns the name of
the first one. Instructions of a scope (a loop body, a branch) are forgotten at its end, so that uses are always
dominated by definitions. Loads are also numbered, per buffer, until that buffer is stored to or a scope begins or ends.

A name of the program resolves to its binding in this function. Any other name is loaded from the function's frame (the
program's argument slots or a kernel's closure), once, in the entry block, on first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from ..dataclass import dataclass
from ..errors import InternalError
from .types import mangled

# Unrolling with a remainder loop is up to the schedule; full unrolling of short loops is left to LLVM. If a function
# has many loops, LLVM may unroll only those that are certainly short: for each loop that it unrolls, it invalidates and
# repeats its analyses of all other loops inside the same outermost one.
_UNROLLED_IF_SHORT = "!llvm.loop !2"
_NEVER_UNROLLED = "!llvm.loop !4"
SHORT = 8  # iterations
_MANY_LOOPS = 64  # loops that are not certainly short, in one function; bodies of apps have up to 49


T = TypeVar("T")
SLOT = 8
_PLAIN = re.compile(r"[\w.$-]", re.ASCII)
_LONGEST = 64


class Frame(Protocol):
    """The memory from which a function loads values that it did not compute itself."""

    def place(self, name: str, type_: str) -> int:
        """The byte offset of the value `name` of LLVM type `type_`."""


class Function:
    """The text of a function under construction."""

    def __init__(self, head: str, frame: Frame, frame_pointer: str) -> None:
        self.head = head
        self.frame = frame
        self.frame_pointer = frame_pointer
        self.entry: list[str] = []  # allocas and loads from the frame, which run before everything else
        self.lines: list[str] = []
        self.label = "entry"
        self.names: dict[str, str] = {}
        self.stack: set[str] = set()  # operands that point to the function's own memory
        self.nesting: dict[str, int] = {}  # the number of minima and maxima that LLVM sees behind a name
        self._heap: list[str] = []  # labels of the exits that free the live heap buffers
        self._ways_out: list[str] = []
        self.has_loops = False
        self.has_bfloats = False  # whether the target converts to bfloat16 and computes with it
        self._long_loops: list[int] = []  # lines that end long loops
        self._numbers: dict[str, str] = {}
        self._added: list[str] = []
        self._written: dict[Hashable, Any] = {}  # memo of `once`, scoped like value numbers
        self._keys: list[Hashable] = []
        self._loads: dict[str, dict[str, str]] = {}
        self._count = 0

    # Instructions

    def fresh(self, hint: str = "v") -> str:
        """A new SSA name."""
        self._count += 1
        return f"%{hint}{self._count}"

    def value(self, instruction: str) -> str:
        """Write an instruction without effects, unless equal text was written already. Return its name."""
        name = self._numbers.get(instruction)
        if name is None:
            self._count += 1
            name = f"%v{self._count}"
            self.lines.append(f"  {name} = {instruction}")
            self._numbers[instruction] = name
            self._added.append(instruction)
        return name

    def intrinsic(self, name: str, type_: str, *args: str, flags: str = "") -> str:
        """Call one of LLVM's intrinsics that is overloaded on the one type of all its arguments."""
        operands = ", ".join([f"{type_} {a}" for a in args])
        return self.value(f"call {flags}{type_} @llvm.{name}.{mangled(type_)}({operands})")

    def once(self, key: Hashable, write: Callable[[], T]) -> T:
        """The result of `write`, whose instructions have no effects. If the result for the key is known, nothing is
        written."""
        if key not in self._written:
            self._written[key] = write()
            self._keys.append(key)
        result: T = self._written[key]
        return result

    def load(self, buffer: str, instruction: str, note: str) -> str:
        """Write a load, unless an equal one is known. Return its name. `note` (metadata) follows it in the text."""
        known = self._loads.setdefault(buffer, {})
        name = known.get(instruction)
        if name is None:
            name = known[instruction] = self.effect_value(instruction + note)
        return name

    def forget_loads(self, buffer: str) -> None:
        """Forget the loads of a buffer after a store."""
        self._loads.pop(buffer, None)

    def forget_all_loads(self) -> None:
        """Forget all loads after a call that stores."""
        self._loads = {}

    def effect_value(self, instruction: str) -> str:
        """Write an instruction that must not be shared. Return its new name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def effect(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def repeat(self, branch: str, extent: int | None) -> None:
        """Write the back edge of a loop; `extent` is its trip count if that is known."""
        self.has_loops = True
        if extent is None or extent > SHORT:
            self._long_loops.append(len(self.lines))
        self.effect(f"{branch}, {_UNROLLED_IF_SHORT}")

    # Blocks

    def new_label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def branch(self, label: str) -> None:
        self.effect(f"br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str) -> None:
        self.effect(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def fail_if(self, condition: str, code: str) -> None:
        """Return from the function with a code if the condition holds."""
        failed, passed = self.new_label("failed"), self.new_label("passed")
        self.branch_if(condition, failed, passed)
        self.start(failed)
        self.leave(code)
        self.start(passed)

    def leave(self, code: str) -> None:
        """Free the live heap buffers, then return with a code."""
        if not self._heap:
            self.effect(f"ret i32 {code}")
        else:
            self.effect(f"store i32 {code}, ptr %code, align 4")
            self.branch(self._heap[-1])

    @contextmanager
    def on_heap(self, pointer: str) -> Iterator[None]:
        """Declare a heap buffer live inside a with statement.

        All failures share one chain of exits. A separate exit for each failure, which frees all buffers, would make the
        code quadratic in the number of stages.
        """
        give_back = f"  call void @pantile_scratch_pop(ptr {pointer})"
        label = self.new_label("unwind")
        if not self._ways_out:
            self.entry.append("  %code = alloca i32, align 4")
            self._ways_out = ["unwound:", "  %code.now = load i32, ptr %code, align 4", "  ret i32 %code.now"]
        self._ways_out += [f"{label}:", give_back, f"  br label %{self._heap[-1] if self._heap else 'unwound'}"]
        self._heap.append(label)
        yield
        self._heap.pop()
        self.lines.append(give_back)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope, at whose end the instructions numbered inside are forgotten. Earlier loads are reused neither inside
        nor afterwards."""
        added, keys = len(self._added), len(self._keys)
        self._loads = {}
        yield
        for instruction in self._added[added:]:
            del self._numbers[instruction]
        del self._added[added:]
        for name in self._keys[keys:]:
            del self._written[name]
        del self._keys[keys:]
        self._loads = {}

    # Names

    def bind(self, name: str, operand: str) -> None:
        self.names[name] = operand

    def resolve(self, name: str, type_: str) -> str:
        """The operand that holds a name of the program."""
        operand = self.names.get(name)
        if operand is None:
            operand = self.names[name] = self._from_frame(name, type_)
        return operand

    def _from_frame(self, name: str, type_: str) -> str:
        place = self.frame.place(name, type_)
        operand = self.fresh(readable(name))
        self.entry.append(f"  {operand}.slot = getelementptr inbounds i8, ptr {self.frame_pointer}, i64 {place}")
        self.entry.append(f"  {operand} = load {type_}, ptr {operand}.slot, align 8, !invariant.load !0")
        return operand

    def alloca(self, type_: str, hint: str) -> str:
        """Allocate 64-byte aligned memory that lives as long as the call."""
        operand = self.fresh(readable(hint))
        self.stack.add(operand)
        self.entry.append(f"  {operand} = alloca {type_}, align 64")
        return operand

    def text(self) -> str:
        """The text of the finished function."""
        if len(self._long_loops) > _MANY_LOOPS:
            for k in self._long_loops:
                self.lines[k] = self.lines[k].replace(_UNROLLED_IF_SHORT, _NEVER_UNROLLED)
        return "\n".join([f"{self.head} {{", "entry:", *self.entry, *self.lines, *self._ways_out, "}", ""])


@dataclass(frozen=True)
class ClosureSlot:
    """A slot of a closure: the name of its value in the kernel, its LLVM type, and its byte offset."""

    name: str
    type_: str
    byte: int


class Closure:
    """The frame of a kernel's function. It holds those captured values that the function's code uses."""

    def __init__(self, kernel: str, captures: Iterable[str]) -> None:
        self._kernel = kernel
        self._captures = frozenset(captures)
        self.slots: list[ClosureSlot] = []
        self.size = 0

    def place(self, name: str, type_: str) -> int:
        if name not in self._captures:
            raise InternalError(f"{self._kernel} uses {name}, which it does not capture")
        byte = self.size
        self.slots.append(ClosureSlot(name, type_, byte))
        self.size += _room(type_)
        return byte


def _room(type_: str) -> int:
    """The size of a slot: enough for any scalar, or for the lanes of a vector of the widest type."""
    return SLOT * (int(type_[1:].split(" ")[0]) if type_.startswith("<") else 1)


def symbol(name: str) -> str:
    """The symbol of a function: the bytes of its name, quoted and escaped. f.x is @"f.x", and é is @"\\C3\\A9"."""
    shown = [c if _PLAIN.match(c) else "".join(f"\\{b:02X}" for b in c.encode("utf-8", "surrogatepass")) for c in name]
    return '@"' + "".join(shown) + '"'


def readable(name: str) -> str:
    """A name as the prefix of an SSA name. It ends in a dot, and a number that follows makes it unique."""
    return re.sub(r"[^\w.]", "_", name[:_LONGEST], flags=re.ASCII) + "."
