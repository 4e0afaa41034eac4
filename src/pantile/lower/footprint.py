"""Footprints: the boxes of a stage that statements read and compute over all their loops, in terms of names visible
outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..analysis.interval import Interval, LazyInterval, Scalar, Scope, interval, refine, type_range
from ..analysis.regions import Box, hull, load_boxes
from ..expr.build import expr, select
from ..expr.linear import Facts, simplify
from ..expr.nodes import COMPARISON, Expr, Op
from ..expr.types import INDEX
from ..expr.visit import conjuncts, depends, loaded, names, same, substitute, walk
from ..graph.nodes import Stage
from ..ir.nodes import Block, For, If, Let, Produce, Stmt, Store
from ..ir.visit import children, expressions
from .conditions import assume
from .contents import Contents
from .coverage import Coverage, CoveredRange
from .names import is_of_call, region_names


class LoopRanges:
    """The ranges of whole loops, as seen from inside of the loops `around`."""

    def __init__(self, covered: Coverage, around: Iterable[str], contents: Contents) -> None:
        self.covered = covered
        self.around = set(around)
        self.contents = contents

    def loop(self, s: For, scope: Scope) -> Interval:
        """All values of a loop's variable over the loops entered so far."""
        whole = self.covered.get(s.var)
        if whole is not None and not whole.loops & self.around:
            return _range(whole, scope)
        first, last = interval(s.min, scope), s.min + s.extent - 1
        # If the loop may start at several points, simplify its end, whose start is the same one: lo + (n - lo).
        return Interval(first.low, interval(last if first.is_point else simplify(last), scope).high)

    def let(self, s: Let, scope: Scope) -> Interval:
        """All values of a let. A coordinate recombined from fused or split loops stays within the range of its dim.

        A loop of one iteration is a let too, but is treated as a loop: if other loops start early, clamps hide by how
        much.
        """
        whole = self.covered.get(s.name)
        if whole is None:
            return interval(s.value, scope)
        if not whole.loops & self.around:
            return _range(whole, scope)
        values = interval(s.value, scope)
        return values if values.is_point or s.name in whole.loops else values.meet(_range(whole, scope))


def _range(whole: CoveredRange, scope: Scope) -> Interval:
    return Interval(interval(whole.range.low, scope).low, interval(whole.range.high, scope).high)


NOTHING_KNOWN = LoopRanges(Coverage(), (), Contents())


def step(s: Stmt, scope: Scope, reach: LoopRanges = NOTHING_KNOWN) -> list[tuple[Stmt, Scope]]:
    """The statements directly inside of `s`, each with its scope."""
    if isinstance(s, (For, Let)):
        return [(s.body, {**scope, **_bound(s, scope, reach)})]
    if isinstance(s, If):
        inside = [(s.then, _where(scope, s.condition, True, reach))]
        return inside if s.otherwise is None else [*inside, (s.otherwise, _where(scope, s.condition, False, reach))]
    return [(c, scope) for c in children(s)]


def _where(scope: Scope, condition: Expr, holds: bool, reach: LoopRanges) -> Scope:
    """The scope where a condition holds, narrowed for the variables that it bounds and for lets that depend on
    these."""
    refined = refine(scope, condition, holds)
    limited = {name for name, r in refined.items() if scope.get(name) is not r}
    if not limited:
        return refined
    inner = dict(refined)
    for name, r in scope.items():
        if name not in limited and isinstance(r, _LazyRange) and any(depends(e, limited) for e in expressions(r.by)):
            inner |= _bound(r.by, inner, reach)
            limited.add(name)
    return inner


