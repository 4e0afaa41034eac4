"""Mask loads: loads in only one branch of a select are predicated by its condition.

before:  select(x > 0, f[x - 1], 0)          after:  select(x > 0, (f[x - 1] if x > 0), 0)

The required region of a buffer covers only what a branch reads under its condition, so without the condition the load
could read outside of the buffer. A load gets no mask if its indices provably have the same bounds without the
condition. However, nothing is required over a region in which the condition holds nowhere; there, the mask is whether
the condition holds at any point. If a condition compares the coordinates of several loops, bounds over all loops say
nothing about a stage that is computed inside of some of them: for select(x > y, f[x], 0), f is computed from y + 1 on
inside of the loop over y. Partitioning resolves most masks.

An expression that several selects share is required wherever one of the paths to it is taken. Each of these paths gets
a copy of the expression with its own masks, except for a path that extends another one, such as the path from a
condition on the expression to a branch that reads it. If there are too many paths, a single copy serves all of them,
masked by whether any of them is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial, reduce

from ...analysis.interval import MOST_SCOPES, Evaluator, Interval, Scope, interval, refine
from ...analysis.monotonic import directions
from ...dataclass import cached_property, dataclass
from ...expr.build import binary, expr, unary
from ...expr.linear import Facts, linear
from ...expr.nodes import COMPARISON, Const, Expr, Load, Op, Var, const, var
from ...expr.types import INDEX
from ...expr.visit import children, loaded, names, operands_first, rebuild, transform, union, walk
from ...graph.nodes import InputInfo, Stage
from ..conditions import promised
from ..names import of_buffer


@dataclass(frozen=True)
class LoadContext:
    """Facts about the buffers that an expression may load from."""

    inputs: Mapping[str, InputInfo]
    facts: Facts
    missing: Callable[[str], bool]  # whether a buffer may be left uncomputed where the conditions of all its loads fail
    has_points: Callable[[Expr], bool]  # whether a range of an extent is certainly not empty
    inside: Callable[[str], bool]  # whether a buffer is computed inside of loops over the variables


def mask_loads(e: Expr, scope: Scope, context: LoadContext) -> Expr:
    """Return the expression with masks on the loads that need them. `scope` has the ranges of its variables."""
    if not any(isinstance(n, Op) and n.op == "select" for n in walk(e)):
        return e
    masker = _Masker(scope, context)
    masker.find_paths(e)
    return masker.visit(e, masker.start)


def mask_lanes(
    e: Expr, scope: Scope, context: LoadContext, mask: Expr, stage: Stage, by_lane: Callable[[Expr], bool]
) -> Expr:
    """Return the expression with its loads masked for inactive lanes, since the elements that those would read need not
    exist.

    Loads that an input certainly contains, and loads of `stage` itself, get no mask. A load of another stage at the
    same index for all lanes, which reads no further than it would under the mask, needs only the uniform condition that
    the mask holds somewhere. All other loads get the mask.
    """
    masker = _Masker(scope, context)
    wanted = masker.branch(masker.start, mask, True, e)

    def change(load: Expr) -> Expr | None:
        if not isinstance(load, Load) or load.buffer in stage.buffers or masker.holds(load):
            return None
        is_one = load.buffer not in context.inputs and not any(by_lane(i) for i in load.indices)
        needed = masker.where_taken(load, wanted) if is_one and masker.safe(load, wanted) else mask
        if needed is None:
            return None
        both = needed if load.mask is None else binary("and", needed, load.mask)
        return Load(load.dtype, load.lanes, load.buffer, load.indices, both)

    return transform(e, change)


@dataclass(frozen=True, eq=False)
class _Path:
    """A path to a part of an expression: the ranges of variables there, and whether conditions on scalars alone may
    exclude it."""

    scope: Scope
    by_scalars: bool = False
    compared: frozenset[str] = frozenset()  # variables that conditions compare with each other
    last: tuple[_Path, Expr, bool] | None = None  # the path to a select, its condition, and whether it holds
    any_of: tuple[_Path, ...] = ()  # the paths that this one stands for; it does not narrow the scope
    is_joined: bool = False  # whether it is or goes through such a path: less is read than the scope says

    def refined(self, condition: Expr, holds: bool) -> Scope:
        """The scope narrowed by a condition."""
        return refine(self.scope, condition, holds, self._evaluator)

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.scope)


_NOT_COVERED: Mapping[_Path, _Path] = {}


class _Masker:
    def __init__(self, scope: Scope, context: LoadContext) -> None:
        self.whole = scope
        self.inputs, self.facts = context.inputs, context.facts
        self.missing, self.has_points, self.is_inside = context.missing, context.has_points, context.inside
        self.start = _Path(scope)
        self.branches: dict[tuple[int, int, bool, bool], _Path] = {}
        self.joined: dict[int, _Path] = {}  # node with too many paths -> the path that stands for all
        self.covered: dict[int, dict[_Path, _Path]] = {}  # node -> path that extends another -> that other path
        self.conditions: dict[int, Expr | None] = {id(self.start): None}  # path -> its condition
        self.pending: set[int] = set()  # paths whose conditions are being built
        self.memo: dict[tuple[int, int], Expr] = {}
        self.keep: list[object] = []

    # The paths to each node, parents first

    def find_paths(self, e: Expr) -> None:
        """Note the nodes that are reached by too many paths, and the paths that extend others."""
        paths_to: dict[int, dict[_Path, None]] = {id(e): {self.start: None}}
        for node in reversed(operands_first(e)):
            paths = self.shortest(node, paths_to.pop(id(node)))
            if len(paths) > MOST_SCOPES:
                joined = _Path(self.whole, any(p.by_scalars for p in paths), any_of=paths, is_joined=True)
                self.joined[id(node)] = joined
                paths = (joined,)
            for path in paths:
                for c, inner in self.operands(node, path):
                    paths_to.setdefault(id(c), {})[inner] = None

    def shortest(self, e: Expr, paths: Mapping[_Path, None]) -> tuple[_Path, ...]:
        """The paths to a node that do not extend any of the others."""
        if len(paths) == 1:
            return tuple(paths)
        outermost: dict[_Path, _Path | None] = {}  # path -> the outermost of `paths` that it extends
        for path in paths:
            way = [path]
            while way[-1] not in outermost and (last := way[-1].last) is not None:
                way.append(last[0])
            for p in reversed(way):
                before = None if p.last is None else outermost.get(p.last[0])
                outermost.setdefault(p, before or (p if p in paths else None))
        self.covered[id(e)] = {p: first for p in paths if (first := outermost[p]) is not None and first is not p}
        return tuple(p for p in paths if outermost[p] is p)

    def operands(self, e: Expr, path: _Path) -> list[tuple[Expr, _Path]]:
        """The operands, each with the path to it."""
        if not (isinstance(e, Op) and e.op == "select"):
            return [(c, path) for c in children(e)]
        condition, then, otherwise = e.args
        return [
            (condition, path),
            (then, self.branch(path, condition, True, then)),
            (otherwise, self.branch(path, condition, False, otherwise)),
        ]

    def branch(self, path: _Path, condition: Expr, holds: bool, e: Expr) -> _Path:
        """The path into a branch of a select. It is unchanged if the condition says nothing about what is read."""
        comparisons = list(_deciding(condition, holds))
        compared = union([_compared(c, self.whole) for c in comparisons])
        certain = self.perhaps_empty.isdisjoint(loaded(e)) and not (compared and any(map(self.is_inside, loaded(e))))
        known = (id(path), id(condition), holds, certain)
        if known not in self.branches:
            inner, by_scalars = path.refined(condition, holds), any(_is_of_scalars(c, self.whole) for c in comparisons)
            self.branches[known] = (
                path
                if inner is path.scope and not by_scalars and certain
                else _Path(
                    inner,
                    path.by_scalars or by_scalars,
                    path.compared | compared,
                    (path, condition, holds),
                    (),
                    path.is_joined,
                )
            )
            self.keep.append((path, condition))
        return self.branches[known]

    def taken(self, path: _Path) -> Expr | None:
        """The condition under which a path is taken."""
        if id(path) not in self.conditions:
            self.pending.add(id(path))
            self.conditions[id(path)] = self.condition(path)
            self.pending.remove(id(path))
            self.keep.append(path)
        return self.conditions[id(path)]

    def condition(self, path: _Path) -> Expr | None:
        if path.last is None:
            each = [c for p in path.any_of if (c := self.taken(p)) is not None]
            return reduce(partial(binary, "or"), each) if len(each) == len(path.any_of) else None
        before, condition, holds = path.last
        condition = self.visit(condition, before)
        value, outer = condition if holds else unary("not", condition), self.taken(before)
        return value if outer is None else binary("and", outer, value)

    # The copies

    def visit(self, e: Expr, path: _Path) -> Expr:
        if isinstance(e, (Const, Var)):
            return e
        path = self.covered.get(id(e), _NOT_COVERED).get(path, path)
        joined = self.joined.get(id(e))
        if joined is not None and id(joined) not in self.pending:  # else the mask would depend on itself
            path = joined
        key = (id(e), id(path))
        masked = self.memo.get(key)
        if masked is None:
            masked = self.memo[key] = self.node(e, path)
            self.keep.append((e, path))
        return masked

    def node(self, e: Expr, path: _Path) -> Expr:
        below = self.operands(e, path)
        new = tuple([self.visit(c, at) for c, at in below])
        result = e if all(a is b for a, (b, _) in zip(new, below, strict=True)) else rebuild(e, new)
        if isinstance(result, Load) and (taken := self.taken(path)) is not None:
            mask = self.where_taken(result, path) if self.safe(result, path) else taken
            if mask is not None:
                return Load(result.dtype, result.lanes, result.buffer, result.indices, mask)
        return result

    def safe(self, load: Load, path: _Path) -> bool:
        """Whether the load reads no further without the conditions of the path, or stays within an input in any
        case."""
        if path.is_joined or load.buffer in self.inputs and (path.by_scalars or load.buffer in self.perhaps_empty):
            return self.holds(load)
        if self.missing(load.buffer):
            return False
        narrowed, is_inside = self.narrowed(path), self.is_inside(load.buffer)
        compared = path.compared if is_inside else frozenset()
        return all(
            self.inside(interval(i, self.whole), interval(i, path.scope))
            and self.is_so_in_parts(i, narrowed, is_inside)
            and compared.isdisjoint(names(i))
            or self.holds_along(load.buffer, k, i)
            for k, i in enumerate(load.indices)
        )

    def is_so_in_parts(self, index: Expr, narrowed: Collection[str], is_inside: bool) -> bool:
        """Whether an index that takes the same values over whole ranges, with and without conditions, does so over all
        parts of these ranges as well. It does if it is monotonic in the narrowed variables and, for a stage that is
        computed inside of the loops, moves with nothing else.

        x % 4 takes all values over a whole row, with or without a condition on x, but fewer values with the condition
        over a part of a row. Likewise, max(x + y, 8) where x >= 4 takes all values over all rows together, but not in
        row 7.
        """
        moving = {name: d for name in names(index) & self.whole.keys() if (d := directions(index, name))}
        if moving.keys().isdisjoint(narrowed):
            return True
        return all(len(moving.get(name, ())) < 2 for name in narrowed) and not (is_inside and len(moving) > 1)

    def where_taken(self, load: Load, path: _Path) -> Expr | None:
        """The condition that none of the ranges that the path narrows is empty, which is uniform. None if that is
        certain, or if the load stays within an input in any case."""
        if self.holds(load):
            return None
        condition: Expr | None = None
        for name in self.narrowed(path):
            side = path.scope[name]
            low, high = (expr(e, INDEX) for e in (side.low, side.high)) if side.bounded else (None, None)
            if low is not None and high is not None and not self.has_points(high - low + 1):
                condition = low <= high if condition is None else binary("and", condition, low <= high)
        return condition

    def narrowed(self, path: _Path) -> list[str]:
        return [name for name, whole in self.whole.items() if path.scope[name] is not whole]

    def holds(self, load: Load) -> bool:
        """Whether an input certainly contains all elements that the load may read, even without promises."""
        return all(self.holds_along(load.buffer, k, transform(i, promised)) for k, i in enumerate(load.indices))

    def holds_along(self, buffer: str, k: int, index: Expr) -> bool:
        if buffer not in self.inputs or not self.has_pixels_along(buffer, k):
            return False
        return self.inside(interval(index, self.whole), Interval(0, var(of_buffer(buffer, "shape", k)) - 1))

    @cached_property
    def perhaps_empty(self) -> frozenset[str]:
        """The inputs that may have no elements to read where a condition fails, even a condition on data."""
        full = (i.name for i in self.inputs.values() if all(self.has_pixels_along(i.name, k) for k in range(i.ndim)))
        return frozenset(self.inputs).difference(full)

    def has_pixels_along(self, buffer: str, k: int) -> bool:
        """Whether an input certainly is not empty along a dim. Clamped or wrapped indices are not within an empty
        input."""
        return self.facts.ge(var(of_buffer(buffer, "shape", k)), const(1, INDEX))

    def inside(self, a: Interval, b: Interval) -> bool:
        """Whether the range a is certainly contained in b."""
        if not (a.bounded and b.bounded):
            return False
        low, high = ([expr(v, INDEX) for v in ends] for ends in ((a.low, b.low), (b.high, a.high)))
        return self.facts.ge(low[0], low[1]) and self.facts.ge(high[0], high[1])


def _deciding(condition: Expr, holds: bool) -> Iterator[Op]:
    """Yield the comparisons that `refine` uses, given a condition and whether it holds."""
    if not isinstance(condition, Op):
        return
    if condition.op == "not":
        yield from _deciding(condition.args[0], not holds)
    elif condition.op == ("and" if holds else "or"):
        for c in condition.args:
            yield from _deciding(c, holds)
    elif condition.op in COMPARISON:
        yield condition


def _is_of_scalars(comparison: Op, coordinates: Scope) -> bool:
    """Whether a comparison involves scalars only, so that ranges do not show where it excludes everything."""
    if not comparison.args[0].dtype.is_int or loaded(comparison):
        return False
    terms = linear(comparison.args[0]).plus(linear(comparison.args[1]), -1).terms.values()
    moves = any(isinstance(atom, Var) and atom.name in coordinates for atom, _ in terms)
    return not moves and any(not names(atom) <= coordinates.keys() for atom, _ in terms)


def _compared(comparison: Op, coordinates: Scope) -> frozenset[str]:
    """The coordinates in a comparison of several of them. Each is limited by the others, which the range of a single
    one does not show."""
    compared = names(comparison) & coordinates.keys()
    return compared if comparison.args[0].dtype is INDEX and len(compared) > 1 else frozenset()
