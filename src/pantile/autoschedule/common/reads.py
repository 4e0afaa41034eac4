"""The reads of a stage, prepared so that the boxes that they touch can be computed quickly for many tiles.

For a stencil that reads f[y - 2 .. y + 2, x], only the first and the last index along y determine the box. Conditions
that bound no coordinate of the indices do not matter at all, such as conditions on planes where f[y, x] is read, or on
whether y is even. An input that is mirrored or repeated beyond its edges counts as clamped: the few tiles that read
elsewhere say nothing about the others.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping

from ...analysis.interval import Evaluator, Scope, narrowed_by
from ...analysis.regions import Box, definition_scope
from ...dataclass import cached_property, dataclass
from ...expr.build import maximum, minimum
from ...expr.linear import linear
from ...expr.nodes import COMPARISON, Const, Expr, Load, Op, Var
from ...expr.visit import children, key, names
from ...graph.nodes import Definition, Stage
from .shared_intervals import IntervalEnds, SharedIntervals

# Conditions under which something is read, each with whether it holds.
Path = tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True, eq=False)
class DefinitionReads:
    """The reads of one definition."""

    stage: Stage
    definition: Definition
    inputs: Container[str] = ()

    def boxes(self, box: Box, scope: Scope, parts: Scope, shared: SharedIntervals | None = None) -> dict[str, Box]:
        """Return the boxes of other stages' buffers that are read to compute `box`, with reduction loops over `parts`.
        `shared` has the intervals that were found for other stages over the same tiles."""
        shared = SharedIntervals() if shared is None else shared
        if self._steps is not None and all(side.bounded for side in box):
            return {b: tuple([shared.moved(box[k], *by) for k, *by in of]) for b, of in self._steps.items()}
        everywhere = {**definition_scope(self.stage, self.definition, box, scope), **parts}
        evaluator = Evaluator(everywhere) if self._is_conditional else None
        boxes: dict[str, Box] = {}
        for path, reads in self._reads:
            inner = everywhere if evaluator is None else _within(evaluator, path).scope
            for buffer, ends in reads.items():
                touched = tuple([shared.index(e, inner) for e in ends])
                boxes[buffer] = shared.hull(boxes[buffer], touched) if buffer in boxes else touched
        return boxes

    @cached_property
    def like(self) -> Hashable:
        """A key that is equal for definitions that read alike."""
        return self.like_of(tuple(dict.fromkeys(b for _, reads in self._reads for b in reads)), by_name=True)

    def like_of(self, buffers: tuple[str, ...], by_name: bool = False) -> Hashable:
        """A key that is equal for definitions that read these buffers in the same way. Names matter only if
        `by_name`."""
        return tuple(
            [
                (at, *[(b if by_name else k, *[e.key for e in reads[b]]) for k, b in enumerate(buffers) if b in reads])
                for at, (_, reads) in zip(self._conditions, self._reads, strict=True)
            ]
        )

    @cached_property
    def _steps(self) -> dict[str, list[tuple[int, int, int]]] | None:
        """The offsets of reads, if all are at constant offsets from the point itself: for each dim of a buffer, the dim
        of the stage, the least offset and the greatest. None for other reads."""
        dims = {name: k for k, name in enumerate(self.stage.dims)}
        offsets: dict[str, list[tuple[int, int, int]]] = {}
        for path, reads in self._reads:
            for buffer, ends in reads.items():
                steps = [e.steps for e in ends]
                if path or not all(s is not None and s[0] in dims for s in steps):
                    return None
                offsets[buffer] = [(dims[s[0]], s[1], s[2]) for s in steps if s is not None]
        return offsets

    @cached_property
    def _is_conditional(self) -> bool:
        return any(path for path, _ in self._reads)

    @cached_property
    def _conditions(self) -> list[Hashable]:
        return [tuple((key(condition), holds) for condition, holds in path) for path, _ in self._reads]

    @cached_property
    def _reads(self) -> list[tuple[Path, dict[str, tuple[IntervalEnds, ...]]]]:
        d = self.definition
        loads = dict.fromkeys(_loads([] if d.condition is None else [d.condition], ()))
        always: Path = () if d.condition is None else ((d.condition, True),)
        loads |= dict.fromkeys(_loads([*d.indices, *d.values], always))
        by_path: dict[Path, dict[str, list[Load]]] = {}
        bounded = {c: narrowed_by(c) for path in dict.fromkeys(path for path, _ in loads) for c, _ in path}
        for path, load in loads:
            if load.buffer not in self.stage.buffers:
                by_path.setdefault(_deciding(path, load, bounded), {}).setdefault(load.buffer, []).append(load)
        return [(path, {b: self._ends(b, ls) for b, ls in of.items()}) for path, of in by_path.items()]

    def _ends(self, buffer: str, loads: list[Load]) -> tuple[IntervalEnds, ...]:
        """Per dim, the indices that may be the least or the greatest: at most two of those that differ by constants."""
        along = zip(*(load.indices for load in loads), strict=True)
        is_input = buffer in self.inputs
        return tuple(IntervalEnds(_extreme([_nearest(i) if is_input else i for i in indices])) for indices in along)


def _within(evaluator: Evaluator, path: Path) -> Evaluator:
    for condition, holds in path:
        evaluator = evaluator.within(condition, holds)
    return evaluator


def _loads(roots: Iterable[Expr], path: Path) -> Iterator[tuple[Path, Load]]:
    """Yield every load, with the conditions about coordinates under which it is read."""
    done: set[tuple[int, Path]] = set()
    pending = [(e, path) for e in roots]
    while pending:
        e, at = pending.pop()
        if isinstance(e, (Const, Var)) or (id(e), at) in done:
            continue
        done.add((id(e), at))
        if isinstance(e, Load):
            yield at, e
        if isinstance(e, Op) and e.op == "select" and _narrows(e.args[0]):
            condition, then, otherwise = e.args
            pending += [(condition, at), (then, (*at, (condition, True))), (otherwise, (*at, (condition, False)))]
        else:
            pending += [(c, at) for c in children(e)]


def _deciding(path: Path, load: Load, bounded: Mapping[Expr, frozenset[str]]) -> Path:
    """The conditions that may bound variables of the indices, or variables of other such conditions."""
    kept: set[int] = set()
    concerned = set().union(*map(names, load.indices)) if path else set[str]()
    while new := [k for k, (c, _) in enumerate(path) if k not in kept and not concerned.isdisjoint(bounded[c])]:
        kept.update(new)
        concerned.update(*(names(path[k][0]) for k in new))
    return path if len(kept) == len(path) else tuple([path[k] for k in sorted(kept)])


def _narrows(condition: Expr) -> bool:
    """Whether a condition may narrow the range of a coordinate."""
    if not isinstance(condition, Op):
        return False
    if condition.op in ("not", "and", "or"):
        return any(map(_narrows, condition.args))
    return condition.op in COMPARISON and condition.args[0].dtype.is_int


def _nearest(index: Expr) -> Expr:
    """Replace an index that a boundary condition changes outside of some limits by a clamp to these limits
    (`lang.boundary`)."""
    if not (isinstance(index, Op) and index.op == "within"):
        return index
    place, low, high = index.args
    return maximum(minimum(place.args[1], high), low) if isinstance(place, Op) and place.op == "select" else index


def _extreme(indices: list[Expr]) -> tuple[Expr, ...]:
    alike: dict[object, list[tuple[int, Expr]]] = {}
    for e in indices:
        form = linear(e)
        terms = frozenset((k, c) for k, (_, c) in form.terms.items())
        alike.setdefault(terms, []).append((form.constant, e))
    kept: dict[Expr, None] = {}
    for group in alike.values():
        constants = [c for c, _ in group]
        kept |= {group[constants.index(min(constants))][1]: None, group[constants.index(max(constants))][1]: None}
    return tuple(kept)