def read_by(s: Stmt, buffers: tuple[str, ...], scope: Scope, reach: LoopRanges, stage: str | None = None) -> Box | None:
    """The box of some buffers that a statement reads over all its loops, except for reads by `stage`."""

    def reads(s: Stmt) -> bool:
        return not (isinstance(s, Produce) and s.stage == stage or reach.contents.loaded(s).isdisjoint(buffers))

    lets, s = reach.contents.leading_to(s, buffers)
    around = dict(scope)
    for let in lets:
        around |= _bound(let, around, reach)

    def read(s: Stmt, scope: Scope) -> Iterator[Box]:
        reading = [
            part
            for e in expressions(s)
            if not loaded(e).isdisjoint(buffers)
            for part in reach.contents.loads(e, buffers)
        ]
        boxes = load_boxes(reading, scope, buffers) if reading else {}
        return (boxes[b] for b in buffers if b in boxes)

    footprint = _hull_of(s, around, reach, reads, read)
    around.clear()
    return footprint


def _hull_of(
    s: Stmt,
    scope: Scope,
    reach: LoopRanges,
    wanted: Callable[[Stmt], bool],
    boxes: Callable[[Stmt, Scope], Iterator[Box]],
) -> Box | None:
    """The hull of the boxes of all wanted statements inside of a statement. The box of a version applies where its
    condition holds."""
    footprint: Box | None = None
    for inside, inner in _leading_to(s, scope, reach, wanted):
        of_versions = [_hull_of(c, around, reach, wanted, boxes) for c, around in _versions(inside, inner, reach)]
        for box in (*boxes(inside, inner), *_where_each_runs(inside, of_versions)):
            footprint = tuple([side.evaluated() for side in box]) if footprint is None else hull(footprint, box)
    return footprint


def _versions(s: Stmt, scope: Scope, reach: LoopRanges) -> list[tuple[Stmt, Scope]]:
    """The two versions of code under a condition on params and extents; empty for other statements."""
    if not isinstance(s, If) or s.otherwise is None or not all(map(is_of_call, names(s.condition))):
        return []
    return step(s, scope, reach)


def _where_each_runs(s: Stmt, boxes: Sequence[Box | None]) -> Iterator[Box]:
    """Yield the box of two versions. The box of the first relies on its condition and may be anything where that does
    not hold."""
    known = [box for box in boxes if box is not None]
    if len(known) < 2:
        yield from known
        return
    assert isinstance(s, If)
    condition, (box, other) = s.condition, known
    constants, bounds = assume(condition, {})

    def end(a: Scalar | None, b: Scalar | None) -> Expr | None:
        if a is None or b is None:
            return None
        here, general = expr(a, INDEX), expr(b, INDEX)
        if same(here, simplify(substitute(general, constants), Facts(bounds))):
            return general
        return select(condition, here, general)

    yield tuple([Interval(end(a.low, b.low), end(a.high, b.high)) for a, b in zip(box, other, strict=True)])


def _leading_to(
    s: Stmt, scope: Scope, reach: LoopRanges, wanted: Callable[[Stmt], bool]
) -> Iterator[tuple[Stmt, Scope]]:
    """Yield the wanted statements, outer ones first, each with its scope. Statements inside of unwanted ones and of
    versions are not visited.

    Nested loops and lets extend a single scope, however long the pipeline is, since names are unique. Scopes are
    cleared at the end, because the lazy values in them refer back to them and would be cyclic garbage.
    """
    made: list[dict[str, Interval]] = []
    stack = [(s, scope, False)]
    while stack:
        s, scope, is_ours = stack.pop()
        if not wanted(s):
            continue
        yield s, scope
        if _versions(s, scope, reach):
            continue
        if isinstance(s, (For, Let)):
            if not (is_ours and isinstance(scope, dict)):
                scope = dict(scope)
                made.append(scope)
            scope |= _bound(s, scope, reach)
            stack.append((s.body, scope, True))
        else:
            inside = [(c, inner) for c, inner in step(s, scope, reach) if wanted(c)]
            stack += [(c, inner, is_ours and len(inside) == 1) for c, inner in reversed(inside)]
    for inner in made:
        inner.clear()


class _LazyRange(LazyInterval):
    """The lazy range of a name that a loop or let binds, in the scope around it."""

    def __init__(self, by: For | Let, scope: Scope, reach: LoopRanges) -> None:
        super().__init__(lambda: reach.loop(by, scope) if isinstance(by, For) else reach.let(by, scope))
        self.by = by


