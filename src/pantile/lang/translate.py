"""Translate Funcs to stages: reads become loads by buffer name, and reductions become separate stages.

    box[y, x] = sum(up[y + r[0]], over=r) / 9      box_sum[y, x] = 0
                                                   box_sum[y, x] = box_sum[y, x] + up[y + r.0]      over r.0
                                                   box[y, x] = box_sum[y, x]/9

A reduction that is the whole value of a pure definition becomes that stage itself, without a helper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..dataclass import dataclass
from ..errors import InternalError, Location
from ..expr.build import logical_and
from ..expr.nodes import Expr, Load, Op, Read, Reduce
from ..expr.nodes import Var as PlainVar
from ..expr.types import INT32
from ..expr.visit import substitute, transform, variables
from ..graph.names import Names, derived, first_free
from ..graph.nodes import Definition, ReductionDim, Stage
from ..graph.reductions import Reduction, result_types
from ..graph.widen import IndexWidener
from .func import Equation, Func
from .inputs import Extent, Input
from .rdom import DomainLoops, RDom, RVar
from .variables import Param, Var


@dataclass(frozen=True)
class _DefinitionSite:
    """The definition that is being translated, after which its reductions are named."""

    name: str
    dims: tuple[str, ...]
    where: Location


@dataclass(frozen=True, eq=False)
class _Helper:
    """The stage of a reduction, and the indices at which the reduction's own definition reads it."""

    stage: Stage
    indices: tuple[Expr, ...]
    origin: Reduce  # kept alive: helpers are found by the identity of its parts


class Translator:
    """Turns `funcs` (producers first) into `stages`."""

    def __init__(
        self,
        names: Names,
        buffers: dict[int, tuple[str, ...]],
        params: Iterable[str],
        extents: Iterable[str],
        funcs: Iterable[Func],
    ) -> None:
        self.stages: list[Stage] = []
        self._names = names
        self._buffers = buffers  # id of an Input or Func -> its buffers' names
        self._widened = IndexWidener(frozenset(params))
        self._scalars = frozenset((*params, *extents))
        self._loops = _loop_names(funcs)
        self._helpers: dict[tuple[str, int, int], _Helper] = {}
        self._memo: dict[int, Expr] = {}  # of expressions that the Funcs keep alive
        self._site: _DefinitionSite | None = None
        self._rules: dict[type, Callable[..., Expr]] = {
            Read: self._load,
            Reduce: self._load_helper,
            RVar: self._rvar,
            Param: _plain,
            Extent: _plain,
            Var: _plain,
        }

    def extent(self, e: Expr) -> Expr:
        """Translate an extent of the language to one of the graph."""
        return self._widened.index(self._expr(e))

    def _expr(self, e: Expr) -> Expr:
        """Translate the reads of an expression to loads. Coordinates are int32 until its stage is complete."""
        return transform(e, self._change, self._memo)

    def add(self, func: Func, name: str) -> None:
        """Append the stage of `func`, after the helpers it needs."""
        pure, *updates = func.equations
        self._site = _DefinitionSite(name, func.dims, pure.where)
        whole = _whole_reduction(pure)
        if whole is None:
            stage = Stage(name, func.dims, func.dtypes, self._definition(pure), (), pure.where)
        else:
            stage = self._reduction(whole).stage(name, func.dims, pure.where)
        later = tuple(self._definition(u) for u in updates)
        domain = None if func.domain is None else tuple((self._expr(a), self._expr(b)) for a, b in func.domain)
        self._complete(replace(stage, updates=stage.updates + later, domain=domain, helper=func.helper))

    def _complete(self, stage: Stage) -> None:
        self.stages.append(self._widened.stage(stage))

    def _definition(self, equation: Equation) -> Definition:
        indices = tuple(self._expr(i) for i in equation.indices)
        values = tuple(self._expr(v) for v in equation.values)
        if equation.domain is None:
            return Definition(indices, values, (), None, equation.where)
        domain, condition = self._domain(equation.domain), self._condition(equation.domain)
        return Definition(indices, values, domain, condition, equation.where)

    # ---- expressions

    def _change(self, e: Expr) -> Expr | None:
        rule = self._rules.get(type(e))
        return None if rule is None else rule(e)

    def _load(self, e: Read) -> Expr:
        source: Func | Input = e.source
        return Load(e.dtype, 1, self._buffers[id(source)][e.which], e.indices)

    def _rvar(self, e: RVar) -> Expr:
        return _coordinate(self._loops[id(e.domain.loops)][e.axis])

    # ---- reductions

    def _domain(self, domain: RDom) -> tuple[ReductionDim, ...]:
        bounds = zip(self._loops[id(domain.loops)], domain.loops.bounds, strict=True)
        return tuple(ReductionDim(n, self._expr(low), self._expr(extent)) for n, (low, extent) in bounds)

    def _condition(self, domain: RDom) -> Expr | None:
        if not domain.predicates:
            return None
        return logical_and(*(self._expr(p) for p in domain.predicates))

    def _reduction(self, e: Reduce) -> Reduction:
        return Reduction(e.kind, self._expr(e.value), self._domain(e.domain), self._condition(e.domain))

    def _load_helper(self, e: Reduce) -> Expr:
        """A read of the stage that computes `e`, whose value has been translated already."""
        key = (e.kind, id(e.value), id(e.domain))
        helper = self._helpers.get(key)
        if helper is None:
            helper = self._helpers[key] = self._make_helper(e)
            self._complete(helper.stage)
        return Load(e.dtype, 1, helper.stage.buffers[e.which], helper.indices)

    @property
    def _current_site(self) -> _DefinitionSite:
        if self._site is None:
            raise InternalError("a reduction is translated outside of a definition")
        return self._site

    def _make_helper(self, e: Reduce) -> _Helper:
        reduction = Reduction(e.kind, e.value, self._domain(e.domain), self._condition(e.domain))
        free = self._free(reduction)
        dims = _dims_for(free, self._scalars)
        renamed = {old: _coordinate(new) for old, new in zip(free, dims, strict=True) if old != new}
        condition = None if reduction.condition is None else substitute(reduction.condition, renamed)
        reduction = replace(reduction, value=substitute(e.value, renamed), condition=condition)
        site = self._current_site
        name = self._names.fresh(derived(site.name, e.kind))
        return _Helper(reduction.stage(name, dims, site.where), tuple(_coordinate(n) for n in free), e)

    def _free(self, reduction: Reduction) -> list[str]:
        """The coordinates that a reduction depends on: those of the definition around it in order, then others."""
        condition = () if reduction.condition is None else (reduction.condition,)
        own = {d.name for d in reduction.domain}
        free = [n for n in variables(reduction.value, *condition) if n not in own and n not in self._scalars]
        place = {d: k for k, d in enumerate(self._current_site.dims)}
        return sorted(free, key=lambda n: place.get(n, len(place)))


