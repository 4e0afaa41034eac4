"""The context that emitters of expressions and statements share: the function being written, and facts of the
module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from ..dataclass import cached_property, dataclass
from ..expr.nodes import Expr
from ..expr.types import DType
from ..ir.nodes import Block, Kernel
from ..target import Target
from ..target.kinds import CacheOperator
from .alignment import AlignmentFacts
from .function import Closure, Function
from .indices import index_type
from .lanes import Neighbours
from .min_max_pairs import Exchanges
from .opaque_rows import LoopRows
from .strided_loads import Groups
from .types import scalar_type


@dataclass
class Module:
    """Facts and options of the whole module, and the closures of its kernels."""

    name: str
    target: Target
    strict: bool
    debug: bool
    dtypes: Mapping[str, DType]  # element type of every buffer
    ordinals: Mapping[str, int]  # number of every buffer in a debug report
    alias: Mapping[str, str]  # alias metadata of each buffer's accesses
    kernels: Mapping[str, Kernel]  # by name
    closures: dict[str, Closure] = field(default_factory=dict)  # closures of the kernels written so far

    @cached_property
    def index(self) -> str:
        """The LLVM type of indices."""
        return scalar_type(index_type(self.target.index_bits))


@dataclass
class Context:
    """The state of an emitter in one function. `emit` writes an expression and returns the operand that holds it."""

    module: Module
    fn: Function
    emit: Callable[[Context, Expr], str]
    groups: Groups = field(default_factory=lambda: Groups(Block(())))
    neighbours: Neighbours = field(default_factory=lambda: Neighbours(Block(())))
    exchanges: Exchanges = field(default_factory=lambda: Exchanges(Block(())))
    rows: LoopRows = field(default_factory=LoopRows)  # rows of the enclosing innermost loop
    places: AlignmentFacts = field(default_factory=AlignmentFacts)
    threads: int = 0  # threads per block, in a kernel of blocks
    operators: Mapping[str, CacheOperator] = field(default_factory=dict)  # cache operators of buffers, other than ca
    memo: dict[int, str] = field(default_factory=dict)  # expression id -> operand, within one statement
    alive: list[Expr] = field(default_factory=list)  # created expressions whose ids are keys of `memo`

    def value(self, e: Expr) -> str:
        """The operand that holds an expression."""
        return self.emit(self, e)

    def begin_statement(self) -> None:
        """Forget the operands of expressions, since loads may yield other values; value-numbered instructions are
        kept."""
        self.memo.clear()
        self.alive.clear()

    def keep(self, e: Expr) -> Expr:
        """Keep an expression created by the emitter alive, so that its id stays unique."""
        self.alive.append(e)
        return e

    @property
    def flags(self) -> str:
        """The fast-math flags of ordinary float arithmetic."""
        return "" if self.module.strict else "contract "
