"""Where stages are computed and stored, and whether all reads of a stage are inside of its site.

A definition runs inside of a chain of loops: those around its stage, then its own. A stage may be computed at a loop
only if this loop is in the chain of every definition that reads it (including through inlined stages), and stored at a
loop only if this loop is in the chain of its own compute site. Both checks are look-ups in these chains. If several
definitions of a stage have a loop of the same name, the stages that they read are computed in each of these loops, and
there is a chain through each.
"""

from __future__ import annotations

from ..dataclass import cached_property, memoized
from ..errors import UserError
from ..graph.nodes import Graph
from ..target.kinds import AT_ONCE, Kind
from .directives import Directive
from .draft import StageDraft
from .limits import MOST_PLACES
from .loop_tree import Chain, LoopChains
from .loop_tree import Leaf as Reader
from .nest import LoopDraft
from .plan import Site
from .refuse import did_you_mean
from .updates import has_closed_form


class Placement(LoopChains):
    """Where all stages of a pipeline are computed and stored, and the loops around them. Each answer is memoized."""

    def __init__(self, graph: Graph, drafts: dict[str, StageDraft]) -> None:
        super().__init__()
        self.graph = graph
        self.drafts = drafts
        self._sites: dict[str, tuple[Site, ...]] = {}

    def check(self) -> None:
        """Check all rules about places, consumers first, so that the first error is the one nearest to the outputs."""
        consumers_first = [self.drafts[s.name] for s in reversed(self.graph.stages)]
        for s in consumers_first:
            self._check_inline(s)
            self._check_together(s)
        # Chains of loops can be followed from here on: everything that they pass through exists.
        for s in consumers_first:
            if not s.is_inline:
                self.compute(s.stage.name)
                self._check_store(s)
                self._check_memory(s)

    # ---- readers

    @cached_property
    def readers(self) -> dict[str, tuple[Reader, ...]]:
        """The computed definitions that read each stage or input, directly or through inlined stages."""
        readers_of: dict[str, dict[Reader, None]] = {n: {} for n in (*self.graph.input, *self.graph.stage)}
        for stage in reversed(self.graph.stages):
            for k in range(len(stage.definitions)):
                behind = readers_of[stage.name] if self.drafts[stage.name].is_inline else {(stage.name, k): None}
                for name in self.graph.reads[stage.name, k]:
                    readers_of[name].update(behind)
        return {n: tuple(r) for n, r in readers_of.items()}

    def group(self, name: str) -> tuple[str, ...]:
        """The stages that share loops with a stage (compute_with), including the stage itself."""
        together = self.drafts[name].together
        host = name if together is None else str(together.args[0])
        sharing = (n for n, s in self.drafts.items() if s.together is not None and s.together.args[0] == host)
        return (host, *sharing)

    def needs(self, consumer: str, producer: str) -> bool:
        """Whether `consumer` can only run after `producer`, because it reads it directly, through other stages, or
        through stages that share loops with these."""
        reached: set[str] = set()
        work = [producer]
        while work:
            for direct in self.graph.consumers[work.pop()]:
                new = [n for n in self.group(direct) if n not in reached]
                reached.update(new)
                work += new
        return consumer in reached

    # ---- chains of loops

    def loops(self, leaf: Reader) -> list[LoopDraft]:
        return self.drafts[leaf[0]].nests[leaf[1]].loops

    def host(self, leaf: Reader) -> tuple[str, str] | None:
        s = self.drafts[leaf[0]]
        together = s.within.get(leaf[1], s.together)
        return None if together is None else (str(together.args[0]), str(together.args[1]))

    def chains(self, reader: Reader) -> list[Chain]:
        """The loops around the innermost statement of a definition, for each site at which its stage is computed."""
        own = self.own(reader)
        return [(*around, *own) for around in self._chains_around(self.sites(reader[0]))]

    def chains_around(self, name: str) -> list[Chain]:
        """The loops around a stage, for each site at which it is computed."""
        return self._chains_around(self.sites(name))

    def chains_around_memory(self, name: str) -> list[Chain]:
        """The loops around the memory of a stage, for each site at which it is stored."""
        return self.chains_around(name) if self.drafts[name].store is None else [self.to(self.store(name))]

    def _chains_around(self, sites: tuple[Site, ...]) -> list[Chain]:
        return [
            (*around, *self.own_down_to((site.stage, site.definition), site.loop))
            for site in sites
            for around in self._chains_around(self.sites(site.stage))
        ] or [()]

    # ---- compute_at

    def compute(self, name: str) -> Site | None:
        sites = self.sites(name)
        return sites[0] if sites else None

    def sites(self, name: str) -> tuple[Site, ...]:
        """All loops at which a stage is computed, in definitions of one stage; () stands for root."""
        if name not in self._sites:
            s = self.drafts[name]
            self._sites[name] = ()  # so that a site that depends on itself does not enclose the reads
            self._sites[name] = self._find_sites(s)
        return self._sites[name]

    def _find_sites(self, s: StageDraft) -> tuple[Site, ...]:
        if s.together is not None:
            return self._sites_together(s, s.together)
        d = s.compute
        if d is None or d.verb == "compute_root":
            return ()
        if s.is_output:
            raise s.no(d, "an output is computed at root", "drop compute_at, or use compute_with")
        sites = self._enclosing_sites(s, d)
        around = self._chains_around(sites)
        if len(around) > MOST_PLACES:
            raise s.no(
                d,
                f"{s.stage.name} would be computed in {len(around)} places, in loops of several definitions",
                f"choose a loop of fewer definitions, so that there are at most {MOST_PLACES}",
            )
        vector = next((x for chain in around for x in chain if self.kind(x) is Kind.VECTOR), None)
        if vector is not None:
            raise s.no(
                d,
                f"loop {vector.loop} of {vector.stage} is a vector, so nothing can be computed inside it",
                "choose the loop outside it",
            )
        return sites

    def _enclosing_sites(self, s: StageDraft, d: Directive) -> tuple[Site, ...]:
        """The loop that a directive names, in each definition whose loops enclose readers of the stage."""
        host, loop = self._check_host(s, d)
        sites: dict[Site, None] = {}
        for reader in self.readers[s.stage.name]:
            for chain in self.chains(reader):
                site = next((x for x in chain if x.stage == host and x.loop == loop), None)
                if site is None:
                    raise self._read_outside(s, d, reader)
                sites[site] = None
        return tuple(sorted(sites, key=lambda site: site.definition))

    def _read_outside(self, s: StageDraft, d: Directive, reader: Reader) -> UserError:
        also = "also " if len(self.readers[s.stage.name]) > 1 else ""
        return s.no(
            d,
            f"{s.stage.name} is {also}read by {self._title(reader)}, which does not run inside that loop",
            f"choose a loop around all that reads it, or compute {reader[0]} inside that loop too",
        )

    def _title(self, reader: Reader) -> str:
        name, k = reader
        return self.drafts[name].nests[k].title + " of " + name

    def _check_host(self, s: StageDraft, d: Directive) -> tuple[str, str]:
        """The stage and the loop that a directive names, after a check that they exist. Shared loops belong to the
        stage that has them."""
        host, loop = map(str, d.args)
        if host not in self.drafts:
            raise s.no(d, f"there is no stage {host!r}", did_you_mean(host, self.drafts))
        if host == s.stage.name:
            raise s.no(d, "a stage cannot be placed inside its own loops", "name a stage that reads it")
        other = self.drafts[host]
        if other.is_inline:
            raise s.no(d, f"{host} is inlined and has no loops", f"name a stage that is computed, or compute {host}")
        loops = list(dict.fromkeys(n for nest in other.nests for n in nest.names))
        if loop not in loops:
            raise s.no(d, f"{host} has no loop {loop!r}", did_you_mean(loop, loops))
        if other.together is not None:
            first, last = map(str, other.together.args)
            names = other.nests[0].names
            if last in names and loop in names[: names.index(last) + 1]:
                return first, loop
        return host, loop

    # ---- store_at

    @memoized
    def store(self, name: str) -> Site | None:
        """Where a stage's memory is allocated. None is root."""
        s = self.drafts[name]
        place = self.compute(name)
        if s.store is None:
            return place
        if len(self.sites(name)) > 1:
            raise s.no(
                s.store,
                f"{name} is computed in loops of several definitions of {self.sites(name)[0].stage}",
                "leave it out: what is computed in a loop is stored there",
            )
        if s.store.verb == "store_root":
            return None
        host, loop = self._check_host(s, s.store)
        for site in self.to(place):
            if site.stage == host and site.loop == loop:
                return site
        at = "root" if place is None else f"loop {place.loop} of {place.stage}"
        raise s.no(
            s.store,
            f"{name} is computed at {at}, which that loop does not enclose",
            "store it at the same loop as it is computed at, or further out",
        )

    def between(self, name: str) -> Chain:
        """The loops between a stage's memory and its computation, outermost first."""
        return self.around(name)[len(self.to(self.store(name))) :]

    def _check_store(self, s: StageDraft) -> None:
        d = s.store if s.store is not None else s.compute
        parallel = next((x for x in self.between(s.stage.name) if self.kind(x) in AT_ONCE), None)
        if parallel is not None and d is not None:
            raise s.no(
                d,
                f"the {self.kind(parallel)} loop {parallel.loop} of {parallel.stage} lies between the memory "
                "and the computation, so threads would share what each of them overwrites",
                f'store it inside: .store_at("{parallel.stage}", "{parallel.loop}")',
            )
        for fold in s.folds.values():
            if not self.between(s.stage.name):
                raise s.no(
                    fold,
                    "no loop lies between the memory and the computation, so nothing is kept in a circle",
                    "store it further out than it is computed (store_at or store_root)",
                )

    def _check_memory(self, s: StageDraft) -> None:
        if s.nontemporal is not None and self.store(s.stage.name) is not None:
            raise s.no(
                s.nontemporal,
                "values stored inside a loop are read again at once and belong in the cache",
                "use nontemporal only for outputs and stages stored at root",
            )
        for d in s.prefetches:
            buffer = str(d.args[0])
            read = self.read_in(s.stage.name)
            if buffer not in read:
                raise s.no(d, f"nothing in the loops of {s.stage.name} reads {buffer!r}", did_you_mean(buffer, read))

    def read_in(self, stage: str) -> list[str]:
        """The stages and inputs that a stage and the stages computed in its loops read."""
        return [n for n, readers in self.readers.items() if any(self.runs_in(r[0], stage) for r in readers)]

    def runs_in(self, name: str, stage: str) -> bool:
        """Whether a stage is `stage` or computed in its loops."""
        return name == stage or any(site.stage == stage for site in self.around(name))

    # ---- compute_inline

    def _check_inline(self, s: StageDraft) -> None:
        if not s.is_inline or s.compute is None:
            return
        if s.is_output:
            raise s.no(s.compute, "an output cannot be inlined", "drop compute_inline")
        if not has_closed_form(s.stage):
            raise s.no(
                s.compute,
                f"{s.stage.name} has update definitions, which need its values in memory",
                "use compute_at or compute_root (only one plain accumulation over at most 64 constant points "
                "can be inlined)",
            )

    # ---- compute_with

    def _sites_together(self, s: StageDraft, d: Directive) -> tuple[Site, ...]:
        sites = self.sites(str(d.args[0]))
        for reader in self.readers[s.stage.name]:
            for site in sites:
                if not all(any(x in chain for x in sites) for chain in self.chains(reader)):
                    raise s.no(
                        d,
                        f"{s.stage.name} is also read by {self._title(reader)}, outside loop {site.loop} of "
                        f"{site.stage}",
                        "share the loops of a stage that is computed at root",
                    )
        if sites and s.is_output:
            raise s.no(d, f"an output is computed at root, and {d.args[0]} is not", f"compute {d.args[0]} at root")
        return sites

    def _check_together(self, s: StageDraft) -> None:
        d = s.together
        if d is None:
            return
        host, loop = self._check_host(s, d)
        other = self.drafts[host]
        if other.together is not None or host != d.args[0]:
            raise s.no(d, f"{d.args[0]} itself shares the loops of another stage", "name that stage here as well")
        if s.stage.updates or other.stage.updates:
            raise s.no(
                d,
                "a stage with updates runs several loop nests, which cannot share one",
                "share loops among stages without updates",
            )
        if s.compute is not None and s.compute != other.compute:
            raise s.no(
                d,
                f"{s.stage.name} and {host} are asked for at different places ({s.compute} here)",
                f"drop {s.compute}; the stage is computed where {host} is",
            )
        for mate in self.group(host):
            if mate != s.stage.name and (self.needs(mate, s.stage.name) or self.needs(s.stage.name, mate)):
                raise s.no(
                    d, f"one of {s.stage.name} and {mate} needs the other, so one must come first", "use compute_at"
                )
        mine, theirs = s.stage.dims, other.stage.dims
        if len(mine) != len(theirs) or any(theirs.index(n) != k for k, n in enumerate(mine) if n in theirs):
            raise s.no(
                d,
                f"dims differ: {', '.join(mine)} here, {', '.join(theirs)} in {host}, and both are computed "
                "over what either is needed for",
                "share loops of stages with the same dims",
            )
        self._check_same_loops(s, d, other, loop)

    def _check_same_loops(self, s: StageDraft, d: Directive, other: StageDraft, loop: str) -> None:
        depth = other.nests[0].names.index(loop) + 1
        mine, theirs = ([(x.name, x.kind) for x in n.loops[:depth]] for n in (s.nests[0], other.nests[0]))
        shared = {name for name, _ in theirs}
        rewrites = [[r for r in n.rewrites if shared & set(vars(r).values())] for n in (s.nests[0], other.nests[0])]
        if mine != theirs or rewrites[0] != rewrites[1]:
            show = [", ".join(f"{k} {n}" for n, k in loops) for loops in (mine, theirs)]
            raise s.no(
                d,
                f"the loops down to {loop} differ: {show[0] or 'none'} here, {show[1]} in {other.stage.name}",
                "split, order and mark them alike in both",
            )
