"""Expression inlining within a group (polymage-plus §5.1, Algorithm 3).

before:  ix, iy -> ixx, ixy, iyy -> sxx, sxy, syy -> det, trace -> out     eleven stages of Harris corners
after:   ix, iy -> out                                                     all others inlined

Nothing is substituted here: who reads whom, and how far, follows from the dependences of the stages as they are.
"""

from __future__ import annotations

from fractions import Fraction

from .aligned_group import AlignedGroup, Distance

# No expression grows beyond so many operations: inlining pointwise producers of stencils can be repeated without end.
MOST_OPERATIONS = 400

# Operations of what is inlined into stencils, reading it included. The paper inlines any pointwise producer, since that
# "does not add any redundant computations": so it is if each consumer reads one point of it. The products of Harris
# corners may be repeated, but not a gray that is made of three channels.
CHEAP = 2

INLININGS = NONE, POINTWISE, FULL = "none", "pointwise", "full"


class ExpressionInlining:
    """`inlined` are the stages that Algorithm 3 inlines, `dependences` those that remain between the others."""

    def __init__(self, group: AlignedGroup, how: str) -> None:
        self.group = group
        self.stages = group.stages
        self.how = how
        self.dependences: dict[tuple[str, str], Distance] = dict(group.dependences)
        self.inlined: list[str] = []
        self._plain = {n: n in self.stages.pointwise for n in group.names}
        self._operations = {n: self.stages.operations[n] + 1 for n in group.names}
        self._loads = {pair: self.stages.loads[pair] for pair in self.dependences}
        while how != NONE and self._pass():  # lines 2-4
            pass

    def _pass(self) -> bool:
        """Lines 5-16: whether anything was inlined. Pointwise producers first: what has absorbed a stencil is none."""
        left = [n for n in self.group.names if n != self.group.output and n not in self.inlined]  # line 6
        left = [n for n in left if self.stages.facts.can_be_inlined(n)]
        pointwise = [n for n in left if self._plain[n] and self._is_cheap(n) and self._stays_small(n)]  # line 8
        others = [] if self.how == POINTWISE or pointwise else [n for n in left if self._is_read_once(n)]
        for name in (pointwise or others)[:1]:
            self._inline(name)
        return bool(pointwise or others)

    def _is_cheap(self, name: str) -> bool:
        """Whether inlining repeats nothing, or no more than loading takes."""
        loads = (self._loads[name, c] for c in self.consumers(name))
        return self._operations[name] <= CHEAP or all(n == 1 for n in loads)

    def _is_read_once(self, name: str) -> bool:
        """Whether no value is read twice, so that inlining computes nothing twice."""
        consumers = self.consumers(name)
        if not self._stays_small(name):
            return False
        if len(consumers) == 1:  # line 11
            return self._reads_pointwise(name, consumers[0])
        return self._do_not_overlap(name, consumers)  # line 14

    def consumers(self, name: str) -> list[str]:
        return [c for p, c in self.dependences if p == name]

    def _stays_small(self, name: str) -> bool:
        consumers = self.consumers(name)
        grown = (self._operations[c] + self._loads[name, c] * self._operations[name] for c in consumers)
        return all(n <= MOST_OPERATIONS for n in grown)

    def _reads_pointwise(self, name: str, consumer: str) -> bool:
        still = all(a == b for a, b in self.dependences[name, consumer])
        return still and self.group.same_points(name, consumer)

    def _do_not_overlap(self, name: str, consumers: list[str]) -> bool:
        """Whether each consumer reads a part of its own, as those of a deinterleaved image do, and each value once."""
        graph = self.stages.problem.graph
        parts: list[set[tuple[Fraction, ...]]] = []
        for c in consumers:
            found = [a for d in graph.stage[c].definitions for a in self.stages.reads(graph.stage[c], d)
                     if a.buffer in graph.stage[name].buffers]  # fmt: skip
            indices = [i for a in found for i in a.indices]
            if not found or any(i is None or not (i.is_plain or (i.dim is None and i.low == i.high)) for i in indices):
                return False
            parts.append({tuple(i.low for i in a.indices if i is not None and i.dim is None) for a in found})
        return all(not a & b for k, a in enumerate(parts) for b in parts[:k])

    def _inline(self, name: str) -> None:
        consumers = self.consumers(name)
        producers = [p for p, c in self.dependences if c == name]
        for c in consumers:
            onward, loads = self.dependences.pop((name, c)), self._loads[name, c]
            self._plain[c] = self._plain[c] and self._plain[name]
            self._operations[c] += loads * self._operations[name]
            for p in producers:
                through = tuple(
                    (a + s, b + t) for (a, b), (s, t) in zip(self.dependences[p, name], onward, strict=True)
                )
                known = self.dependences.get((p, c), through)
                self.dependences[p, c] = tuple(
                    (min(a, s), max(b, t)) for (a, b), (s, t) in zip(known, through, strict=True)
                )
                self._loads[p, c] = self._loads.get((p, c), 0) + loads * self._loads[p, name]
        for p in producers:
            del self.dependences[p, name]
        self.inlined.append(name)
