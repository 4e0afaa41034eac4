"""`Func`: a function of pixel coordinates, defined by one pure equation and any number of updates.

    f[y, x] = ...                 pure: for every point; the indices are distinct Vars
    f[y, x] += ...                update: at every point again
    f[y, r[0]] = f[y, r[0] - 1]   scan: the loops of r run in order, y is independent
    hist[img[r[0], r[1]]] += 1    scatter: where to write depends on data
    f[y, x] = (a, b)              several values, read as f[y, x][0] and f[y, x][1]
    f[y, x] = pt.pixel(r, g, b)   channels, a dim of their own, read as f[y, x, 0]

Every mistake is refused on the line that makes it, so that a Func is always well formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..dataclass import dataclass
from ..errors import DefinitionWarning, Location, UserError, UserTypeError, here, shown, warn
from ..expr.build import cast, expr
from ..expr.nodes import Expr, ExprLike, Read
from ..expr.types import DType, promote
from ..graph.names import identifier
from .indexing import NotAValue, Pixel, Source, channel_coordinate, check_channel, check_rank, indices_of
from .rdom import RDom
from .scan import Mentions, scan
from .variables import Var, current_suffix, known_at_call, words

Bounds = tuple[tuple[Expr, Expr], ...]
Domain = Sequence[tuple[ExprLike, ExprLike] | ExprLike]


@dataclass(frozen=True, eq=False)
class Equation:
    """An equation f[indices] = values, evaluated once for every point of `domain`."""

    indices: tuple[Expr, ...]
    values: tuple[Expr, ...]
    domain: RDom | None
    mentions: Mentions
    where: Location


class Values(NotAValue, tuple[Expr, ...]):
    """The values of a multi-valued Func at one point: pick one with [k], or unpack them."""

    def as_expr(self) -> NoReturn:
        name = self[0].source.name if isinstance(self[0], Read) else "f"
        raise UserError(f"Func {name!r} has {len(self)} values at a point; pick one, like {name}[...][0]")


class Func(Source):
    """A function of pixel coordinates; see this module's first lines for how to define it.

    `domain=((min, extent), ...)` states where it is defined; boundary conditions such as `pt.edge(f)` need to know. An
    extent alone begins at 0: `domain=img.shape`.
    """

    kind = "Func"

    def __init__(self, name: str | None = None, *, domain: Domain | None = None) -> None:
        self.named = name is not None  # otherwise the pipeline may add a number to make the name unique
        self.name = ("f" if name is None else identifier(name, "a Func")) + current_suffix()
        self.where = here()
        self.domain = None if domain is None else _domain(self, domain)
        self.helper = False  # made by a boundary condition
        self.channels: int | None = None  # of a Func that is defined by pixels
        self.equations: list[Equation] = []
        self.used_by: Func | None = None  # the first other Func that reads this one

    @classmethod
    def made(cls, name: str) -> Func:
        """A Func that Pantile makes on the user's behalf."""
        func = cls(name)
        func.named, func.helper = False, True
        return func

    @property
    def defined(self) -> bool:
        return bool(self.equations)

    @property
    def dims(self) -> tuple[str, ...]:
        """The coordinates of the pure equation, in storage order."""
        return tuple(v.name for v in self.equations[0].indices if isinstance(v, Var))

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """One type per value."""
        return tuple(v.dtype for v in self.equations[0].values)

    @property
    def arity(self) -> int:
        """The number of values at each point."""
        return len(self.equations[0].values) if self.defined else 1

    def __getitem__(self, key: Any) -> Any:
        """The value (an `Expr`) or `Values` at a point."""
        if not self.defined:
            raise UserError(
                f"{self} is read or updated before it is defined; define it for every point first, "
                f"like {self.name}[y, x] = 0 (a pure definition cannot read itself)"
            )
        indices = indices_of(self, key)
        check_rank(self, indices, self.dims)
        if self.channels is not None:
            check_channel(f"{self} (defined at {self.where})", self.channels, indices[-1])
        reads = [Read(t, 1, self, indices, k) for k, t in enumerate(self.dtypes)]
        return reads[0] if len(reads) == 1 else Values(reads)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.used_by is not None:
            raise UserError(
                f"{self} gets another definition after {self.used_by} (defined at {self.used_by.where}) has read it; "
                f"move all definitions of {self.name} before that line"
            )
        indices = indices_of(self, key)
        if isinstance(value, Pixel):
            indices, value = _channels(self, indices, value)
        values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        equation = _update(self, indices, values) if self.defined else _pure(self, indices, values)
        if not self.defined:
            self.where = equation.where
        else:
            _warn_if_forgotten(self, equation)
        self.equations.append(equation)
        for read in equation.mentions.all_reads():
            if isinstance(read.source, Func) and read.source is not self and read.source.used_by is None:
                read.source.used_by = self

    def __repr__(self) -> str:
        return f"<Func {self.name}[{', '.join(self.dims)}]>" if self.defined else f"<Func {self.name}, undefined>"


