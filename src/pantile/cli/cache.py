"""`pantile cache`: the compiled code kept on disk."""

from __future__ import annotations

from ..runtime import cache


def info() -> int:
    """Print where the cache is and what it holds."""
    found = cache.info()
    if found.directory is None:
        print("no directory to keep compiled code in; name one with PANTILE_CACHE_DIR")
    else:
        print(f"{found.directory}: {found.entries} entries, {found.bytes / 1e6:.1f} MB")
    return 0


def clear() -> int:
    """Remove all of it."""
    print(f"removed {cache.clear()} entries")
    return 0