def bound_by(r: Interval | None) -> For | Let | None:
    """The loop or let that binds a name, according to the name's range in its scope."""
    return r.by if isinstance(r, _LazyRange) else None


def _bound(s: For | Let, scope: Scope, reach: LoopRanges) -> dict[str, Interval]:
    """The range of the name that a loop or let binds."""
    if isinstance(s, For):
        return {s.var: _LazyRange(s, scope, reach)}
    return {s.name: _LazyRange(s, scope, reach) if s.value.dtype is INDEX else type_range(s.value.dtype)}


def computed_box(s: Stmt, stage: Stage, scope: Scope, reach: LoopRanges) -> Box | None:
    """The box of `stage` that a statement computes over all its loops."""

    def computed(s: Stmt, scope: Scope) -> Iterator[Box]:
        if isinstance(s, Produce) and s.stage == stage.name:
            ends = [[interval(end, scope) for end in region_names(stage, d)] for d in stage.dims]
            yield tuple(Interval(low.low, high.high) for low, high in ends)

    return _hull_of(s, scope, reach, lambda s: stage.name in reach.contents.stages(s), computed)


def read_when(
    s: Stmt, buffers: tuple[str, ...], contents: Contents, inside: frozenset[str] = frozenset()
) -> list[Expr] | None:
    """The conditions, in terms of names visible outside, without which a statement reads none of some buffers. None if
    it never reads them.

    `inside` has the names bound on the way to the statement.
    """
    if contents.loaded(s).isdisjoint(buffers):
        return None
    lets, s = contents.leading_to(s, buffers)
    if any(not loaded(e).isdisjoint(buffers) for e in expressions(s)):
        return []
    inside = inside.union(let.name for let in lets)
    if isinstance(s, (For, Let)):
        inside = inside | {s.var if isinstance(s, For) else s.name}
    conditions = [c for c in (read_when(c, buffers, contents, inside) for c in children(s)) if c is not None]
    common = [c for c in conditions[0] if all(any(same(c, d) for d in others) for others in conditions[1:])]
    if isinstance(s, If) and s.otherwise is None:
        common += [c for c in conjuncts(s.condition) if not loaded(c) and not depends(c, inside)]
    return common


def read_if(s: Stmt, buffers: tuple[str, ...], counts: Callable[[Expr], bool], contents: Contents) -> bool:
    """Whether a statement reads some buffers only under a condition or a mask. The box of a masked read includes the
    inactive lanes, so that extents are constant.
    """
    if contents.loaded(s).isdisjoint(buffers):
        return False
    _, s = contents.leading_to(s, buffers)
    if isinstance(s, If) and _compares(s.condition, counts) or _is_masked(s):
        return True
    chosen = any(_chosen(e, buffers, counts, contents) for e in expressions(s))
    return chosen or any(read_if(c, buffers, counts, contents) for c in children(s))


def _is_masked(s: Stmt) -> bool:
    """Whether the statement is a masked store, or lets of data around masked stores."""
    while isinstance(s, Let) and s.value.dtype is not INDEX:
        s = s.body
    stores = s.stmts if isinstance(s, Block) else (s,)
    return any(isinstance(c, Store) and c.mask is not None for c in stores)


def _chosen(e: Expr, buffers: tuple[str, ...], counts: Callable[[Expr], bool], contents: Contents) -> bool:
    """Whether the buffers are read in a branch of a select."""
    return not loaded(e).isdisjoint(buffers) and any(
        _compares(n.args[0], counts) and any(not loaded(branch).isdisjoint(buffers) for branch in n.args[1:])
        for n in contents.selects(e)
    )


def _compares(condition: Expr, counts: Callable[[Expr], bool]) -> bool:
    return any(isinstance(n, Op) and n.op in COMPARISON and counts(n) for n in walk(condition))