def funcs(spelled: str, *, domain: Domain | None = None) -> tuple[Func, ...]:
    """Several Funcs at once, of one domain if that is stated: `low, high = pt.funcs("low high", domain=img.shape)`."""
    return tuple(Func(name, domain=domain) for name in words(spelled, "a Func"))


def _domain(func: Func, domain: Any) -> Bounds:
    if not (isinstance(domain, (tuple, list)) and all(len(b) == 2 for b in domain if isinstance(b, (tuple, list)))):
        raise UserError(f"the domain of {func} is {shown(domain)}; write one (min, extent), or extent, per dimension")
    bounds = [b if isinstance(b, (tuple, list)) else (0, b) for b in domain]
    what = f"of the domain of {func}"
    return tuple((known_at_call(b[0], f"the min {what}"), known_at_call(b[1], f"the extent {what}")) for b in bounds)


# ---- the pure equation


def _channels(func: Func, indices: tuple[Expr, ...], pixel: Pixel) -> tuple[tuple[Expr, ...], Expr]:
    """The indices, followed by a coordinate that numbers channels, and the value there."""
    if func.defined:
        left = ", ".join(func.dims)
        raise UserError(
            f"{func} is defined already (at {func.where}), and pt.pixel(...) is a first definition; "
            f"update it channel by channel, like {func.name}[{left}] = ..."
        )
    dims = _pure_dims(func, indices)
    _check_free(func, scan(pixel), dims)
    channel = channel_coordinate(dims)
    func.channels = len(pixel)
    return (*indices, channel), pixel.at(channel)


def _pure(func: Func, indices: tuple[Expr, ...], given: tuple[Any, ...]) -> Equation:
    dims = _pure_dims(func, indices)
    values = tuple(expr(v) for v in given)
    if not values:
        raise UserError(f"{func} is given no value; write {func.name}[...] = expression")
    mentions = scan(values)
    if mentions.rvars:
        rvar = next(iter(mentions.rvars.values()))
        raise UserError(
            f"the first definition of {func} uses the reduction variable {rvar}; write pt.sum(..., over={rvar.domain}) "
            f"(or another reduction), or define {func.name} first and update it over {rvar.domain}"
        )
    _check_free(func, mentions, dims)
    if func.domain is not None and len(func.domain) != len(dims):
        raise UserError(f"{func} states a domain of {len(func.domain)} dimensions but is defined with {len(dims)}")
    return Equation(indices, values, None, mentions, here())


def _pure_dims(func: Func, indices: tuple[Expr, ...]) -> tuple[str, ...]:
    dims = []
    for index in indices:
        if not isinstance(index, Var):
            raise UserError(
                f"the first definition of {func} must hold for every point, but {index} is not a coordinate; "
                f"write {func.name}[y, x] = ... first and then update {func.name}[{', '.join(map(str, indices))}]"
            )
        if index.name in dims:
            raise UserError(f"the first definition of {func} has {index.name} twice on its left; use distinct Vars")
        dims.append(index.name)
    return tuple(dims)


def _check_free(func: Func, mentions: Mentions, dims: tuple[str, ...]) -> None:
    for name in mentions.coordinates:
        if name not in dims:
            left = ", ".join(dims)
            raise UserError(
                f"{func} uses {name}, which is not a coordinate on the left, {func.name}[{left}]; "
                f"add it there, or reduce over it with an RDom"
            )


# ---- updates


