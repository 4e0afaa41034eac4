"""Common subexpressions of the copies of unrolled loops: nodes that are equal except for where they read.

    out[y, x] = f(a[y - 1, x]) + f(a[y, x]) + f(a[y + 1, x])        two rows: f four times, not six; sums four times

A node is identified by its operations, and by its loads relative to the first of them; equal nodes differ only by one
place along each unrolled loop. Sums of many terms are ordered so that adjacent sums share terms (`lower/reassociate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from ..dataclass import memoized
from ..expr.nodes import Const, Expr, Load, Op, Var
from ..expr.visit import children, names
from .linear_forms import LinearForm

Copies = tuple[tuple[str, int, int], ...]  # a variable, its distance from copy to copy, and the number of copies
Place = tuple[float | None, ...]  # along each such variable, if it depends on it
MOST = 96  # copies that are compared one by one
# As in `lower/reassociate`: the fewest terms of sums that are reordered, the most sums that share terms, and the
# fraction of their operations that must remain at most.
FEWEST_TERMS, MOST_SUMS, WORTH = 7, 8, 0.75
Terms = frozenset[tuple[int, Place]]


class Kinds:
    """Nodes of a definition, numbered so that those which differ only in their places along some variables are
    equal."""

    def __init__(self, variables: tuple[str, ...], form: Callable[[Expr], LinearForm]) -> None:
        self._variables, self._form = variables, form
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[int, tuple[int, Place]] = {}

    def of(self, e: Expr) -> tuple[int, Place]:
        """Return the kind of a node, and its place."""
        known = self._known.get(id(e))
        if known is not None:
            return known
        stack = [e]
        while stack:
            node = stack[-1]
            waiting = [] if isinstance(node, Load) else [c for c in node.operands if id(c) not in self._known]
            if waiting:
                stack += waiting
            else:
                stack.pop()
                if id(node) not in self._known:
                    self._known[id(node)] = self._node(node)
        return self._known[id(e)]

    def _node(self, e: Expr) -> tuple[int, Place]:
        if isinstance(e, Load):
            return self._load(e)
        if isinstance(e, Var):
            place = tuple([0.0 if e.name == v else None for v in self._variables])
            return self._numbered(("var", None if any(p is not None for p in place) else e.name)), place
        parts = [self._known[id(c)] for c in e.operands]
        base = self._common_place(parts)
        detail = e.op if isinstance(e, Op) else e.value if isinstance(e, Const) else None
        relative = tuple([(kind, _relative(place, base)) for kind, place in parts])
        return self._numbered((type(e), e.dtype, detail, relative)), base

    def _common_place(self, parts: Iterable[tuple[int, Place]]) -> Place:
        places = [place for _, place in parts]
        return tuple([next((p[k] for p in places if p[k] is not None), None) for k in range(len(self._variables))])

    def _load(self, e: Load) -> tuple[int, Place]:
        forms = [self._form(i) for i in e.indices]
        if any(f.decided is not None for f in forms):
            by = names(e)
            return self._numbered(("decided", id(e))), tuple([0.0 if v in by else None for v in self._variables])
        base = tuple([next((f.low / s for f in forms if (s := f.slope(v))), None) for v in self._variables])
        moved = [
            f.low - sum(f.slope(v) * at for v, at in zip(self._variables, base, strict=True) if at is not None)
            for f in forms
        ]
        return self._numbered((e.buffer, *((f.slopes, round(m, 6)) for f, m in zip(forms, moved, strict=True)))), base

    def _numbered(self, what: tuple[object, ...]) -> int:
        return self._numbers.setdefault(what, len(self._numbers))


class Instances:
    """Counts how often nodes of a definition are computed by all copies together. `kinds` are along the same
    variables."""

    def __init__(self, copies: Copies, kinds: Kinds) -> None:
        self._copies, self._of = copies, kinds.of
        self._seen: dict[int, set[Place]] = {}

    def counted(self, e: Expr) -> int:
        """The number of copies of a node whose values have not been computed before."""
        kind, place = self._of(e)
        seen = self._seen.setdefault(kind, set())
        before = len(seen)
        seen.update(self._shifted(place))
        return len(seen) - before

    def of_sum(self, terms: list[Expr]) -> float:
        """The operations of the sums of all copies, relative to the operations of one sum."""
        parts = [self._of(t) for t in terms if not (isinstance(t, Const) and t.value == 0)]
        kinds, places = [kind for kind, _ in parts], [self._shifted(at) for _, at in parts]
        sums = dict.fromkeys(frozenset(zip(kinds, of_copy, strict=True)) for of_copy in zip(*places, strict=True))
        return sum(map(_operations, _families(sums))) / (len(terms) - 1)

    @memoized
    def _shifted(self, place: Place) -> list[Place]:
        """The place of each copy, a number of steps farther along each loop."""
        along = [
            [None] * n if at is None else [at + step * k for k in range(n)]
            for at, (_, step, n) in zip(place, self._copies, strict=True)
        ]
        return list(product(*along))


def _families(sums: Iterable[Terms]) -> list[list[Terms]]:
    """The sums that are computed together: all sums of a family have terms in common."""
    families: list[tuple[Terms, list[Terms]]] = []
    for s in sums:
        for k, (common, family) in enumerate(families):
            if len(family) < MOST_SUMS and common & s:
                families[k] = (common & s, [*family, s])
                break
        else:
            families.append((s, [s]))
    return [family for _, family in families]


def _operations(family: list[Terms]) -> int:
    """The number of operations of sums that are computed together. What all have in common is computed once, and then
    what each shares with all before it or with all after it. If that saves little, each sum is computed by itself."""
    places: dict[object, list[int]] = {}
    for k, s in enumerate(family):
        for t in s:
            places.setdefault(t, []).append(k)
    last = len(family) - 1
    often = [len(at) for at in places.values()]
    shared = [
        n for n, at in zip(often, places.values(), strict=True) if at[-1] - at[0] < n and (not at[0] or at[-1] == last)
    ]
    apart, together = sum(len(s) - 1 for s in family), len(shared) + sum(often) - sum(shared) + last - 1
    return together if last and together <= WORTH * apart else apart


def _relative(place: Place, base: Place) -> Place:
    return tuple([None if a is None or b is None else a - b for a, b in zip(place, base, strict=True)])


def long_sums(nodes: Iterable[Expr]) -> dict[int, list[Expr]]:
    """The terms of long sums, maxima and minima, by the id of each of their operations; those of one sum share a
    list."""
    operations = [e for e in nodes if isinstance(e, Op) and e.op in ("add", "min", "max")]
    inside = {id(c): id(e) for e in operations for c in e.args if isinstance(c, Op) and c.op == e.op}
    terms_of: dict[int, list[Expr]] = {}
    for e in operations:
        if id(e) in inside:
            continue
        parts, terms, pending = {id(e)}, list[Expr](), list[Expr](e.args)
        while pending:
            c = pending.pop()
            if inside.get(id(c)) in parts:
                parts.add(id(c))
                pending += children(c)
            else:
                terms.append(c)
        if len(terms) >= FEWEST_TERMS:
            terms_of |= dict.fromkeys(parts, terms)
    return terms_of
