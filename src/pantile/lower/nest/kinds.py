"""Properties of loop kinds that matter where loops are built; new kinds are classified here.

    LANES     its iterations are the lanes of vectors
    IN_ORDER  each iteration comes after the one before: stages may keep what that has computed, and slide

Of those that are written out, whose number of iterations is a constant, `target` has a list.
"""

from __future__ import annotations

from ...target.kinds import Kind

LANES = frozenset({Kind.VECTOR})
IN_ORDER = frozenset({Kind.SERIAL, Kind.UNROLL})
