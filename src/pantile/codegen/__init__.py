"""Translates loop IR to LLVM text, to object code, and to a callable address."""
