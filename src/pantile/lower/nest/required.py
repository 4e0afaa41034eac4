"""The region of every stage that a whole call requires, in terms of extents and params. The check of a call examines
it.

No tile computes more than this, unless the stage can be computed anywhere. A call may require nothing of a stage: an
image may be too small for `select(x < w - 3, g[x + 3], 0)` to read g at all, for example. The elements that g reads
need not exist then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...analysis.interval import EVERYTHING, Interval
from ...analysis.overcompute import computable_anywhere
from ...analysis.regions import FAR, Box, Rules, expressions, required
from ...dataclass import cached_property
from ...expr.build import expr, maximum, minimum, select
from ...expr.linear import Facts, linear, simplify
from ...expr.nodes import COMPARISON, Const, Expr, Op, Var, const
from ...expr.types import INDEX
from ...expr.visit import Key, has_floats, key, loaded, names, same, walk
from ...graph.nodes import Definition, Graph, InputInfo, Stage

_BEHIND = 1 << 31  # larger than all coordinates
_FEW_PLACES = 64
_LARGEST = 64  # limit of the search for the smallest extent with which an output has a pixel


def output_box(graph: Graph, stage: Stage) -> Box:
    """The box of a whole output, for which the caller provides room."""
    return tuple(Interval(const(0, INDEX), n - 1) for n in graph.output[stage.name].shape)


def few_places(side: Interval, facts: Facts) -> Interval | None:
    """All positions of a side that floats choose from, such as the tiles of an image, or None if these are not
    certainly few."""
    low, high = _ends(side)
    if not has_floats(low) and not has_floats(high):
        return None
    first, last = facts.lower(low), facts.upper(high)
    if first is None or last is None or not first <= last < first + _FEW_PLACES:
        return None
    return Interval(const(first, INDEX), const(last, INDEX))


class Required:
    """The required regions of a pipeline, computed on demand. `facts` has the facts that hold in all calls.

    `checked` is the graph before stages were inlined, as the check of a call sees it. Inlining combines the conditions
    of several stages. If these are too many to be kept, the regions of `checked` are smaller.
    """

    def __init__(self, graph: Graph, checked: Graph, facts: Facts) -> None:
        self.graph = graph
        self.checked = checked
        self.outputs = outputs = {name: output_box(graph, graph.stage[name]) for name in graph.output}
        self.facts = facts.copy()
        self._steps: list[Expr] = []  # extents - 1 of an output's dims, which are not negative
        for side in _never_empty(outputs):
            low, high = _ends(side)
            self._steps.append(high - low)
            self._learn(self._steps[-1])
        self._limited: set[str] = set()
        self._few: set[tuple[Key, Key]] = set()  # sides of boxes with few, but at least one, possible positions
        self._is_loose = False

    def of(self, stage: Stage) -> Box:
        """The region of a stage that may be computed. It is EVERYTHING if it is unlimited or nothing reads the
        stage."""
        return self._boxes.get(stage.name, (EVERYTHING,) * stage.ndim)

    def is_computable(self, stage: Stage, k: int) -> bool:
        """Whether the stage can be computed at any position along dim k and its positions are never far apart. They
        would be far apart if they were required by stages of which nothing is required.
        """
        return self._is_computable_dim(stage, k) and not self.is_limited(stage)

    def _is_computable_dim(self, stage: Stage, k: int) -> bool:
        if (stage.name, k) not in self._computable_dims:
            return False
        return stage.name not in self._reading_pixels or not self.is_conditional

    def is_limited(self, stage: Stage) -> bool:
        """Whether some calls require less of the stage, possibly nothing, than the ends of its readers' footprints
        suggest."""
        return self.is_conditional and bool(self._boxes) and stage.name in self._limited

    @cached_property
    def _computable_dims(self) -> set[tuple[str, int]]:
        return computable_anywhere(self.graph, self.facts)

    @cached_property
    def _reading_pixels(self) -> set[str]:
        """The stages that depend on inputs that may be empty.

        If such a stage is required anywhere, the check of a call ensures that there are pixels; otherwise, even a
        clamped index would be out of bounds.
        """
        sources = {i.name for i in self.graph.inputs if not self._has_pixels(i)}
        for stage in self.graph.stages:
            if any(not loaded(e).isdisjoint(sources) for d in stage.definitions for e in expressions(d)):
                sources.update((stage.name, *stage.buffers))
        return sources

    def _has_pixels(self, source: InputInfo) -> bool:
        """Whether an input certainly has pixels."""
        return all(self.facts.ge(source.size(axis), const(1, INDEX)) for axis in range(source.ndim))

    @property
    def is_loose(self) -> bool:
        """Whether the readers of a stage may seem to require more of it than they do."""
        return self.is_conditional and bool(self._boxes) and self._is_loose

    @cached_property
    def _boxes(self) -> dict[str, Box]:
        boxes = required(self.graph, self.outputs, {}, self._rules)
        if not self._is_loose:
            return boxes
        checked = required(self.checked, self.outputs, {}, self._rules)
        return {
            name: tuple(map(Interval.meet, box, checked[name])) if name in checked else box
            for name, box in boxes.items()
        }

    @property
    def _rules(self) -> Rules:
        return Rules(self.missing, self._computed, self._note_few, self._limit, self._loosen)

    def _loosen(self) -> None:
        self._is_loose = True

    def _note_few(self, box: Iterable[Interval]) -> None:
        extents = {_keys(side) for of_output in self.outputs.values() for side in of_output}  # these may be 0
        self._few |= {_keys(side) for side in box if side.bounded and few_places(side, self.facts)} - extents

    def _limit(self, buffer: str) -> None:
        """Note that a call may require nothing of a stage. The stage is then not computable anywhere."""
        if buffer in self.graph.producer:
            self._limited.add(self.graph.producer[buffer].name)

    def _simple(self, side: Interval) -> Interval:
        return Interval(*(simplify(e, self.facts) for e in _ends(side))) if side.bounded else side

    def _computed(self, stage: Stage, box: Box) -> Box:
        # Its readers, which are visited before it, may limit it. No more of an output is computed than fits the
        # caller's room.
        free = stage.name not in self._limited and stage.name not in self.outputs
        sides = [
            EVERYTHING if free and self._is_computable_dim(stage, k) else self._simple(s) for k, s in enumerate(box)
        ]
        self._note_few(sides)
        if any(map(_is_far, sides)):
            self._limited.add(stage.name)
            sides = list(map(_near, sides))
        if stage.name in self._limited:
            read = (b for d in stage.definitions for e in expressions(d) for b in loaded(e))
            self._limited.update(self.graph.producer[b].name for b in read if b in self.graph.producer)
        return tuple(sides)

    @property
    def running(self) -> Rules:
        """Rules for updates that count: updates that certainly never run require nothing."""
        return Rules(self._certainly_missing)

    def _certainly_missing(self, ranges: Iterable[Interval]) -> int:
        missing = self.missing(ranges)
        return missing if isinstance(missing, int) else 0

    def missing(self, ranges: Iterable[Interval]) -> Expr | int:
        """1 if one of the ranges is empty, else 0."""
        short: Expr = const(0, INDEX)
        for r in ranges:
            if not self._has_values(r):
                low, high = _ends(r)
                short = short + maximum(low - high, const(0, INDEX))
        short = simplify(short, self.facts)
        return int(short.value > 0) if isinstance(short, Const) else minimum(short, const(1, INDEX))

    def _has_values(self, r: Interval) -> bool:
        """Whether a range is certainly not empty."""
        if not r.bounded:
            return True
        low, high = _ends(r)
        return self.is_positive(high - low + 1) or _keys(r) in self._few

    def is_positive(self, extent: Expr) -> bool:
        """Whether an extent is certainly positive."""
        steps = extent - 1
        return self.facts.ge(steps, const(0, INDEX)) or any(self.facts.ge(steps, step) for step in self._steps)

    def _learn(self, steps: Expr) -> None:
        """Derive a bound of the only extent in an expression that is not negative: h - 3 >= 0 implies h >= 3."""
        extents = names(steps)
        if len(extents) != 1:
            return
        (name,) = extents
        low, high = self.facts.bounds.get(name, (None, None))
        least = 0 if low is None else low
        while least < _LARGEST and self._below(steps, name, least):
            least += 1
        self.facts.bounds[name] = (least, high)

    def _below(self, steps: Expr, name: str, most: int) -> bool:
        """Whether an expression is negative for all values of an extent up to `most`."""
        upper = Facts({**self.facts.bounds, name: (0, most)}).upper(steps)
        return upper is not None and upper < 0

    @cached_property
    def is_conditional(self) -> bool:
        """Whether there may be a stage of which nothing is required, because an output may be empty or there are
        conditions."""
        if not all(self._has_values(side) for box in self.outputs.values() for side in box):
            return True
        return any(self._reads_if(d) for s in self.graph.stages for d in s.definitions)

    def _reads_if(self, d: Definition) -> bool:
        """Whether a definition reads a stage under a condition on its coordinates."""
        if not any(self._reads_stage(e) for e in expressions(d)):
            return False
        if d.condition is not None or not all(isinstance(r.extent, Const) and r.extent.value > 0 for r in d.domain):
            return True
        return any(
            isinstance(e, Op)
            and e.op == "select"
            and any(map(self._reads_stage, e.args[1:]))
            and _is_of_coordinates(e.args[0])
            for e in walk(*expressions(d))
        )

    def _reads_stage(self, e: Expr) -> bool:
        return not self.graph.producer.keys().isdisjoint(loaded(e))


def _is_of_coordinates(condition: Expr) -> bool:
    """Whether the condition compares coordinates and thus limits what is read."""
    compared = (c for c in walk(condition) if isinstance(c, Op) and c.op in COMPARISON and c.args[0].dtype is INDEX)
    return any(isinstance(atom, Var) for c in compared for side in c.args for atom, _ in linear(side).terms.values())


def _is_far(side: Interval) -> bool:
    """Whether an end contains a far coordinate, which marks that something may be missing."""
    return side.bounded and any(
        isinstance(e, Const) and e.dtype.is_int and abs(int(e.value)) >= FAR for e in walk(side.low, side.high)
    )


def _near(side: Interval) -> Interval:
    """Return the side with a start that is not before 0 if the whole side may be missing. Otherwise reads at x and at
    2*x of elements that are far away would span a large box.
    """
    if not side.bounded:
        return side
    form = linear(side.low)
    far = [term for term in form.terms.values() if abs(term[1]) >= FAR]
    if len(far) == 1 and abs(far[0][1]) == FAR:  # a single count of `Required.missing`, not a sum of several
        (missing,) = (atom * (times // FAR) + (form.constant + FAR // 2) // FAR for atom, times in far)
        nearest, is_there = simplify(side.low - missing * FAR), missing < 1
    else:
        nearest, is_there = expr(side.low, INDEX), side.low < const(_BEHIND, INDEX)
    low = nearest if same(nearest, const(0, INDEX)) else select(is_there, nearest, const(0, INDEX))
    return Interval(low, maximum(side.high, low - 1))


def _never_empty(outputs: Mapping[str, Box]) -> Iterator[Interval]:
    """Yield the sides of outputs that are not empty whenever code runs. Code does not run if all outputs are empty."""
    first, *others = outputs.values()
    ends = [_ends(side) for side in first]
    for box in others:
        if len(box) != len(first) or not all(map(same, sum(ends, ()), sum(map(_ends, box), ()))):
            return
    yield from first


def _ends(r: Interval) -> tuple[Expr, Expr]:
    return expr(r.low, INDEX), expr(r.high, INDEX)


def _keys(r: Interval) -> tuple[Key, Key]:
    low, high = _ends(r)
    return key(low), key(high)
