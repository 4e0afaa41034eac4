"""Segments of stages that slide through each other, row by row of tiles: for `reuse`."""
