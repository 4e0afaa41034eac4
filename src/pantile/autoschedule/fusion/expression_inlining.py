"""Expression inlining within a group (polymage-plus §5.1, Algorithm 3).

before:  ix, iy -> ixx, ixy, iyy -> sxx, sxy, syy -> det, trace -> out     eleven stages of Harris corners
after:   ix, iy -> out                                                     all others inlined

Nothing is substituted here: the dependences of the original stages tell which stage reads which, and how far.
"""

from __future__ import annotations

from fractions import Fraction
from heapq import heappop, heappush

from .aligned_group import AlignedGroup, Distance

# The most operations of an expression: inlining pointwise producers of stencils could be repeated without end.
MOST_OPERATIONS = 400

# The most operations, including the read, of a stage that is inlined into stencils. The paper inlines any pointwise
# producer, since that "does not add any redundant computations"; this holds only if each consumer reads one point of
# it. The products of Harris corners may be repeated, but not a gray value that is computed from three channels.
CHEAP = 2

INLININGS = NONE, POINTWISE, FULL = "none", "pointwise", "full"


class ExpressionInlining:
    """`inlined` are the stages that Algorithm 3 inlines, `dependences` those that remain between the others.

    The paper visits all nodes again and again (lines 2-5). Here, a stage that was refused is visited again only if its
    consumers have changed; a pointwise stage never is, since inlining only makes its consumers larger.
    """

    def __init__(self, group: AlignedGroup, how: str) -> None:
        self.group = group
        self.stages = group.stages
        self.dependences: dict[tuple[str, str], Distance] = dict(group.dependences)
        self.inlined: dict[str, None] = {}
        if how == NONE:
            return
        self._plain = {n: n in self.stages.pointwise for n in group.names}
        self._operations = {n: self.stages.operations[n] + 1 for n in group.names}
        self._loads = {pair: self.stages.loads[pair] for pair in self.dependences}
        self._consumers: dict[str, dict[str, None]] = {n: {} for n in group.names}
        self._producers: dict[str, dict[str, None]] = {n: {} for n in group.names}
        for p, c in self.dependences:
            self._consumers[p][c] = self._producers[c][p] = None
        self._inline_pointwise()
        if how == FULL:
            self._inline_what_is_read_once()

    def _able(self) -> list[str]:
        """The stages of the group that can be inlined (line 6)."""
        return [n for n in self.group.names if n != self.group.output and n in self.stages.inlinable]

    def _inline_pointwise(self) -> None:
        """Line 8. Pointwise stages come first: a stage that has absorbed a stencil is not pointwise any more."""
        for name in self._able():
            if self._plain[name] and self._is_cheap(name) and self._stays_small(name):
                self._inline(name)

    def _inline_what_is_read_once(self) -> None:
        """Inline the stages that are read once (lines 11 and 14)."""
        at = {name: k for k, name in enumerate(self.group.names)}
        able = {name: None for name in self._able() if name not in self.inlined}
        pending = [at[name] for name in able]
        while pending:
            name = self.group.names[heappop(pending)]
            if name not in self.inlined and self._is_read_once(name):
                producers = list(self._producers[name])
                self._inline(name)
                for p in producers:  # these have another consumer now
                    if p in able:
                        heappush(pending, at[p])

    def _is_cheap(self, name: str) -> bool:
        """Whether inlining repeats no operations, or only as few as a load takes."""
        loads = (self._loads[name, c] for c in self._consumers[name])
        return self._operations[name] <= CHEAP or all(n == 1 for n in loads)

    def _is_read_once(self, name: str) -> bool:
        """Whether no value of a stage is read twice, so that inlining computes nothing twice."""
        consumers = list(self._consumers[name])
        if not self._stays_small(name):
            return False
        if len(consumers) == 1:  # line 11
            return self._reads_pointwise(name, consumers[0])
        return self._do_not_overlap(name, consumers)  # line 14

    def _stays_small(self, name: str) -> bool:
        consumers = self._consumers[name]
        grown = (self._operations[c] + self._loads[name, c] * self._operations[name] for c in consumers)
        return all(n <= MOST_OPERATIONS for n in grown)

    def _reads_pointwise(self, name: str, consumer: str) -> bool:
        still = all(a == b for a, b in self.dependences[name, consumer])
        return still and self.group.same_points(name, consumer)

    def _do_not_overlap(self, name: str, consumers: list[str]) -> bool:
        """Whether each consumer reads a part of its own, as with a deinterleaved image, and each value once."""
        graph = self.stages.problem.graph
        parts: list[set[tuple[Fraction, ...]]] = []
        for c in consumers:
            reads = [
                a
                for d in graph.stage[c].definitions
                for a in self.stages.reads(graph.stage[c], d)
                if a.buffer in graph.stage[name].buffers
            ]
            indices = [i for a in reads for i in a.indices]
            if not reads or any(i is None or not (i.is_plain or (i.dim is None and i.low == i.high)) for i in indices):
                return False
            parts.append({tuple(i.low for i in a.indices if i is not None and i.dim is None) for a in reads})
        return all(not a & b for k, a in enumerate(parts) for b in parts[:k])

    def _inline(self, name: str) -> None:
        for c in self._consumers[name]:
            onward, loads = self.dependences.pop((name, c)), self._loads[name, c]
            self._plain[c] = self._plain[c] and self._plain[name]
            self._operations[c] += loads * self._operations[name]
            del self._producers[c][name]
            for p in self._producers[name]:
                self._consumers[p][c] = self._producers[c][p] = None
                through = _sum(self.dependences[p, name], onward)
                self.dependences[p, c] = _hull(self.dependences.get((p, c), through), through)
                self._loads[p, c] = self._loads.get((p, c), 0) + loads * self._loads[p, name]
        for p in self._producers[name]:
            del self.dependences[p, name], self._consumers[p][name]
        self.inlined[name] = None


def _sum(a: Distance, b: Distance) -> Distance:
    return tuple((low + s, high + t) for (low, high), (s, t) in zip(a, b, strict=True))


def _hull(a: Distance, b: Distance) -> Distance:
    return tuple((min(low, s), max(high, t)) for (low, high), (s, t) in zip(a, b, strict=True))
