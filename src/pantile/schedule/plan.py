"""A resolved schedule, which lowering reads. `resolve` makes it from directives and checks that it is legal.

Plan       = one StagePlan per stage that is not inlined
StagePlan  = where the stage is computed and stored, how its memory is laid out, and one Nest per definition
Nest       = the rewrites of the definition's loops (in order), and the resulting loops, outermost first
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
    """old becomes outer*factor + inner. `tail` is used if the factor does not divide the extent:
    shift   the last block starts earlier and recomputes (pure definitions only; like guard if the extent is too small)
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
    # The directive that gave it its kind, for messages.
    mark: Directive | None = field(default=None, compare=False, repr=False)


@hashed_once
@dataclass(frozen=True)
class Nest:
    """The loops of one definition."""

    rewrites: tuple[Split | Fuse, ...]
    loops: tuple[Loop, ...]
    atomic: bool = False  # threads may share loops whose iterations access the same elements
    threads: int | None = None  # threads per block; None: one per iteration of the thread loops
    persistent: bool = False  # whether as many blocks as a GPU holds loop over the iterations of the block loops
    tensor_core: tuple[str, ...] = ()  # the loops over rows, columns and terms that tensor cores compute


class Site(NamedTuple):
    """A place inside loop `loop` of definition `definition` (0: pure) of stage `stage`."""

    stage: str
    definition: int
    loop: str


@dataclass(frozen=True)
class StorageSplit:
    """A dim that is split in memory into outer*factor + inner, relative to the start of the buffer."""

    dim: str
    outer: str
    inner: str
    factor: int


@dataclass(frozen=True)
class HybridTile:
    """From entry `first` of a dim on, a warp's tile is in registers of its lanes. `lanes` has the number of lanes along
    each dim."""

    dim: str
    first: int
    lanes: Mapping[str, int]
    directive: Directive = field(compare=False, repr=False)


@dataclass(frozen=True)
class PrefetchPlan:
    """A prefetch: loop `loop` prefetches the elements of `buffer` that it reads `distance` iterations later."""

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
    storage: tuple[str, ...]  # dims in memory order, with split dims as their parts; the last one is contiguous
    memory: Memory = Memory.AUTO
    hybrid: HybridTile | None = None  # the part of its shared memory that is in registers instead
    folds: dict[str, int] = field(default_factory=dict)  # dim -> extent of its circular buffer, by fold_storage
    pads: dict[str, int] = field(default_factory=dict)  # dim in memory -> number of padding entries
    storage_splits: tuple[StorageSplit, ...] = ()  # in order: a later one may split a part
    nontemporal: bool = False
    ahead: int = 0  # number of iterations by which it is computed ahead at its loop
    prefetches: tuple[PrefetchPlan, ...] = ()
    cached: dict[str, CacheOperator] = field(default_factory=dict)  # stage or input -> how the stage's kernels load it
    specializations: tuple[Expr, ...] = ()
    # Further loops at which it is computed, in other definitions of the same stage, each time over the region read
    # there.
    also: tuple[Site, ...] = ()
    # compute_with: this stage's loops down to and including `with_loop` are those of stage `with_stage`.
    with_stage: str | None = None
    with_loop: str | None = None
    # Update -> the loop of the pure definition in which it runs, after that definition. The loops down to it are
    # shared.
    within: dict[int, str] = field(default_factory=dict)
    is_written_out: bool = False  # whether its update is fully unrolled, with nothing else computed in its loops

    @property
    def dim_order(self) -> tuple[str, ...]:
        """The stage's own dims in memory order. A split dim has the position of its last part."""
        stems: dict[str, str] = {}
        for s in self.storage_splits:
            stems[s.outer] = stems[s.inner] = stems.get(s.dim, s.dim)
        dims = [stems.get(name, name) for name in self.storage]
        return tuple(d for k, d in enumerate(dims) if d not in dims[k + 1 :])

    def splits_storage(self, dim: str) -> bool:
        """Whether a dim of the stage is split into two or more in memory."""
        return any(s.dim == dim for s in self.storage_splits)

    def is_computed_at(self, site: Site | None) -> bool:
        """Whether the stage is computed at a site."""
        return site == self.compute or site in self.also

    def is_stored_at(self, site: Site | None) -> bool:
        """Whether the stage's memory is allocated at a site. A stage that is computed at several sites is stored at
        each."""
        return site == self.store or site in self.also


@dataclass(frozen=True, eq=False)
class Plan:
    """The plans of all stages in the graph's order. Stages that are not in `stages` are inlined."""

    stages: dict[str, StagePlan]
    target: Target
    schedule: Schedule  # the schedule that the plan was made from, with directives for every stage
