"""Analyses of the graph: intervals, access patterns, regions and others. They do not change it."""
