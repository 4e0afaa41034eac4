"""Execution of compiled code: arguments, kernels, threads and the compile cache."""
