"""A stage while its directives are applied: its loop nests, and the directives about its placement and memory.

The directives themselves are kept, so that a later check can show them as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from ..dataclass import cached_property, dataclass
from ..errors import UserError
from ..expr.nodes import Expr
from ..graph.nodes import Graph, Stage
from ..target.description import GENERIC, Target
from ..target.kinds import Kind, Memory
from ..target.mma import COLUMNS, FIRST_WITH_MMA, TERMS
from ..target.wgmma import COLUMNS as COLUMNS_OF_WARPGROUPS
from . import nest as nests
from .condition import parse
from .directives import Directive, StageSchedule
from .nest import NestDraft, draft_nest
from .plan import Nest
from .refuse import did_you_mean, refuse


@dataclass
class StageDraft:
    """Everything that the directives of one stage specify."""

    graph: Graph
    stage: Stage
    nests: list[NestDraft]
    storage: list[str]
    compute: Directive | None = None  # compute_root, compute_at, compute_inline
    store: Directive | None = None  # store_root, store_at
    together: Directive | None = None  # compute_with another stage
    within: dict[int, Directive] = field(default_factory=dict)  # update -> compute_with the pure definition
    is_written_out: bool = False  # whether the update is written out, as part of the pure definition
    memory: Directive | None = None
    nontemporal: Directive | None = None
    ahead: Directive | None = None
    hybrid: Directive | None = None  # registers_from
    folds: dict[str, Directive] = field(default_factory=dict)
    pads: dict[str, Directive] = field(default_factory=dict)
    storage_splits: list[Directive] = field(default_factory=list)
    prefetches: list[Directive] = field(default_factory=list)
    cached: dict[str, Directive] = field(default_factory=dict)  # stage or input -> cache_loads
    conditions: list[Expr] = field(default_factory=list)
    specialized: Directive | None = None  # the last one that gave a condition
    current: int = 0  # the definition that directives about loops apply to

    @property
    def is_inline(self) -> bool:
        return self.compute is not None and self.compute.verb == "compute_inline"

    @property
    def is_output(self) -> bool:
        return self.stage.name in self.graph.output

    def no(self, d: Directive, why: str, remedy: str) -> UserError:
        return refuse(self.stage, d, why, remedy)

    @cached_property
    def finished(self) -> tuple[Nest, ...]:
        """The nests as lowering reads them, after all directives have been applied."""
        return tuple(n.finished() for n in self.nests)


class Drafts:
    """The drafts of one pipeline, each made only once: the candidates of a search schedule most stages in the same
    way."""

    def __init__(self, graph: Graph, strict: bool, target: Target = GENERIC) -> None:
        self.graph, self._strict, self._target = graph, strict, target
        self._known: dict[StageSchedule, StageDraft] = {}

    def of(self, schedule: Mapping[str, StageSchedule]) -> dict[str, StageDraft]:
        """The drafts of all stages of a schedule, by name."""
        return {s.name: self._draft(s, schedule[s.name]) for s in self.graph.stages}

    def _draft(self, stage: Stage, schedule: StageSchedule) -> StageDraft:
        known = self._known.get(schedule)
        if known is not None:
            return known
        result = draft(self.graph, stage, schedule, self._strict, self._target)
        if not result.within:  # `compute_with` changes the nests of drafts with shared updates
            self._known[schedule] = result
        return result


def draft(graph: Graph, stage: Stage, schedule: StageSchedule, strict: bool, target: Target) -> StageDraft:
    """Apply the directives of a stage in order."""
    nest_drafts = [draft_nest(graph, stage, k, strict) for k in range(len(stage.definitions))]
    result = StageDraft(graph, stage, nest_drafts, list(stage.dims))
    for d in schedule.directives:
        on_nest = nests.DIRECTIVES.get(d.verb)
        if on_nest is not None:
            on_nest(result.nests[result.current], d)
        else:
            _STAGE_DIRECTIVES[d.verb](result, d)
    for n in nest_drafts:
        nests.check_vector_innermost(n)
    _check_folds(result)
    _check_target(result, target)
    if result.is_inline:
        _check_inline(result, schedule)
    return result


def _check_target(s: StageDraft, target: Target) -> None:
    """Refuse kinds of loops and of memory that the target does not have."""
    for x in (x for nest in s.nests for x in nest.loops):
        if x.mark is not None and x.kind not in target.loops:
            raise s.no(x.mark, f"{target} has no {x.kind} loops", f"leave it serial; there are {_listed(target.loops)}")
    of_blocks = next((d for d in (s.ahead, s.hybrid, *(b for n in s.nests for b in n.of_blocks)) if d), None)
    if of_blocks is not None and not target.has_blocks:
        raise s.no(of_blocks, f"{target} has no blocks of threads", "leave it out")
    for d in (n.tensor_core for n in s.nests if n.tensor_core is not None and not target.has_mma):
        raise s.no(
            d,
            f"{target} has no such matrix instructions",
            "leave it out; GPUs have them from sm_{}{} on".format(*FIRST_WITH_MMA),
        )
    for d in (n.tensor_core for n in s.nests if n.tensor_core is not None and n.is_of_warpgroups):
        if not target.has_wgmma:
            raise s.no(
                d,
                f"{target} has no instructions of warpgroups, which multiply by {COLUMNS_OF_WARPGROUPS[0]} to "
                f"{COLUMNS_OF_WARPGROUPS[-1]} columns; sm_90 alone has them",
                f"split the columns into tiles of {COLUMNS} or {2 * COLUMNS}, and the terms into those of {TERMS}",
            )
    for d in s.cached.values() if not target.has_blocks else ():
        raise s.no(d, f"{target} does not choose the caches of a load", "leave it out")
    if s.memory is not None and s.memory.args[0] not in target.memories:
        raise s.no(s.memory, f"{target} has no such memory", f"leave it out; there are {_listed(target.memories)}")


def _listed(kinds: Iterable[Kind | Memory]) -> str:
    return ", ".join(k.value for k in kinds)


def _check_inline(s: StageDraft, schedule: StageSchedule) -> None:
    others = [d for d in schedule.directives if d.verb != "compute_inline"]
    if others:
        raise s.no(
            others[0],
            "the stage is inlined, so it has no loops and no memory of its own",
            "drop this directive or compute_inline()",
        )


def _update(s: StageDraft, d: Directive) -> None:
    k, count = int(d.args[0]), len(s.stage.updates)
    if k >= count:
        numbered = "no update definitions" if count == 0 else f"only updates 0..{count - 1}"
        raise s.no(d, f"{s.stage.name} has {numbered}", "leave .update(...) out or choose one of them")
    s.current = k + 1


def _pure(s: StageDraft, d: Directive) -> None:
    s.current = 0


def _kept_as(field: str) -> Callable[[StageDraft, Directive], None]:
    """Record a directive. The last one counts."""
    return lambda s, d: setattr(s, field, d)


def _compute_with(s: StageDraft, d: Directive) -> None:
    if s.current > 0 and d.args[0] == s.stage.name:
        s.within[s.current] = d
    else:
        s.together = d


def _store_in(s: StageDraft, d: Directive) -> None:
    if s.is_output:
        raise s.no(d, "an output is stored in the caller's array", "drop store_in")
    s.memory = d


def _reorder_storage(s: StageDraft, d: Directive) -> None:
    if s.is_output:
        raise s.no(d, "an output is laid out as the caller's array is", "call with an out= array of that layout")
    dims = [str(a) for a in d.args]
    for dim in dims:
        _check_stored(s, d, dim)
    if len(set(dims)) < len(dims):
        raise s.no(d, "a dim is named twice", "name each dim once")
    for place, dim in zip(sorted(s.storage.index(dim) for dim in dims), dims, strict=True):
        s.storage[place] = dim


def _split_storage(s: StageDraft, d: Directive) -> None:
    if s.is_output:
        raise s.no(
            d,
            "an output is laid out as the caller's array is",
            "split the storage of a copy of it, such as by copy_out",
        )
    dim, outer, inner = (str(a) for a in d.args[:3])
    _check_stored(s, d, dim)
    at = s.storage.index(dim)
    others = {*s.stage.dims, *s.storage} - {dim}
    if outer == inner or not others.isdisjoint((outer, inner)):
        raise s.no(d, "two dims would have one name", "choose other names")
    if dim in s.pads:
        raise s.no(d, f"{dim} is padded, by {s.pads[dim]} before it", f'pad "{outer}" or "{inner}" after it')
    s.storage[at : at + 1] = [outer, inner]
    s.storage_splits.append(d)


def _check_stored(s: StageDraft, d: Directive, dim: str) -> None:
    if dim not in s.storage:
        raise s.no(d, f"{s.stage.name} has no dim {dim!r}", did_you_mean(dim, s.storage))


def _check_folds(s: StageDraft) -> None:
    for split in s.storage_splits:
        if split.args[0] in s.folds:
            raise s.no(split, f"{split.args[0]} is folded, and a circle has no panels", "drop one of the two")


def _check_dim(s: StageDraft, d: Directive, dim: str) -> None:
    if dim not in s.stage.dims:
        raise s.no(d, f"{s.stage.name} has no dim {dim!r}", did_you_mean(dim, s.stage.dims))


def _pad_storage(s: StageDraft, d: Directive) -> None:
    if s.is_output:
        raise s.no(d, "an output is laid out as the caller's array is", "call with an out= array of that layout")
    _check_stored(s, d, str(d.args[0]))
    s.pads[str(d.args[0])] = d


def _fold_storage(s: StageDraft, d: Directive) -> None:
    _check_dim(s, d, str(d.args[0]))
    s.folds[str(d.args[0])] = d


def _registers_from(s: StageDraft, d: Directive) -> None:
    _check_dim(s, d, str(d.args[0]))
    s.hybrid = d


def _prefetch(s: StageDraft, d: Directive) -> None:
    s.nests[s.current].find(d, str(d.args[1]))
    s.prefetches.append(d)


def _cache_loads(s: StageDraft, d: Directive) -> None:
    s.cached[str(d.args[0])] = d


def _specialize(s: StageDraft, d: Directive) -> None:
    s.specialized = d
    try:
        s.conditions.append(parse(str(d.args[0]), s.graph))
    except UserError as error:
        raise s.no(d, error.reason, "a condition is over the pipeline's params and input shapes") from error


def _of_update(s: StageDraft, d: Directive) -> None:
    raise s.no(d, "it applies to an update, and this is the pure definition", "write .update() before it")


_STAGE_DIRECTIVES: dict[str, Callable[[StageDraft, Directive], None]] = {
    **dict.fromkeys(("compute_root", "compute_at", "compute_inline"), _kept_as("compute")),
    **dict.fromkeys(("store_root", "store_at"), _kept_as("store")),
    "update": _update, "pure": _pure, "compute_with": _compute_with, "store_in": _store_in,
    "reorder_storage": _reorder_storage, "split_storage": _split_storage, "fold_storage": _fold_storage,
    "pad_storage": _pad_storage, "nontemporal": _kept_as("nontemporal"), "compute_ahead": _kept_as("ahead"),
    "registers_from": _registers_from,
    "prefetch": _prefetch, "cache_loads": _cache_loads, "specialize": _specialize, "rfactor": _of_update,
    "strips": _of_update,
}  # fmt: skip
