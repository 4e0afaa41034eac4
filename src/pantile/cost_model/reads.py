"""The reads and writes of one definition as linear forms: the box of each source that a part of its loops touches.

Loads with the same slopes are one group: f[y - 1, x], f[y, x] and f[y + 1, x] together touch two rows more than one
does.

Reads may form a star rather than a box: then they touch only a part of the box around them.

    f[y - 1, x] + f[y + 1, x] + f[y, x]; g[z - 1, y, x] + g[z + 1, y, x] + g[z, y - 1, x] + g[z, y + 1, x]

The reads of f fill a box of 3 rows. Of the 3 by 3 rows around the reads of g, one iteration reads 4; a tile of 16 by 16
rows reads nearly all of 18 by 18.

Gathers touch as many cache lines as data, or floats of coordinates, decide:

    table[img[y, x], c]                     a line for each pixel, whatever the number of channels
    table[img[y, x], c] + table[img[y, x] + 1, c]       the same line, if these are adjacent
    img[floor(a*x + b*y), floor(c*x + d*y)] neighbours read neighbours: a line for each pixel at the border of a tile
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import ceil, prod

from ..dataclass import cached_property, dataclass, memoized, value
from ..expr.linear import linear
from ..expr.nodes import Cast, Expr, Load, Number, Op
from ..expr.types import DType
from ..expr.visit import Key, key, loaded, names, walk, walk_loads, walk_values
from ..graph.nodes import Definition, Stage
from .branches import Branches, Conditions
from .linear_forms import NOTHING, LinearForm, Slopes, index_form

Extents = Mapping[str, int]
Box = tuple[int, ...]
Place = tuple[float, ...]
NEAR = 8  # the largest stride, in elements, of an axis that stays in a cache line, such as that of channels


@value(eq=False)
class MemoryAccess:
    """One load or store: its buffer, the stage or input that this belongs to, and its indices."""

    buffer: str
    source: str
    forms: tuple[LinearForm, ...]
    slopes: tuple[Slopes, ...]  # of the forms
    dtype: DType
    alike: int  # equal for accesses of one definition that have source, slopes and type in common
    family: tuple[object, ...]  # equal for accesses that differ only by constants
    variables: frozenset[str]  # of the loops on which it depends
    decided: frozenset[str]  # those of the variables on which it depends through data that are read
    origins: tuple[frozenset[Key], ...]  # for each index, the loads that it depends on
    is_smooth: bool  # all values that are loaded for its indices are the same everywhere
    rounded: bool  # some of its indices are rounded
    share: Callable[[frozenset[str]], float] | None  # of the points, if loops over these variables are unrolled

    def part(self, written: frozenset[str]) -> float:
        """The fraction of the points at which the access happens, if the loops over these variables are unrolled."""
        return 1.0 if self.share is None else self.share(written & self.variables)


@value(eq=False)
class _AccessGroup:
    """Accesses of one source with the same slopes: the hull of their forms along each dim."""

    source: str
    forms: tuple[LinearForm, ...]

    def box(self, extents: Extents, whole: Box) -> Box:
        return tuple([int(min(n, f.places(extents))) for f, n in zip(self.forms, whole, strict=True)])


class Reads:
    """The accesses of one definition, with some stages inlined."""

    def __init__(
        self,
        stage: Stage,
        definition: Definition,
        source: Callable[[str], str],
        extents: Extents,
        scalars: Mapping[str, Number],
        conditions: Conditions,
    ) -> None:
        self.stage, self.definition = stage, definition
        self.loops, self._extents = frozenset(extents), extents
        self._source, self._scalars, self._conditions = source, scalars, conditions
        self._alike: dict[tuple[object, ...], int] = {}

    @memoized
    def form(self, index: Expr) -> LinearForm:
        """The linear form of an index."""
        return index_form(index, self.loops, self._scalars)

    @cached_property
    def loads(self) -> tuple[MemoryAccess, ...]:
        """The distinct loads."""
        expressions = self.definition.expressions
        decided = any(isinstance(e, Op) and e.op == "select" and not loaded(e.args[0]) for e in walk(*expressions))
        branches = Branches(expressions if decided else [], self._extents, self._conditions)
        different: dict[tuple[object, ...], Load] = {}
        where: dict[tuple[object, ...], int] = {}
        for e in self.definition.loads:
            place = (e.buffer, *map(key, e.indices))
            different.setdefault(place, e)
            where[place] = where.get(place, 0) | branches.where(e)
        shares = {at: None if at == branches.whole else partial(branches.share, at) for at in where.values()}
        return tuple([self._access(e.buffer, e.dtype, e.indices, shares[where[at]]) for at, e in different.items()])

    def _access(
        self,
        buffer: str,
        dtype: DType,
        indices: tuple[Expr, ...],
        share: Callable[[frozenset[str]], float] | None = None,
    ) -> MemoryAccess:
        source = self._source(buffer)
        family = (source, *(frozenset((k, c) for k, (_, c) in linear(i).terms.items()) for i in indices))
        variables = self.loops & frozenset().union(*map(names, indices))
        forms = tuple(map(self.form, indices))
        decided = frozenset[str]().union(*(f.decided for f in forms if f.decided))
        slopes = tuple([f.slopes for f in forms])
        alike = self._alike.setdefault((source, slopes, dtype), len(self._alike))
        rounded = any(f.rounded for f in forms)
        data = [list(walk_loads(i)) if loaded(i) else [] for i in indices]
        origins = tuple([frozenset(map(key, loads)) for loads in data])
        smooth = not any(names(i) for loads in data for e in loads for i in e.indices)
        return MemoryAccess(
            buffer, source, forms, slopes, dtype, alike, family, variables, decided, origins, smooth, rounded, share
        )

    @cached_property
    def stores(self) -> tuple[MemoryAccess, ...]:
        """The stores, one per value."""
        pairs = zip(self.stage.buffers, self.stage.dtypes, strict=True)
        return tuple(self._access(b, t, self.definition.indices) for b, t in pairs)

    @cached_property
    def _groups(self) -> tuple[_AccessGroup, ...]:
        return _access_groups((*self.loads, *self.stores[:1]))

    @memoized
    def along(self, source: str, axis: int) -> frozenset[LinearForm]:
        """The distinct indices at which a source is read along an axis."""
        return frozenset(a.forms[axis] for a in self.loads if a.source == source)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The stages and inputs that are read or written."""
        return tuple(dict.fromkeys(a.source for a in (*self.loads, *self.stores)))

    @cached_property
    def is_scan(self) -> bool:
        """Whether the definition reads its own stage at other indices than it writes."""
        written = self.stores[0].forms
        return any(a.source == self.stage.name and a.forms != written for a in self.loads)

    @cached_property
    def is_place_read(self) -> bool:
        """Whether the indices that it writes to are data as they are, without a conversion from floats."""
        made_of = walk_values(*self.definition.indices)
        return not any(isinstance(e, Cast) and e.value.dtype.is_float for e in made_of)

    @cached_property
    def scattered(self) -> dict[str, list[MemoryAccess]]:
        """The accesses whose indices depend on data or floats, by source. They touch few elements of the box around
        them."""
        accesses: dict[str, list[MemoryAccess]] = {}
        for a in (*self.loads, *self.stores):
            if any(f.decided is not None for f in a.forms):
                accesses.setdefault(a.source, []).append(a)
        return accesses

    @cached_property
    def stars(self) -> dict[str, Star]:
        """The sources of which the definition reads only a part of the box around its reads."""
        read: dict[str, list[tuple[LinearForm, ...]]] = {}
        for a in self.loads:
            read.setdefault(a.source, []).append(a.forms)
        stars = {source: star(forms) for source, forms in read.items() if source != self.stage.name}
        return {source: s for source, s in stars.items() if s is not None}

    @cached_property
    def _groups_by_source(self) -> dict[str, list[_AccessGroup]]:
        """The groups of each source that is read with several different slopes."""
        groups_of: dict[str, list[_AccessGroup]] = {}
        for g in self._groups:
            groups_of.setdefault(g.source, []).append(g)
        return {source: groups for source, groups in groups_of.items() if len(groups) > 1}

    def hull(self, source: str, extents: Extents, whole: Mapping[str, Box]) -> Box | None:
        """The box around what all groups read of a source, with loops in the middle of their ranges; None if there is
        only one group."""
        groups = self._groups_by_source.get(source)
        if groups is None:
            return None
        sizes = whole[source]
        ends = [[_ends(g.forms[k], n, extents, self._extents) for g in groups] for k, n in enumerate(sizes)]
        return tuple(
            [
                max(1, min(n, ceil(max(b for _, b in of) - min(a for a, _ in of) - NOTHING)))
                for of, n in zip(ends, sizes, strict=True)
            ]
        )

    def boxes(self, extents: Extents, whole: Mapping[str, Box]) -> dict[str, Box]:
        """The box of each source, of the stage itself too, that is touched while loops run over these extents."""
        boxes: dict[str, Box] = {}
        for g in self._groups:
            box = g.box(extents, whole[g.source])
            boxes[g.source] = box if g.source not in boxes else tuple(map(max, boxes[g.source], box))
        return boxes


