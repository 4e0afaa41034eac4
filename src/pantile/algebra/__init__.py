"""Algebra before the search: graph -> a graph that computes the same with fewer operations.

It runs only if no schedule is written by hand, because such a schedule names the stages of the formulas. Each rewrite
is a file with one exported function from a stage to the stages that replace it; it reports what it changed and what
that saves, and keeps the formula if nothing is saved. Integers stay the same; floats are summed in another order, which
`strict` forbids.
"""

from .rewrites import RewrittenGraph, rewritten

__all__ = ["RewrittenGraph", "rewritten"]
