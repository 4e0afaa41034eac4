"""Products in flight: warpgroups begin the products of one iteration before those of the previous one have finished.

before:  for k in 0..n:                          after:  for k in 0..n:
             let c.value = wgmma(..., c)                     let c.value = wgmma(..., c)
             c = c.value                                     c = c.value
             let c.value = wgmma_wait(c, 0)                  ...                             other work
             c = c.value                                     let c.value = wgmma_wait(c, 1)
             ...                                             c = c.value
                                                         let c.value = wgmma_wait(c, 0)
                                                         c = c.value

This keeps the tensor cores busy. The operands of the products of an iteration must not change until the next iteration
has waited. Nothing else in the loop may use the sums, since they are not complete there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...dataclass import dataclass
from ...expr.nodes import Instruction
from ...expr.visit import loaded, names
from ...ir.instructions import Effect, spec_of, wait_matrices
from ...ir.nodes import Block, For, Let, Realize, Stmt, Store
from ...ir.visit import block, children, expressions, rebuild, walk
from ...target.kinds import Kind

_NOTHING = Block(())
_OF_THREADS = (Kind.THREAD, Kind.WARP, Kind.LANE)


@dataclass(frozen=True)
class ProductsInFlight:
    """The body of a loop in two parts; other work is done between them."""

    begin: Stmt
    waits: Stmt  # for all products
    count: int  # number of products that an iteration begins

    def wait_for_others(self) -> Stmt:
        """The waits that leave the products of this iteration in flight."""
        return _leaving(self.waits, self.count)


def products_in_flight(body: Stmt, variable: str) -> ProductsInFlight | None:
    """The two parts of the body of a loop over a variable, if it begins products that may still be in flight when it
    ends; otherwise None."""
    begins = [s for s in walk(body) if _effect(s) is Effect.READ_MATRICES]
    sums = {i.buffer for s in begins for i in walk(s) if isinstance(i, Store)}
    if not begins or any(_accesses(s, sums) for s in _others(body)) or _has_loops_around(body):
        return None
    begin, waits = _parts(body)
    return None if _depends(waits, variable) else ProductsInFlight(begin, waits, len(begins))


def _effect(s: Stmt) -> Effect:
    """The effect of an instruction whose result a let names."""
    return spec_of(s.value.name).effect if isinstance(s, Let) and isinstance(s.value, Instruction) else Effect.NONE


def _is_of_product(s: Stmt) -> bool:
    return _effect(s) in (Effect.READ_MATRICES, Effect.WAIT_MATRICES)


def _others(s: Stmt) -> Iterator[Stmt]:
    """Yield the statements that do not belong to products."""
    if not _is_of_product(s):
        yield s
        for c in children(s):
            yield from _others(c)


def _uses(s: Stmt, buffer: str) -> bool:
    return any(_accesses(i, {buffer}) for i in walk(s))


def _accesses(s: Stmt, buffers: set[str]) -> bool:
    stores = isinstance(s, Store) and s.buffer in buffers
    return stores or any(not buffers.isdisjoint(loaded(e)) for e in expressions(s))


def _has_loops_around(s: Stmt) -> bool:
    """Whether products begin in a loop of which one thread executes several iterations."""
    if isinstance(s, For) and s.kind not in _OF_THREADS and any(_is_of_product(i) for i in walk(s)):
        return True
    return any(map(_has_loops_around, children(s)))


def _parts(s: Stmt) -> tuple[Stmt, Stmt]:
    """Split a statement into the statement without its waits, and the waits alone."""
    if _effect(s) is Effect.WAIT_MATRICES:
        return _NOTHING, s
    if not any(_effect(i) is Effect.WAIT_MATRICES for i in walk(s)):
        return s, _NOTHING
    begins, waits = zip(*map(_parts, children(s)), strict=True)
    if isinstance(s, Block):
        return block(*begins), block(*waits)
    is_unused = isinstance(s, Let) and not _depends(waits[0], s.name)
    if is_unused or isinstance(s, Realize) and not _uses(waits[0], s.buffer):
        return rebuild(s, expressions(s), begins), waits[0]
    return rebuild(s, expressions(s), begins), rebuild(s, expressions(s), waits)


def _depends(s: Stmt, name: str) -> bool:
    return any(name in names(e) for i in walk(s) for e in expressions(i))


def _leaving(s: Stmt, products: int) -> Stmt:
    """Return waits that leave this number of products in flight."""
    inside = tuple([_leaving(c, products) for c in children(s)])
    if isinstance(s, Let) and isinstance(s.value, Instruction) and _is_of_product(s):
        return Let(s.name, wait_matrices(s.value.args[0], products), *inside)
    return rebuild(s, expressions(s), inside)
