"""What the kind of a loop means where loops are built. Whoever adds a kind decides these here.

    LANES     its iterations are the lanes of vectors
    IN_ORDER  each iteration comes after the one before: stages may keep what that has computed, and slide

Of those that are written out, whose number of iterations is a constant, `target` has a list.
"""

from __future__ import annotations

from ...target.kinds import Kind

LANES = frozenset({Kind.VECTOR})
IN_ORDER = frozenset({Kind.SERIAL, Kind.UNROLL})
