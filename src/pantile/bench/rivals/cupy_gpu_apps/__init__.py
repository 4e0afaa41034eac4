"""Apps as CUDA C in CuPy's RawKernel, as one writes them in an afternoon: tiles in shared memory or a few rows per
thread, one size for all GPUs, nothing tuned.
"""
