"""Computation spaces and what tiles of them take: for `posttile`."""
