"""The stages of a sum over halved rows (`halve_rows`): pixels, weights, products, and the sum of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce
from itertools import product

from ..analysis.windows import ShiftedTerm
from ..dataclass import cached_property, dataclass
from ..expr.build import binary, logical_and, minimum, select
from ..expr.nodes import Const, Expr, Load, const, coordinate
from ..expr.types import INDEX
from ..expr.visit import names, substitute
from ..graph.names import first_free
from ..graph.nodes import Definition, ReductionDim, Stage
from .change import RewriteContext, extent, low

_LEFT, _RIGHT, _BOTH = range(3)  # of pairs of rows: the first weights, the second, their sum


@dataclass(frozen=True, eq=False)
class RowWindow:
    """A sum of pixel * weight over loops, one of which moves from row to row, and the others along other dims."""

    stage: Stage
    rows: ReductionDim
    pixel: Expr  # the pixel, from which the loops were eliminated
    moved: Mapping[str, tuple[ShiftedTerm, ReductionDim]]  # dim -> the loop that moves along it
    dim: str  # the dim that counts rows
    weight: Expr

    @property
    def others(self) -> list[ReductionDim]:
        """The loops other than the one over rows."""
        return [r for _, r in self.moved.values() if r is not self.rows]


@dataclass(frozen=True, eq=False)
class HalvedWindow:
    """A window whose rows are halved a number of times."""

    window: RowWindow
    halvings: int
    context: RewriteContext

    def stages(self) -> tuple[Stage, ...]:
        """The stages of pixels, of weights and of products, and the original stage as a sum of these."""
        rows, weights = self._rows(), self._weights()
        planes = self._planes(rows, weights)
        return rows, weights, planes, self._sum(planes)

    @property
    def _size(self) -> int:
        """The number of rows of a group."""
        return 1 << self.halvings

    @cached_property
    def _names(self) -> dict[str, str]:
        """The dims of new stages that count planes, groups of rows and rows of weights, and those for the other
        loops."""
        stage, wanted = self.window.stage, ["plane", "group", "row", *(r.name for r in self.window.others)]
        taken = {*stage.dims, *(r.name for r in stage.updates[0].domain), *self.context.scalars}
        new: dict[str, str] = {}
        for name in wanted:
            new[name] = first_free(name.replace(".", "_"), taken)
            taken.add(new[name])
        return new

    @cached_property
    def _digits(self) -> list[Expr]:
        """The digits of a plane, one for each halving, that of pairs of rows first."""
        plane = coordinate(self._names["plane"])
        return [_digit(plane, 3, self.halvings - 1 - k) for k in range(self.halvings)]

    def _stage(self, kind: str, dims: tuple[str, ...], value: Expr) -> Stage:
        where = self.window.stage.where
        pure = Definition(tuple(map(coordinate, dims)), (value,), (), None, where)
        return Stage(self.context.fresh(self.window.stage.name, kind), dims, (value.dtype,), pure, (), where)

    def _in_groups(self, dims: tuple[str, ...]) -> tuple[str, ...]:
        """The dims of a stage of planes: the plane, and the given dims with a group in the place of the row."""
        return self._names["plane"], *(self._names["group"] if d == self.window.dim else d for d in dims)

    def _rows(self) -> Stage:
        """The stage of pixels: the rows of a group are paired once per halving, as a digit of the plane says for the
        rows 2*n, 2*n + 1 and 2*n + 2 of the step before."""
        w = self.window
        first = coordinate(self._names["group"]) * const(self._size, INDEX) + const(low(w.rows), INDEX)
        rows = [substitute(w.pixel, {w.dim: first + const(n, INDEX)}) for n in range(2 * self._size - 1)]
        for digit in self._digits:
            rows = [_pair_rows(digit, *rows[n : n + 3]) for n in range(0, len(rows) - 2, 2)]
        dims = tuple(d for d in w.stage.dims if d in names(w.pixel))
        return self._stage("rows", self._in_groups(dims), rows[0])

    def _weights(self) -> Stage:
        """The stage of weights: sums of the rows of a group that the digits of the plane select."""
        w, names_of = self.window, self._names
        first = coordinate(names_of["row"]) * const(self._size, INDEX)
        rows = [self._weight(n, first + const(n, INDEX)) for n in range(self._size)]
        others = [d for d in w.stage.dims if d in names(w.weight)]
        columns = [names_of[r.name] for r in w.others if r.name in names(w.weight)]
        total = reduce(partial(binary, "add"), rows)
        return self._stage("weights", (names_of["plane"], names_of["row"], *others, *columns), total)

    def _weight(self, n: int, row: Expr) -> Expr:
        """The weight in the n-th row of a group; zero for planes that do not select it, and beyond the last row."""
        w, last = self.window, const(extent(self.window.rows) - 1, INDEX)
        is_for = [binary("or", _is(d, n >> k & 1), _is(d, _BOTH)) for k, d in enumerate(self._digits)]
        places: dict[str, Expr] = {r.name: coordinate(self._names[r.name]) for r in w.others}
        places[w.rows.name] = minimum(row, last) + const(low(w.rows), INDEX)
        return select(logical_and(*is_for, row <= last), substitute(w.weight, places), const(0, w.weight.dtype))

    def _planes(self, rows: Stage, weights: Stage) -> Stage:
        """The stage of sums of products."""
        w, names_of, t = self.window, self._names, self.window.stage.dtypes[0]
        planes = self._stage("planes", self._in_groups(w.stage.dims), const(0, t))
        loops = {names_of[r.name]: coordinate(r.name) for r in w.others}
        loops[names_of["row"]] = coordinate(w.rows.name)
        places = {d: binary("add", m.base, coordinate(r.name)) for d, (m, r) in w.moved.items()}
        places[names_of["group"]] = coordinate(names_of["group"]) + coordinate(w.rows.name)
        value = binary("mul", _read(rows, places), _read(weights, loops))
        few = replace(w.rows, min=const(0, INDEX), extent=const(-(-extent(w.rows) // self._size), INDEX))
        domain = tuple(few if r is w.rows else r for r in w.stage.updates[0].domain)
        update = replace(planes.pure, values=(binary("add", _read(planes, {}), value),), domain=domain)
        return replace(planes, updates=(update,))

    def _sum(self, planes: Stage) -> Stage:
        """The original stage as a sum of planes: for each pair with a row, the plane of both rows and that of the
        row."""
        w, names_of, y = self.window, self._names, coordinate(self.window.dim)
        own = [_digit(y, 2, k) for k in range(self.halvings)]
        (start,) = w.stage.pure.values
        terms: list[Expr] = [] if isinstance(start, Const) and start.value == 0 else [start]
        for digits in product(*([digit, const(_BOTH, INDEX)] for digit in own)):
            plane = reduce(lambda number, digit: number * const(3, INDEX) + digit, digits)
            places = {names_of["plane"]: plane, names_of["group"]: y // const(self._size, INDEX)}
            terms.append(_read(planes, places))
        total = reduce(partial(binary, "add"), terms)
        return replace(w.stage, pure=replace(w.stage.pure, values=(total,)), updates=())


def _pair_rows(digit: Expr, before: Expr, middle: Expr, after: Expr) -> Expr:
    right = select(_is(digit, _RIGHT), binary("sub", after, middle), middle)
    return select(_is(digit, _LEFT), binary("sub", before, middle), right)


def _read(stage: Stage, places: Mapping[str, Expr]) -> Load:
    """A load of a stage at its own coordinates, except for some dims."""
    return Load(stage.dtypes[0], 1, stage.name, tuple(places.get(d, coordinate(d)) for d in stage.dims))


def _digit(number: Expr, base: int, k: int) -> Expr:
    """The k-th digit of a number, counted from the last."""
    return number // const(base**k, INDEX) % const(base, INDEX)


def _is(digit: Expr, value: int) -> Expr:
    return binary("eq", digit, const(value, INDEX))