def _loop_names(funcs: Iterable[Func]) -> dict[int, tuple[str, ...]]:
    """The loop names of every reduction domain, by its id; a number distinguishes equal names in one equation."""
    together: dict[int, set[int]] = {}  # domains that occur in one equation
    domains: dict[int, DomainLoops] = {}
    for equation in (e for func in funcs for e in func.equations):
        own = () if equation.domain is None else (equation.domain.loops,)
        met = {id(loops): loops for loops in (*own, *equation.mentions.loops.values())}
        domains.update(met)
        for domain in met:
            together.setdefault(domain, set()).update(met)
    names: dict[int, str] = {}
    for domain, loops in domains.items():
        names[domain] = first_free(loops.name, {names[other] for other in together[domain] if other in names})
    return {domain: tuple(f"{names[domain]}.{n}" for n in loops.names) for domain, loops in domains.items()}


def _coordinate(name: str) -> Expr:
    return PlainVar(INT32, 1, name)


def _plain(e: PlainVar) -> Expr:
    return PlainVar(e.dtype, 1, e.name)


def _dims_for(free: list[str], taken: frozenset[str]) -> tuple[str, ...]:
    """The names of dims; "r.0" of an enclosing reduction becomes the dim "r_0", or another if that is a param."""
    names: list[str] = []
    for n in free:
        names.append(first_free(n.replace(".", "_"), {*taken, *names}))
    return tuple(names)


def _whole_reduction(equation: Equation) -> Reduce | None:
    """The reduction whose values are exactly the equation's, if there is one."""
    bare = [v.args[0] if isinstance(v, Op) and v.op == "within" else v for v in equation.values]
    reduces = [v for v in bare if isinstance(v, Reduce)]
    if len(reduces) != len(bare):
        return None
    first = reduces[0]
    yields = len(result_types(first.kind, first.value.dtype, len(first.domain)))
    matching = [
        e
        for k, e in enumerate(reduces)
        if e.kind == first.kind and e.value is first.value and e.domain is first.domain and e.which == k
    ]
    return first if len(matching) == len(bare) == yields else None
