"""The search of `auto` on GPUs, where kernels are lowered to predict their cost, which takes longer than for CPUs.

The cheapest of the proposals, one of which is the plain schedule, takes over cheaper parts of the others. Then short
kernels are merged, stages are inlined whose kernels cost more than computing them again for each read, and the most
expensive kernels get other thread tiles (`thread_tiles`), as long as that is cheaper. For pipelines of many stages,
`greedy` alone proposes a schedule. If data decide how long a schedule takes, nothing is searched.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from math import inf, isfinite

from ...schedule.directives import on
from ...schedule.schedule import Schedule, is_inlined
from ..autogpu import AutoGpu
from ..greedy import Greedy
from ..posttile import PostTile
from ..strategy import Found, Problem, Strategy
from .candidates import Candidate
from .groups import StageGroup, groups, needed_by
from .proposals import ProposalSearch, seconds_by_stage
from .thread_tiles import MOST_OPERATIONS, Kernel, ThreadTile, scheduled

FEW_STAGES = 32  # of more than that, only the schedule of `greedy` is lowered to predict its cost
LEAST_WORTH = 0.07  # the part by which a change must be cheaper: predictions err by more than on CPUs
EFFORT = 8000  # of lowering thread tiles, in operations that are unrolled
EFFORT_OF_EACH, EFFORT_OF_STAGE = 100, 10  # of each thread tile, and in addition for each stage of the pipeline
SHORT = 2  # times as long as an empty launch: the most that kernels take which are inlined together
SHORT_KERNEL = 3  # likewise, of kernels that are merged
WAYS_TO_MERGE = 4  # that are compared at a time
MOST_MERGED = 2  # kernels that others are merged into
OF_INLINING = 0.02  # the part of the time of a pipeline that inlining a stage must save
OF_KERNELS = 0.1  # the least part of the time of a pipeline that kernels take whose thread tiles are searched
LAUNCHES = 3  # the least time of each of them, in times of an empty launch
PROMISING = 1.2  # times as long as before: from tiles that take longer no descent begins
SMALLEST_STEP = 0.08  # the part by which each step of a descent must be cheaper
_SOURCES: tuple[type[Strategy], ...] = (Greedy, AutoGpu, PostTile)


def find(problem: Problem, strategy: str, worth: float, without: Collection[str]) -> Found:
    """The schedule for a GPU, in the name of `strategy`."""
    problem.check_predicted()
    worth = max(worth, LEAST_WORTH)
    return _Search(problem, [s for s in _SOURCES if s.name not in without], worth, without).found(
        strategy, {"worth": worth}
    )


class _Search(ProposalSearch):
    effort: float = EFFORT

    def schedules(self, sources: Sequence[type[Strategy]]) -> Iterator[tuple[str, Schedule]]:
        if len(self.problem.graph.stages) > FEW_STAGES:
            yield from super().schedules([Greedy])
            return
        yield "plain", Schedule()
        yield from super().schedules(sources)

    def best(self) -> Candidate:
        """The cheapest proposal, unless an earlier one is nearly as cheap, with cheaper parts of the others, short
        kernels merged, stages inlined, and cheaper thread tiles."""
        best = self.proposed[0]
        for c in self.proposed[1:]:
            best = c if c.seconds < best.seconds * (1 - self.worth) else best
        best = self.take_parts(self.proposed, best)
        if not isfinite(best.seconds):
            return best
        best = self._merging(best) if "merging" not in self.without else best
        best = self._inlining(best) if "inlining" not in self.without else best
        for kernels in self._expensive(best) if "thread_tiles" not in self.without else ():
            best = self._in_other_tiles(best, kernels)
        return best

    # ---- inlining

    def _inlining(self, best: Candidate) -> Candidate:
        """The schedule with stages inlined whose kernels cost more than computing them again for each read: those with
        short kernels all at once, then the others one by one, the most expensive one first."""
        seconds = {n: s for n, s in seconds_by_stage(best).items() if self._may_be_inlined(best.schedule, n)}
        short: list[str] = []
        for name in (s.name for s in self.problem.graph.stages):
            if seconds.get(name, inf) < SHORT * self.problem.gpu.costs.launch_s and not self._reads(name, short):
                short.append(name)
        if short:
            name = f"{best.name}, short kernels inlined"
            best = self.if_cheaper(best, name, _inlined(best.schedule, short), OF_INLINING)
        for name in sorted(seconds, key=lambda n: -seconds[n]):
            if seconds[name] >= OF_KERNELS * best.cost.seconds:
                schedule = _inlined(best.schedule, [name])
                best = self.if_cheaper(best, f"{best.name}, {name} inlined", schedule, OF_INLINING)
        return best

    def _may_be_inlined(self, schedule: Schedule, name: str) -> bool:
        """Whether a stage may be inlined, and nothing is computed in its loops."""
        hosts = {
            d.args[0] for chain in schedule.values() for d in chain.directives if d.verb in ("compute_at", "store_at")
        }
        facts = self.problem.facts
        return name in facts.graph.stage and name not in hosts and facts.can_be_inlined(name)

    def _reads(self, name: str, names: Collection[str]) -> bool:
        return any(name in self.problem.graph.consumers[producer] for producer in names)

    # ---- merging

    def _merging(self, best: Candidate) -> Candidate:
        """The schedule with short kernels merged, as long as that is cheaper. A launch takes longer than computing the
        coarse levels of a pyramid, of which each block of one kernel computes what it needs."""
        done: set[str] = set()  # stages that are computed in merged kernels
        for _ in range(MOST_MERGED):
            found, merged = best, None
            for kernel in self._merged(best, done):
                name = f"{best.name}, {len(kernel.members)} stages in {kernel.output.name}"
                c = self.candidates.candidate(name, scheduled(kernel, best.schedule, kernel.in_blocks()))
                if c is not None and c.seconds < found.seconds:
                    found, merged = c, kernel
                elif merged is not None:
                    break
            if merged is None or found.seconds > best.seconds * (1 - OF_INLINING):
                break
            best = found
            done |= {merged.output.name, *merged.group.members}
        return best

    def _merged(self, best: Candidate, done: Collection[str]) -> list[Kernel]:
        """Some kernels that each compute what several short ones do, those of the most stages first."""
        graph, schedule, seconds = self.problem.graph, best.schedule, seconds_by_stage(best)
        short = {n for n, s in seconds.items() if s < SHORT_KERNEL * self.problem.gpu.costs.launch_s and n not in done}
        of = [group for group in groups(graph, schedule) if group.output in short]
        inlined = {name for name, chain in schedule.items() if is_inlined(chain)}
        stored = {n for group in of for n in (group.output, *group.members) if not self._is_read_with_edges(n)}
        stored -= graph.output.keys()
        found = list[StageGroup]()
        for group in of:
            inside = [s.name for s in needed_by(graph, graph.stage[group.output], inlined | stored)]
            if not short.isdisjoint(inside):
                members = tuple(self._edges_of(n) or n for n in inside if n not in inlined)
                found.append(StageGroup(group.output, members, tuple(n for n in inside if n not in members)))
        found.sort(key=lambda group: -len(group.members))
        kernels = [kernel for group in found if (kernel := Kernel(self.problem, group)).has_tiles]
        return kernels[:: -(-len(kernels) // WAYS_TO_MERGE) or 1]

    def _edges_of(self, name: str) -> str:
        """The boundary condition through which a stage is read, if it is read in no other way. Blocks keep it in the
        place of the stage: at the edges of the picture, too, they need as many points of it as elsewhere."""
        readers = self.problem.graph.consumers[name]
        return readers[0] if list(map(self._is_condition, readers)) == [True] else ""

    def _is_read_with_edges(self, name: str) -> bool:
        """Whether a stage is read through a boundary condition and in other ways, too."""
        readers = self.problem.graph.consumers[name]
        return len(readers) > 1 and any(map(self._is_condition, readers))

    def _is_condition(self, name: str) -> bool:
        stage = self.problem.graph.stage[name]
        return stage.helper and not stage.updates and len(self.problem.facts.reads(name)) == 1

    # ---- thread tiles

    def _expensive(self, best: Candidate) -> list[list[Kernel]]:
        """The kernels that take a good part of the time, those of a kind together, the most expensive ones first."""
        seconds, kinds = seconds_by_stage(best), dict[Hashable, list[Kernel]]()
        for group in groups(self.problem.graph, best.schedule):
            kernel = Kernel(self.problem, group)
            if seconds.get(group.output, 0.0) >= LAUNCHES * self.problem.gpu.costs.launch_s and kernel.has_tiles:
                kinds.setdefault(kernel.kind, []).append(kernel)
        shares = [(self._seconds(best, kernels), kernels) for kernels in kinds.values()]
        some = [(s, kernels) for s, kernels in shares if s >= OF_KERNELS * best.cost.seconds]
        return [kernels for _, kernels in sorted(some, key=lambda s: -s[0])]

    def _in_other_tiles(self, best: Candidate, kernels: Sequence[Kernel]) -> Candidate:
        """The schedule with another thread tile for kernels of a kind, if that is worth it for the first of them."""
        took = seconds_by_stage(best)[kernels[0].output.name]
        found = self._descend(best, kernels[0], took)
        if found is None or found[0].seconds > best.seconds - self.worth * took:
            return best
        tiled, tile = found
        schedule = tiled.schedule
        for kernel in kernels[1:]:
            schedule = scheduled(kernel, schedule, tile)
        return self.if_cheaper(tiled, f"{tiled.name}, and {len(kernels) - 1} like it", schedule, 0.0)

    def _descend(self, best: Candidate, kernel: Kernel, took: float) -> tuple[Candidate, ThreadTile] | None:
        """Search from the cheapest of the tiles to begin with, by one change at a time. A kind of change that was of no
        use once is not tried again."""
        starts = [(c, tile) for tile in kernel.starts() if (c := self._in_tile(best, kernel, tile)) is not None]
        (now, tile), useless = min(starts, key=lambda s: s[0].seconds, default=(best, None)), set[Hashable]()
        if tile is None or now.seconds > best.seconds + (PROMISING - 1) * took:
            return None
        while True:
            for kind, other in kernel.moves(tile):
                if kind not in useless:
                    c = self._in_tile(best, kernel, other)
                    if c is not None and c.seconds < now.seconds - SMALLEST_STEP * took:
                        now, tile = c, other
                        break
                    useless.add(kind)
            else:
                return now, tile

    def _in_tile(self, candidate: Candidate, kernel: Kernel, tile: ThreadTile) -> Candidate | None:
        """A candidate with another thread tile for a kernel; None if it is not legal, or too much to lower."""
        operations = kernel.operations(tile)
        effort = EFFORT_OF_EACH + EFFORT_OF_STAGE * len(self.problem.graph.stages) + operations
        if operations > MOST_OPERATIONS or effort > self.effort:
            return None
        name = f"{candidate.name}, {kernel.output.name}: {tile}"
        found = self.candidates.candidate(name, scheduled(kernel, candidate.schedule, tile))
        self.effort -= effort if found is not None else 0.0  # what is refused is lowered only in part
        return found

    def _seconds(self, best: Candidate, kernels: Sequence[Kernel]) -> float:
        seconds = seconds_by_stage(best)
        return sum(seconds[k.output.name] for k in kernels)


def _inlined(schedule: Schedule, names: Iterable[str]) -> Schedule:
    return schedule.replace(*(on(name).compute_inline() for name in names))
