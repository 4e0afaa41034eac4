"""How many rows of each buffer are live at one time: a sliding stage may keep just these in a circular buffer."""

from __future__ import annotations

from ...analysis.load_boxes import Box
from ...expr.linear import Facts, simplify
from ...graph.nodes import Stage
from .slide import Sliding


class LiveRows:
    """Notes on live rows taken while the loop nest is built, per buffer and dim."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._slid: dict[str, dict[int, int]] = {}
        self._whole: dict[str, dict[int, int | None]] = {}  # those computed without sliding
        self._in_lanes: set[tuple[str, int]] = set()

    def computed(self, members: list[Stage], box: Box, sliding: Sliding | None) -> None:
        """Note that the stages compute a box inside the loop that stores them.

        A part that does not slide (a peeled tail) needs all of its rows, and one that slides along another dim all that
        it sweeps meanwhile.
        """
        for buffer in (b for m in members for b in m.buffers):
            if sliding is not None:
                slid = self._slid.setdefault(buffer, {})
                slid[sliding.dim] = max(sliding.window, slid.get(sliding.dim, 0))
            for k, side in enumerate(box):
                if sliding is None or k != sliding.dim:
                    swept = sliding is not None and k in sliding.swept
                    needed = None if swept else self.facts.upper(simplify(side.high - side.low + 1, self.facts))
                    whole = self._whole.setdefault(buffer, {})
                    known = whole.get(k, 0)
                    whole[k] = None if needed is None or known is None else max(known, needed)

    def in_lanes(self, stage: Stage, k: int) -> None:
        """Note that vectors of the stage are stored along dim k: a circular buffer may be too short for one."""
        self._in_lanes.update((buffer, k) for buffer in stage.buffers)

    def folds(self) -> dict[str, dict[int, int]]:
        """Per buffer the circular extent of each dim along which its stage slides."""
        result: dict[str, dict[int, int]] = {}
        for buffer, dims in self._slid.items():
            for k, window in dims.items():
                whole = self._whole.get(buffer, {}).get(k, 0)
                if whole is not None and (buffer, k) not in self._in_lanes:
                    result.setdefault(buffer, {})[k] = max(window, whole)
        return result
