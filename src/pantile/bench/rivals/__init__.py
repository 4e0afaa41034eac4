"""Other systems that the benchmarks compare against.

The package imports nothing at load time: its Halide side also runs under a
Python in which Pantile is not installed.
"""
