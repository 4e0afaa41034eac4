"""`pantile cache`: the compiled code on disk."""

from __future__ import annotations

from argparse import Namespace

from .. import tuning_results
from ..runtime import cache


def run(options: Namespace) -> int:
    """Show or clear the cache, and return the exit code."""
    return _clear() if options.clear else _info()


def _info() -> int:
    """Print the directory and the contents of the cache."""
    info = cache.info()
    if info.directory is None:
        print("no directory to keep compiled code in; name one with PANTILE_CACHE_DIR")
    else:
        kept = len(tuning_results.files())
        winners = f"; {kept} tuned schedule{'' if kept == 1 else 's'}" if kept else ""
        print(f"{info.directory}: {info.entries} entries, {info.bytes / 1e6:.1f} MB{winners}")
    return 0


def _clear() -> int:
    """Remove all entries of the cache."""
    winners = tuning_results.files()
    for path in winners:
        path.unlink(missing_ok=True)
    more = f" and {len(winners)} tuned schedule{'' if len(winners) == 1 else 's'}" if winners else ""
    print(f"removed {cache.clear()} entries{more}")
    return 0