def _ends(form: LinearForm, whole: int, extents: Extents, ranges: Extents) -> tuple[float, float]:
    """The first and the last index of a form, with outer loops in the middle of their ranges."""
    count = min(whole, form.places(extents))
    middle = (form.low + form.high) / 2 + sum(s * (ranges.get(v, 1) - 1) / 2 for v, s in form.slopes)
    return (0.0, float(whole)) if count >= whole else (middle - count / 2, middle + count / 2)


def _access_groups(accesses: tuple[MemoryAccess, ...]) -> tuple[_AccessGroup, ...]:
    groups: dict[tuple[object, ...], list[MemoryAccess]] = {}
    for a in accesses:
        groups.setdefault((a.source, a.slopes), []).append(a)
    hulls = {key: tuple(map(_hull, zip(*(a.forms for a in of), strict=True))) for key, of in groups.items()}
    return tuple(_AccessGroup(of[0].source, hulls[key]) for key, of in groups.items())


def _hull(forms: tuple[LinearForm, ...]) -> LinearForm:
    decided = next((f.decided for f in forms if f.decided is not None), None)
    low, high, rounded = min(f.low for f in forms), max(f.high for f in forms), max(f.rounded for f in forms)
    return LinearForm(forms[0].slopes, low, high, decided, rounded)


