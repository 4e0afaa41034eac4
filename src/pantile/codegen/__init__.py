"""Loop IR to LLVM text, to object code, to a callable address."""
