"""The values of lets as sums. Two indices are compared by their difference, which is mostly constant.

let f.y.min = yo*64 + ty*8 - 1
let row = yo*64 + ty*8                      form(row + 1) - form(f.y.min) = 2
"""

from __future__ import annotations

from collections.abc import Mapping

from ...expr.linear import Linear, linear, simplify
from ...expr.nodes import Const, Expr, Op, Var
from ...expr.types import INDEX
from ...expr.visit import Key, key, names, substitute
from ...ir.nodes import Let, Stmt


class Named:
    """The names visible at a statement, each with its value as a sum of names that are not lets."""

    def __init__(self, forms: Mapping[str, Linear] | None = None, parts: dict[Key, Linear] | None = None) -> None:
        self._forms = forms or {}
        # Atoms in which all names are written out -> their sums: lets in all copies of a loop have the same values.
        self._parts = {} if parts is None else parts

    def inside(self, s: Stmt) -> Named:
        """The names visible inside a statement."""
        return self.where(s.name, self.form(s.value)) if isinstance(s, Let) and s.value.dtype is INDEX else self

    def where(self, name: str, form: Linear) -> Named:
        """These names and one more."""
        return Named({**self._forms, name: form}, self._parts)

    def form(self, e: Expr) -> Linear:
        """An index as a sum."""
        form = linear(e)
        if all(isinstance(atom, Var) and atom.name not in self._forms for atom, _ in form.terms.values()):
            return form
        result = Linear(form.constant)
        for k, (atom, times) in form.terms.items():
            part = self._part(atom)
            result = result.plus(Linear(0, {k: (atom, 1)}) if part is None else part, times)
        return result

    def _part(self, atom: Expr) -> Linear | None:
        """The value of an atom, or None if it stands for itself."""
        if isinstance(atom, Var):
            return self._forms.get(atom.name)
        if isinstance(atom, Op) and atom.op == "mod" and isinstance(atom.args[1], Const):
            inner = self.form(atom.args[0])
            if not inner.terms:
                return Linear(inner.constant % int(atom.args[1].value))
        used = names(atom) & self._forms.keys()
        whole = substitute(atom, {n: self._forms[n].expr() for n in used})
        if key(whole) not in self._parts:
            self._parts[key(whole)] = linear(simplify(whole))
        return self._parts[key(whole)]