@dataclass(frozen=True, eq=False)
class Star:
    """Reads of one source with the same slopes: their forms along all of its axes except the last one, and the places
    where they begin."""

    forms: tuple[LinearForm, ...]
    places: frozenset[Place]

    def filled(self, extents: Mapping[str, int]) -> float:
        """The fraction of the box around all reads that is read while loops run over these extents."""
        sizes = [1 + ceil(sum(abs(s) * (extents.get(v, 1) - 1) for v, s in f.slopes) - NOTHING) for f in self.forms]
        ends = [(min(along), max(along)) for along in zip(*self.places, strict=True)]
        around: float = prod(b - a + n for (a, b), n in zip(ends, sizes, strict=True))
        return _union(self.places, sizes) / around


def star(accesses: Sequence[tuple[LinearForm, ...]]) -> Star | None:
    """The star of all reads of a source; None if they fill a box, or are not known."""
    slopes = {tuple(f.slopes for f in forms) for forms in accesses}
    if len(slopes) > 1 or any(f.decided is not None or f.rounded or f.low != f.high for a in accesses for f in a):
        return None
    places = frozenset(tuple(f.low for f in forms[:-1]) for forms in accesses)
    if len(places) == prod(len(set(along)) for along in zip(*places, strict=True)):
        return None
    return Star(accesses[0][:-1], places)


def _union(places: frozenset[Place], sizes: Sequence[int]) -> float:
    """The size of the union of boxes of one size that begin at these places."""
    if not sizes:
        return 1.0
    first, others = sizes[0], sizes[1:]
    cuts = sorted({end for p in places for end in (p[0], p[0] + first)})
    known: dict[frozenset[Place], float] = {}
    total = 0.0
    for a, b in pairwise(cuts):
        inside = frozenset(p[1:] for p in places if p[0] <= a < p[0] + first)
        if inside not in known:
            known[inside] = _union(inside, others) if inside else 0.0
        total += (b - a) * known[inside]
    return total


@dataclass(frozen=True)
class GatheredAccesses:
    """The gathered accesses of one source: the number of places that are in lines of their own, the loops by which
    these places differ, the loops that move within a line, and the bytes of an element. `is_smooth`: no indices depend
    on data."""

    places: int
    variables: frozenset[str]
    near: frozenset[str]
    element: int
    is_smooth: bool

    def bytes(self, extents: Mapping[str, int], line: int) -> float:
        """The most bytes that are touched while loops run over these extents."""
        count = self.places * prod(extents.get(v, 1) for v in self.variables)
        each = self.element * prod(extents.get(v, 1) for v in self.near)
        apart = count * max(line, each)
        if not self.is_smooth:
            return apart
        border = self.places * line * sum(extents.get(v, 1) for v in self.variables)
        return min(apart, count * each + border)


def scattered(accesses: Sequence[MemoryAccess], strides: Sequence[int]) -> GatheredAccesses:
    """Summarize the accesses of a source with these strides along each axis."""
    far = [axis for axis, stride in enumerate(strides) if stride > NEAR]
    places = {tuple(_place(a, axis, axis in far) for axis in range(len(strides))) for a in accesses}
    variables = frozenset(v for a in accesses for v in a.variables)
    moved = {v for a in accesses for v in a.variables if v in a.decided or any(a.forms[k].slope(v) for k in far)}
    smooth = all(a.is_smooth for a in accesses)
    return GatheredAccesses(len(places), variables & moved, variables - moved, accesses[0].dtype.bytes, smooth)


def _place(a: MemoryAccess, axis: int, is_far: bool) -> object:
    """The place of an index; along an axis whose neighbours are in the same line, only the loads that it is computed
    from."""
    return (a.family[1 + axis], a.forms[axis].low) if is_far else a.origins[axis]
