"""The largest sizes that directives may ask for: what lies beyond would take the compiler minutes or kill the process.

All are far above what pays; docs/schedule.md states them.
"""

from __future__ import annotations

# Iterations of a block: more than any axis of an image that fits in memory has.
LARGEST_FACTOR = 1 << 30
# Lanes of a vector: four registers of the widest kind full of bytes.
MOST_LANES = 256
# Copies of a statement that unrolled loops around it make together, and their values with all lanes counted.
MOST_COPIES = 256
MOST_VALUES = 1 << 13
# Rows of a circular buffer, and iterations that a prefetch looks ahead.
LARGEST_FOLD = 1 << 20
FARTHEST_PREFETCH = 1 << 20
# Entries of a dim that lie together where storage is split: as much memory may be left empty at its end.
LARGEST_PANEL = 1 << 14
# Versions of a statement that the conditions of specialize make together.
MOST_VERSIONS = 32
# Places at which a stage is computed, loops around it in several definitions of several stages counted.
MOST_PLACES = 32
# Characters of a condition, and operations one inside the other.
LONGEST_CONDITION = 1000
DEEPEST_CONDITION = 100
# Copies of stages that clone_in and copy_in make.
MOST_CLONES = 256
# Directives of one stage, and loops of one definition.
MOST_DIRECTIVES = 1000
MOST_LOOPS = 64
# Iterations by which a stage is computed ahead of its use: each takes another buffer of the same size.
FARTHEST_AHEAD = 8
