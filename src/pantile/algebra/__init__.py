"""Algebra before the search: graph -> a graph that computes the same with fewer operations.

It runs where no schedule is written by hand: what a person writes names the stages of the formulas. Each rewrite is a
file with one exported function from a stage to stages that take its place; it says what it changed and what that saves,
and keeps the formula where nothing is saved. Integers stay the same; floats are summed in another order, which
`strict` forbids.
"""

from .rewrites import Rewritten, rewritten

__all__ = ["Rewritten", "rewritten"]
