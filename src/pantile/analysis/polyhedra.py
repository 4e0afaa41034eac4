"""The polyhedral model of a pipeline: each definition is a statement, with instances, writes and reads as isl
relations.

    quantized[h, w] = f(img[h, w])                     quantized[h, w] : 0 <= h < 6 and 0 <= w < 6
    convolved[h, w] += quantized[h + kh, w + kw]       convolved.1[h, w, kh, kw] -> quantized[h + kh, w + kw] : ...

The model holds for given sizes. Affine indices (including quotients, remainders and clamps) are exact. Any other index,
such as one that depends on data, may be anywhere in its interval. Reads inside a `select` happen where its condition
can hold, as far as intervals can tell. Relations with many pieces or sides are overapproximated (`simplified`), so that
all queries take a bounded time. No element that is read is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import islpy as isl

from ..dataclass import dataclass
from ..expr.nodes import Cast, Const, Expr, Load, Op, Var
from ..expr.visit import key
from ..graph.nodes import Definition, Graph, Stage
from .interval import Interval, Scope, interval
from .regions import Box, definition_scope, each_load, expressions

Affine = isl.PwAff
# A relation of more than MOST_PIECES pieces is replaced by its hull, and one of more than MOST_TO_MERGE pieces is not
# even coalesced, since the time of queries is quadratic in the number of pieces.
MOST_PIECES, MOST_TO_MERGE = 6, 12
MOST_SIDES = 4  # per dim, of a piece


@dataclass(frozen=True, eq=False)
class AffineStatement:
    """One definition of a stage. `reads` has its reads by stage or input, except those of its own stage."""

    name: str  # the stage's name for a pure definition; name.1, name.2, ... for updates
    stage: str
    loops: tuple[str, ...]
    domain: isl.Set
    writes: isl.Map
    reads: Mapping[str, isl.Map]


def statements(graph: Graph, stage: Stage, box: Box, scope: Scope) -> tuple[AffineStatement, ...]:
    """The statements of a stage that is computed over a box; `scope` has the values of params and input extents."""
    builders = (_StatementBuilder(graph, stage, d, definition_scope(stage, d, box, scope)) for d in stage.definitions)
    return tuple(b.statement(stage.name + f".{k}" * (k > 0)) for k, b in enumerate(builders))


def simplified(relation: isl.Map) -> isl.Map:
    """Simplify a relation to a few pieces, and enlarge it if that is otherwise impossible."""
    if relation.n_basic_map() <= MOST_TO_MERGE:
        relation = relation.coalesce()
    many = any(_has_many_sides(piece) for piece in relation.get_basic_maps())
    if many or relation.n_basic_map() > MOST_PIECES:
        relation = isl.Map.from_basic_map(relation.simple_hull())
    return rectangular(relation) if many else relation


def _has_many_sides(piece: isl.BasicMap) -> bool:
    """Whether a piece has more constraints than a box whose ends may be quotients."""
    dims = piece.dim(isl.dim_type.in_) + piece.dim(isl.dim_type.out)
    return len(piece.get_constraints()) > MOST_SIDES * dims or piece.dim(isl.dim_type.div) > dims


def rectangular(relation: isl.Map) -> isl.Map:
    """Relate each point to the bounding box of all points that it is related to. Chains of reads that are not boxes,
    such as the diamonds of 5-point stencils, have shapes with more and more sides, but their storage is a box anyway
    (post-tiling-fusion §V-B)."""
    rank = relation.dim(isl.dim_type.out)
    boxes = isl.Map.from_domain(relation.domain().remove_divs())
    for k in range(rank):
        along = relation.project_out(isl.dim_type.out, k + 1, rank - k - 1).project_out(isl.dim_type.out, 0, k)
        along = along.reset_tuple_id(isl.dim_type.out)
        between = along.apply_range(_FROM).intersect(along.apply_range(_TO))
        boxes = boxes.flat_range_product(between.remove_divs().coalesce())
    return boxes.set_tuple_id(isl.dim_type.out, relation.get_tuple_id(isl.dim_type.out))


_FROM, _TO = isl.Map("{ [low] -> [v] : low <= v }"), isl.Map("{ [high] -> [v] : v <= high }")


def box_set(name: str, ranges: tuple[range, ...]) -> isl.Set:
    """All points of a box, as a set with this name."""
    space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(ranges)).set_tuple_name(isl.dim_type.set, name)
    points = isl.Set.universe(space)
    for k, r in enumerate(ranges):
        low, high = _number(r.start), _number(r.stop - 1)
        points = points.lower_bound_val(isl.dim_type.set, k, low).upper_bound_val(isl.dim_type.set, k, high)
    return points


class _StatementBuilder:
    """Builds the statement for one definition, whose loops range over intervals."""

    def __init__(self, graph: Graph, stage: Stage, definition: Definition, scope: Scope) -> None:
        self.graph, self.stage, self.definition, self.scope = graph, stage, definition, scope
        pure = (d for d, i in zip(stage.dims, definition.indices, strict=True) if isinstance(i, Var) and i.name == d)
        self.loops = (*pure, *(r.name for r in definition.domain))

    def statement(self, name: str) -> AffineStatement:
        self.space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(self.loops))
        self.space = self.space.set_tuple_name(isl.dim_type.set, name)
        self.local = isl.LocalSpace.from_space(self.space)
        self.known: dict[int, tuple[Expr, Affine | None]] = {}
        domain = self._domain(name)
        ranges = tuple(interval(i, self.scope) for i in self.definition.indices)
        writes = self._access(self.stage.name, self.definition.indices, ranges)
        reads = {n: m.intersect_domain(domain) for n, m in self._reads(name).items()}
        return AffineStatement(name, self.stage.name, self.loops, domain, writes.intersect_domain(domain), reads)

    # ---- instances

    def _domain(self, name: str) -> isl.Set:
        """The instances of the statement. They are a box, except that affine ends of reduction loops are exact."""
        points = self._box(name, self.scope)
        for r in self.definition.domain:
            low, extent = self._affine(r.min), self._affine(r.extent)
            if low is not None and extent is not None:
                loop = self._loop(r.name)
                points = points.intersect(low.le_set(loop)).intersect(loop.lt_set(low.add(extent)))
        return points

    def _box(self, name: str, scope: Scope) -> isl.Set:
        return box_set(name, tuple(_range(scope[n]) for n in self.loops))

    def _loop(self, name: str) -> Affine:
        k = self.loops.index(name)
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(self.local, isl.dim_type.set, k))

    # ---- reads

    def _reads(self, name: str) -> dict[str, isl.Map]:
        maps_of: dict[str, dict[object, isl.Map]] = {}

        def seen(load: Load, box: Box, scope: Scope) -> None:
            source = self.graph.producer[load.buffer].name if load.buffer in self.graph.producer else load.buffer
            if source == self.stage.name:
                return
            where = tuple((_range(scope[n]).start, _range(scope[n]).stop) for n in self.loops)
            access = (*(key(i) for i in load.indices), where)
            if access not in maps_of.setdefault(source, {}):
                relation = self._access(source, load.indices, box)
                maps_of[source][access] = relation.intersect_domain(self._box(name, scope))

        each_load(expressions(self.definition), self.scope, seen)
        return {source: _union(list(maps.values())) for source, maps in maps_of.items()}

    def _access(self, target: str, indices: tuple[Expr, ...], box: Box) -> isl.Map:
        """The relation from instances to elements of `target` at these indices."""
        relation = isl.Map.from_domain(isl.Set.universe(self.space))
        for index, limits in zip(indices, box, strict=True):
            place = self._affine(index)
            if place is not None:
                element = isl.Map.from_pw_aff(place)
            else:
                anywhere = _interval_set(limits)
                element = isl.Map.from_domain_and_range(isl.Set.universe(self.space), anywhere)
            relation = relation.flat_range_product(element)
        return relation.set_tuple_name(isl.dim_type.out, target)

    # ---- indices

    def _affine(self, e: Expr) -> Affine | None:
        """An integer expression as a piecewise affine function of the loops, if it is one."""
        if id(e) not in self.known:
            self.known[id(e)] = (e, self._new_affine(e))
        return self.known[id(e)][1]

    def _new_affine(self, e: Expr) -> Affine | None:
        if isinstance(e, Const):
            return self._constant(int(e.value)) if e.dtype.is_int else None
        if isinstance(e, Var):
            return self._loop(e.name) if e.name in self.loops else self._scalar(e)
        if isinstance(e, Cast):
            return self._affine(e.value) if _keeps_value(e, self.scope) else None
        if not isinstance(e, Op) or not e.dtype.is_int:
            return None
        if e.op == "within":
            return self._affine(e.args[0])
        if e.op not in _RULES:
            return None
        parts = [self._affine(a) for a in e.args]
        known = [p for p in parts if p is not None]
        return _RULES[e.op](*known) if len(known) == len(parts) else None

    def _scalar(self, e: Var) -> Affine | None:
        value = self.scope.get(e.name)
        is_known = e.dtype.is_int and value is not None and value.bounded and value.low == value.high
        return self._constant(int(value.low)) if is_known and value is not None else None

    def _constant(self, value: int) -> Affine:
        return isl.PwAff.from_aff(isl.Aff.zero_on_domain(self.local).set_constant_val(_number(value)))


def _number(value: int) -> isl.Val:
    """An integer of any size as an isl value. islpy itself accepts no int of more than 64 bits."""
    return isl.Val.read_from_str(isl.DEFAULT_CONTEXT, str(value))


def _range(r: Interval) -> range:
    return range(int(r.low), int(r.high) + 1) if r.bounded else range(-(1 << 31), 1 << 31)


def _interval_set(limits: Interval) -> isl.Set:
    """The set of numbers in an interval, whose ends may be unknown."""
    numbers = isl.Set.universe(isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, 1))
    if limits.low is not None:
        numbers = numbers.lower_bound_val(isl.dim_type.set, 0, _number(int(limits.low)))
    if limits.high is not None:
        numbers = numbers.upper_bound_val(isl.dim_type.set, 0, _number(int(limits.high)))
    return numbers


def _union(relations: list[isl.Map]) -> isl.Map:
    return simplified(reduce(lambda a, b: a.union(b), relations))


def _keeps_value(e: Cast, scope: Scope) -> bool:
    """Whether a cast keeps the value of an integer: the type holds all values that it can have."""
    if not (e.dtype.is_int and e.value.dtype.is_int):
        return False
    r = interval(e.value, scope)
    low, high = (
        (-(1 << (e.dtype.bits - 1)), (1 << (e.dtype.bits - 1)) - 1)
        if e.dtype.is_signed
        else (0, (1 << e.dtype.bits) - 1)
    )
    return bool(r.bounded and low <= r.low and r.high <= high)


def _scaled(a: Affine, b: Affine) -> Affine | None:
    """The product of two functions, if one of them is constant."""
    for value, other in ((_value(b), a), (_value(a), b)):
        if value is not None:
            return other.scale_val(_number(value))
    return None


def _quotient(a: Affine, b: Affine) -> Affine | None:
    value = _value(b)
    return a.scale_down_val(_number(value)).floor() if value is not None and value > 0 else None


def _remainder(a: Affine, b: Affine) -> Affine | None:
    value = _value(b)
    return a.mod_val(_number(value)) if value is not None and value > 0 else None


def _value(a: Affine) -> int | None:
    """The value of a constant function."""
    pieces = a.get_pieces()
    if len(pieces) != 1 or not pieces[0][1].is_cst():
        return None
    return int(pieces[0][1].get_constant_val().to_python())


_RULES: dict[str, Callable[..., Affine | None]] = {
    "add": lambda a, b: a.add(b),
    "sub": lambda a, b: a.sub(b),
    "neg": lambda a: a.neg(),
    "min": lambda a, b: a.min(b),
    "max": lambda a, b: a.max(b),
    "mul": _scaled,
    "floordiv": _quotient,
    "mod": _remainder,
}
