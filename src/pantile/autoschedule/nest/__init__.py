"""Single loop nests, their references to memory and the misses of caches: for `kernel`."""
