"""The values of the lets around a statement, and memoized results of index analyses.

Unrolled iterations are numerous and share most of their nodes: their lets have the same values, and they access the
same elements. The result for one iteration is looked up for the others, by node identity.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from ...expr.nodes import Expr
from ...expr.types import INDEX
from ...expr.visit import names, substitute
from ...ir.nodes import Let, Stmt

T = TypeVar("T")
_Results = dict[tuple[Hashable, ...], tuple[object, ...]]  # by node ids; the values keep these nodes alive


class Lets:
    """The values that the names around a statement stand for."""

    def __init__(self, values: Mapping[str, Expr], results: _Results | None = None) -> None:
        self.values = values
        self._results: _Results = {} if results is None else results

    def inside(self, s: Stmt) -> Lets:
        """The lets around the body of a statement."""
        if not isinstance(s, Let) or s.value.dtype != INDEX:
            return self
        value = self.once("let", s.value, lambda e: substitute(e, self.values))
        return Lets({**self.values, s.name: value}, self._results)

    def once(self, what: Hashable, e: Expr, find: Callable[[Expr], T]) -> T:
        """Apply `find` to an expression, memoized by the expression and the values of its names."""
        values = [self.values[n] for n in names(e) if n in self.values]
        key = (what, id(e), *map(id, values))
        known: Any = self._results.get(key)
        if known is None:
            known = self._results[key] = (find(e), e, values)
        result: T = known[0]
        return result
