"""A resolved schedule: what lowering reads. Made by `resolve` from directives, checked for legality there.

Plan       = one StagePlan per stage that is not inlined, and which stages are inlined
StagePlan  = where it is computed and stored, how its memory is laid out, one Nest per definition
Nest       = rewrites of the definition's loops (in order), and the loops that result, outermost first
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from ..dataclass import dataclass, hashed_once, value
from ..expr.nodes import Expr
from ..target.description import Target
from ..target.kinds import CacheOperator, Kind, Memory
from .directives import Directive
from .schedule import Schedule

ONCE = frozenset({"guard", "peel"})  # tails of splits that compute no point twice


@value()
class Split:
    """old becomes outer*factor + inner. tail, where factor does not divide the extent:
    shift   the last block starts earlier and recomputes (pure definitions only; as guard where that is too small)
    guard   each point once: a shorter last block, or a serial loop for the rest
    peel    each point once: whole blocks, and loops for the rest
    """

    old: str
    outer: str
    inner: str
    factor: int
    tail: str


@dataclass(frozen=True)
class Fuse:
    """outer and inner become one loop over their product."""

    outer: str
    inner: str
    fused: str


@value()
class Loop:
    """A loop by name and how it runs."""

    name: str
    kind: Kind = Kind.SERIAL
    # Loop partitioning: auto, never or always.
    partition: str = "auto"
    # What gave it its kind, for messages.
    mark: Directive | None = field(default=None, compare=False, repr=False)


@hashed_once
@dataclass(frozen=True)
class Nest:
    """The loops of one definition."""

    rewrites: tuple[Split | Fuse, ...]
    loops: tuple[Loop, ...]
    atomic: bool = False  # threads may share loops whose iterations meet at the same elements
    threads: int | None = None  # of each block; None: one for each iteration of the thread loops
    persistent: bool = False  # as many blocks as a GPU holds loop over the iterations of the block loops
    tensor_core: tuple[str, ...] = ()  # the loops over rows, columns and terms that tensor cores compute


class Site(NamedTuple):
    """A place inside loop `loop` of definition `definition` (0: pure) of stage `stage`."""

    stage: str
    definition: int
    loop: str


@dataclass(frozen=True)
class StorageSplit:
    """A dim that is split in memory into outer*factor + inner, counted from where the buffer begins."""

    dim: str
    outer: str
    inner: str
    factor: int


@dataclass(frozen=True)
class HybridTile:
    """From an entry of a dim on, a warp's tile is in registers of its lanes; so many share each dim."""

    dim: str
    first: int
    lanes: Mapping[str, int]
    directive: Directive = field(compare=False, repr=False)


@dataclass(frozen=True)
class PrefetchPlan:
    """A prefetch: while loop `loop` runs, fetch the elements of `buffer` that it reads `distance` iterations later."""

    buffer: str
    loop: str
    distance: int


@value(eq=False)
class StagePlan:
    """The plan of one stage that is not inlined."""

    name: str
    compute: Site | None  # None: at root
    store: Site | None  # None: at root; never inside `compute`
    nests: tuple[Nest, ...]  # one per definition
    storage: tuple[str, ...]  # dims in memory order, split ones as their parts; the last is contiguous
    memory: Memory = Memory.AUTO
    hybrid: HybridTile | None = None  # what of its shared memory is in registers instead
    folds: dict[str, int] = field(default_factory=dict)  # dim -> extent of its circular buffer, by fold_storage
    pads: dict[str, int] = field(default_factory=dict)  # dim in memory -> entries of padding
    storage_splits: tuple[StorageSplit, ...] = ()  # in order: a later one may split a part
    nontemporal: bool = False
    ahead: int = 0  # by how many iterations of the loop that it is computed at it is pipelined
    prefetches: tuple[PrefetchPlan, ...] = ()
    cached: dict[str, CacheOperator] = field(default_factory=dict)  # stage or input -> how its kernels load it
    specializations: tuple[Expr, ...] = ()
    # Loops of other definitions of the same stage that it is computed at, too, each time over what is read there.
    also: tuple[Site, ...] = ()
    # compute_with: this stage's loops down to and including `with_loop` are those of stage `with_stage`.
    with_stage: str | None = None
    with_loop: str | None = None
    # Update -> the loop of the pure definition that it runs in, after it: the loops down to there are shared.
    within: dict[int, str] = field(default_factory=dict)
    is_written_out: bool = False  # whether its update is fully unrolled, with nothing else computed in its loops

    @property
    def dim_order(self) -> tuple[str, ...]:
        """The stage's own dims in memory order; a split dim stands at the place of its last part."""
        stems: dict[str, str] = {}
        for s in self.storage_splits:
            stems[s.outer] = stems[s.inner] = stems.get(s.dim, s.dim)
        dims = [stems.get(name, name) for name in self.storage]
        return tuple(d for k, d in enumerate(dims) if d not in dims[k + 1 :])

    def splits_storage(self, dim: str) -> bool:
        """Whether a dim of the stage is two or more in memory."""
        return any(s.dim == dim for s in self.storage_splits)

    def is_computed_at(self, site: Site | None) -> bool:
        """Whether the stage is computed at a site."""
        return site == self.compute or site in self.also

    def is_stored_at(self, site: Site | None) -> bool:
        """Whether the stage's memory is allocated at a site; a stage computed at several sites is stored at each."""
        return site == self.store or site in self.also


@dataclass(frozen=True, eq=False)
class Plan:
    """The plans of all stages in the graph's order; stages not in `stages` are inlined."""

    stages: dict[str, StagePlan]
    target: Target
    schedule: Schedule  # what it was made from, with directives for every stage
