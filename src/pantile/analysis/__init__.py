"""Pure facts over the graph: intervals, access patterns, regions."""
