"""The largest sizes that directives may request. Larger ones would take the compiler minutes or kill the process.

All are far above what is profitable; docs/schedule.md states them.
"""

from __future__ import annotations

# Iterations of a block: more than the extent of any axis of an image that fits in memory.
LARGEST_FACTOR = 1 << 30
# Lanes of a vector: as many as there are bytes in four registers of the widest kind.
MOST_LANES = 256
# Copies of a statement that all unrolled loops around it make, and their values, counting all lanes.
MOST_COPIES = 256
MOST_VALUES = 1 << 13
# Rows of a circular buffer, and the distance of a prefetch in iterations.
LARGEST_FOLD = 1 << 20
FARTHEST_PREFETCH = 1 << 20
# Entries of a panel of split storage: up to as many entries may be unused at the end.
LARGEST_PANEL = 1 << 14
# Versions of a statement that all conditions of specialize make.
MOST_VERSIONS = 32
# Places at which a stage is computed, counting loops around it in several definitions of several stages.
MOST_PLACES = 32
# Characters of a condition, and nesting depth of its operations.
LONGEST_CONDITION = 1000
DEEPEST_CONDITION = 100
# Copies of stages that clone_in and copy_in make.
MOST_CLONES = 256
# Directives of one stage, and loops of one definition.
MOST_DIRECTIVES = 1000
MOST_LOOPS = 64
# Iterations by which a stage is computed ahead of its use; each takes another buffer of the same size.
FARTHEST_AHEAD = 8
