"""Programs for Halide's worker that are no apps."""
