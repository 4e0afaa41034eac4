"""What the emitters of expressions and statements share: the function being written, and facts of the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from ..cached import cached_property
from ..dataclass import dataclass
from ..expr.nodes import Expr
from ..expr.types import DType
from ..ir.nodes import Block, Kernel
from ..target import Target
from .alignment import Places
from .closure import Closure
from .function import Function
from .indices import index_type
from .lanes import Neighbours
from .min_max_pairs import Exchanges
from .opaque_rows import Rows
from .strided_loads import Groups
from .types import scalar_type


@dataclass
class Module:
    """Facts and options that hold for the whole module, and what its kernels need."""

    name: str
    target: Target
    strict: bool
    debug: bool
    dtypes: Mapping[str, DType]  # of every buffer
    ordinals: Mapping[str, int]  # number of every buffer in a debug report
    alias: Mapping[str, str]  # the metadata that tells a buffer's accesses from all others
    kernels: Mapping[str, Kernel]  # by name
    closures: dict[str, Closure] = field(default_factory=dict)  # of those that are written

    @cached_property
    def index(self) -> str:
        """LLVM's type of places in memory."""
        return scalar_type(index_type(self.target.index_bits))


@dataclass
class Context:
    """An emitter at work in one function. `emit` writes an expression and returns the operand that holds it."""

    module: Module
    fn: Function
    emit: Callable[[Context, Expr], str]
    groups: Groups = field(default_factory=lambda: Groups(Block(())))
    neighbours: Neighbours = field(default_factory=lambda: Neighbours(Block(())))
    exchanges: Exchanges = field(default_factory=lambda: Exchanges(Block(())))
    rows: Rows = field(default_factory=Rows)  # of the innermost loop around
    places: Places = field(default_factory=Places)
    threads: int = 0  # of a block, in a kernel of blocks
    memo: dict[int, str] = field(default_factory=dict)  # expression id -> operand, within one statement
    alive: list[Expr] = field(default_factory=list)  # expressions made on the way, while `memo` knows their ids

    def value(self, e: Expr) -> str:
        """The operand that holds an expression."""
        return self.emit(self, e)

    def begin_statement(self) -> None:
        """Loads differ from here on; forget expressions, keep numbered instructions."""
        self.memo.clear()
        self.alive.clear()

    def keep(self, e: Expr) -> Expr:
        """Keep an expression made by the emitter alive, and with it its id."""
        self.alive.append(e)
        return e

    @property
    def flags(self) -> str:
        """Fast-math flags of ordinary float arithmetic."""
        return "" if self.module.strict else "contract "