def _update(func: Func, indices: tuple[Expr, ...], given: tuple[Any, ...]) -> Equation:
    check_rank(func, indices, func.dims)
    values = _coerce(func, given)
    pure = _update_dims(func, indices)
    mentions = scan((*indices, *values))
    domain = _update_domain(mentions)
    if domain is not None:
        mentions = scan((*indices, *values, *domain.predicates))
        mentions.add_bounds(domain)
        _check_one_domain(func, domain, mentions)
    _check_free(func, mentions, pure)
    _check_self_reads(func, mentions, pure)
    return Equation(indices, values, domain, mentions, here())


def _warn_if_forgotten(func: Func, update: Equation) -> None:
    """Warn about an update of every point that does not read the previous values."""
    everywhere = len(_update_dims(func, update.indices)) == func.ndim and update.domain is None
    if everywhere and not any(read.source is func for read in update.mentions.all_reads()):
        at = f"{func.name}[{', '.join(func.dims)}]"
        warn(
            f"this definition of {func} ignores the previous one (at {func.equations[-1].where}), which nothing reads; "
            f"read it, as in {at} = {at} + ..., or give one of them a Func of its own",
            DefinitionWarning,
        )


def _coerce(func: Func, given: tuple[Any, ...]) -> tuple[Expr, ...]:
    if len(given) != func.arity:
        raise UserError(
            f"{func} has {func.arity} value(s) at each point (from {func.where}) but this update gives "
            f"{len(given)}; write a tuple with one expression per value"
        )
    return tuple(_to_type(func, value, t) for value, t in zip(given, func.dtypes, strict=True))


def _to_type(func: Func, value: ExprLike, to: DType) -> Expr:
    """The new value cast to the Func's type, if that is the common type of the two."""
    e = expr(value, to)
    if e.dtype != to and promote(e.dtype, to) != to:
        raise UserTypeError(
            f"{func} holds {to} (from {func.where}) but this update computes {e.dtype}; "
            f"write pt.cast('{to}', ...) around it, or define {func.name} with {e.dtype}"
        )
    return cast(to, e)


def _update_dims(func: Func, indices: tuple[Expr, ...]) -> tuple[str, ...]:
    """The free coordinates of an update: each is the whole index at its own place. Other indices may use them."""
    own = zip(indices, func.dims, strict=True)
    pure = tuple(dim for index, dim in own if isinstance(index, Var) and index.name == dim)
    for index in indices:
        for name in scan((index,)).coordinates:
            if name not in pure:
                raise UserError(
                    f"this update of {func} uses {name} in the index {index}; on the left of an update, a coordinate "
                    f"stands alone in its place, as in {func.name}[{', '.join(func.dims)}]; elsewhere use an RDom"
                )
    return pure


def _update_domain(mentions: Mentions) -> RDom | None:
    """The reduction domain of an update, with the conditions of all its variants that occur."""
    domains = [v.domain for v in mentions.rvars.values()]
    if not domains:
        return None
    predicates = {id(p): p for d in domains for p in d.predicates}
    return domains[0].restricted(tuple(predicates.values()))


def _check_one_domain(func: Func, domain: RDom, mentions: Mentions) -> None:
    for other in (v.domain for v in mentions.rvars.values()):
        if other.loops is not domain.loops:
            raise UserError(
                f"this update of {func} uses two RDoms, {domain} = {domain!r} and {other} = {other!r}; "
                "write one RDom with all the loops"
            )


def _check_self_reads(func: Func, mentions: Mentions, pure: tuple[str, ...]) -> None:
    for read in mentions.reduced_reads.values():
        if read.source is func:
            raise UserError(
                f"this update of {func} reads {func.name} inside a reduction; write it as an update over the RDom, "
                f"like {func.name}[...] += ..., or give the result a Func of its own"
            )
    for read in mentions.reads.values():
        if read.source is func:
            _check_self_read(func, read, pure)


def _check_self_read(func: Func, read: Read, pure: tuple[str, ...]) -> None:
    for index, dim in zip(read.indices, func.dims, strict=True):
        if dim in pure and not (isinstance(index, Var) and index.name == dim):
            raise UserError(
                f"this update of {func} runs over {dim} in no particular order, so it cannot read {read}; "
                f"to run in order, replace {dim} by a variable of an RDom"
            )
