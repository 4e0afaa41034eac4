"""Groups of aligned stages in overlapped tiles, their grouping and their cost: for `dp` and `polymage`."""
