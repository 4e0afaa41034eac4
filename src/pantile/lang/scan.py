"""The free coordinates, reads, and scalars of an equation, collected by one walk that every check uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ..dataclass import dataclass
from ..expr.nodes import Expr, Read, Reduce
from ..expr.visit import children
from .rdom import DomainLoops, RDom, RVar
from .variables import Scalar, Var


@dataclass
class Mentions:
    """The free variables and the reads of some expressions."""

    coordinates: dict[str, Var] = field(default_factory=dict)
    rvars: dict[int, RVar] = field(default_factory=dict)  # not bound by a reduction around them; by id
    reads: dict[int, Read] = field(default_factory=dict)  # outside of reductions; by id
    reduced_reads: dict[int, Read] = field(default_factory=dict)  # inside of reductions; by id
    scalars: dict[int, Scalar] = field(default_factory=dict)  # by id
    loops: dict[int, DomainLoops] = field(default_factory=dict)  # of every reduction; by id

    def merge_reduction(self, domain: RDom, inner: Mentions) -> None:
        """Add what the body of a reduction over `domain` mentions."""
        self.coordinates.update(inner.coordinates)
        self.rvars.update({k: v for k, v in inner.rvars.items() if v.domain.loops is not domain.loops})
        self.reduced_reads.update({**inner.reads, **inner.reduced_reads})
        self.scalars.update(inner.scalars)
        self.add_bounds(domain)
        self.loops.update(inner.loops)

    def add_bounds(self, domain: RDom) -> None:
        """Add the scalars that the bounds of `domain` mention."""
        self.loops[id(domain.loops)] = domain.loops
        for low, extent in domain.loops.bounds:
            self.scalars.update(scan((low, extent)).scalars)

    def all_reads(self) -> Iterable[Read]:
        """All reads, inside and outside of reductions."""
        return (*self.reads.values(), *self.reduced_reads.values())


def scan(roots: Iterable[Expr]) -> Mentions:
    """What `roots` mention. A reduction binds the coordinates of its own domain."""
    mentions = Mentions()
    seen: set[int] = set()
    bodies: dict[tuple[int, int], Reduce] = {}  # the values of one argmin share a body
    stack = list(roots)
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if isinstance(e, Reduce):
            bodies[id(e.value), id(e.domain)] = e
        else:
            _note(mentions, e)
            stack.extend(children(e))
    for e in bodies.values():
        mentions.merge_reduction(e.domain, scan((e.value, *e.domain.predicates)))
    return mentions


def _note(mentions: Mentions, e: Expr) -> None:
    if isinstance(e, Var):
        mentions.coordinates[e.name] = e
    elif isinstance(e, RVar):
        mentions.rvars[id(e)] = e
    elif isinstance(e, Read):
        mentions.reads[id(e)] = e
    elif isinstance(e, Scalar):
        mentions.scalars[id(e)] = e
