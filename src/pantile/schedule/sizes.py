"""How much code a schedule asks for: the copies, lanes and versions of each statement, all loops around it counted."""

from __future__ import annotations

import math

from ..cached import memoized
from ..errors import InternalError, shown
from ..expr.nodes import Const
from ..target.kinds import WRITTEN_OUT, Kind
from .draft import StageDraft
from .limits import MOST_COPIES, MOST_LANES, MOST_VALUES, MOST_VERSIONS
from .nest import LoopDraft, NestDraft, unknown_extent
from .placement import Placement
from .plan import Site


def check_sizes(drafts: dict[str, StageDraft], placement: Placement) -> None:
    """Refuse what would take the compiler minutes."""
    sizes = _Sizes(drafts, placement)
    for s in drafts.values():
        if not s.is_inline:
            sizes.check_versions(s)
            for nest in s.nests:
                sizes.check_nest(s, nest)
                sizes.check_inferred(s, nest)


class _Sizes:
    def __init__(self, drafts: dict[str, StageDraft], placement: Placement) -> None:
        self.drafts = drafts
        self.placement = placement

    def check_nest(self, s: StageDraft, nest: NestDraft) -> None:
        if not any(x.kind in WRITTEN_OUT for x in nest.loops):
            return  # whatever is around it was checked there
        around = [self._loop(site) for site in self.placement.chain((s.stage.name, nest.index))]
        copies = math.prod(x.extent or 1 for x in around if x.kind is Kind.UNROLL)
        lanes = math.prod(x.extent or 1 for x in around if x.kind is Kind.VECTOR)
        d = next(x.mark for x in reversed(nest.loops) if x.kind in WRITTEN_OUT)
        if d is None:
            raise InternalError(f"{nest.title} of {s.stage.name} has a loop to write out that no directive marked")
        if lanes > MOST_LANES:
            raise s.no(d, f"vectors of {nest.title} would have {shown(lanes)} lanes", f"use at most {MOST_LANES}")
        if copies > MOST_COPIES:
            raise s.no(
                d,
                f"unrolled loops around it would make {shown(copies)} copies of {nest.title}",
                f"unroll to at most {MOST_COPIES} altogether",
            )
        if copies * lanes > MOST_VALUES:
            raise s.no(
                d,
                f"unrolled loops around it would make {copies} copies of {nest.title}, of {lanes} lanes each",
                f"unroll and vectorize to at most {MOST_VALUES} values altogether",
            )

    def _loop(self, site: Site) -> LoopDraft:
        return self._loops(site.stage, site.definition)[site.loop]

    @memoized
    def _loops(self, name: str, definition: int) -> dict[str, LoopDraft]:
        return {x.name: x for x in self.drafts[name].nests[definition].loops}

    def check_inferred(self, s: StageDraft, nest: NestDraft) -> None:
        """Refuse to write out a loop of unknown extent of a stage at root, whose extents depend on those of the
        outputs."""
        unknown = [x for x in nest.loops if x.kind in WRITTEN_OUT and x.extent is None and x.mark is not None]
        if not unknown or self.placement.compute(s.stage.name) is not None:
            return
        mark, constant = unknown[0].mark, any(isinstance(e, Const) for o in s.graph.outputs for e in o.shape)
        if mark is not None and not constant:
            raise unknown_extent(nest, mark, unknown[0])

    def check_versions(self, s: StageDraft) -> None:
        if s.specialized is None:
            return  # whatever is around it was checked there
        hosts = {site.stage: None for site in self.placement.around(s.stage.name)}
        versions = math.prod(1 + len(self.drafts[n].conditions) for n in (*hosts, s.stage.name))
        if versions > MOST_VERSIONS:
            raise s.no(
                s.specialized,
                f"there would be {shown(versions)} versions of {s.stage.name}",
                f"specialize for less, to at most {MOST_VERSIONS} altogether",
            )
