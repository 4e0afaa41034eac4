"""Computation spaces, and the cost of tiles of them: for `posttile`."""
