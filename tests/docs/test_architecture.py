"""The test command is that of the README and of CI, docs name files that exist, and imports are quick."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_files_that_docs_name_exist(page: str) -> None:
    """By their path in the repository or in the package, or by their name in the folder that the text is about."""
    names = set(re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", (ROOT / "docs" / page).read_text()))
    files = [str(f) for top in ("src", "tests", "tools") for f in (ROOT / top).rglob("*.py")]
    assert not [name for name in names if not any(f.endswith(f"/{name}") for f in files)]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "\ntests/run\n" in (ROOT / "README.md").read_text()
    commands = [s for s in (ROOT / ".ci/run").read_text().splitlines() if s and not s.startswith("#")]
    assert commands == ['exec "$(dirname "$0")/../tests/run" </dev/null']


def test_properties_are_cached_without_a_lock() -> None:
    """See `dataclass`; benchmarks are programs of their own, which do not fork."""
    files = [f for f in (ROOT / "src/pantile").rglob("*.py") if f.parent.name != "bench" and f.name != "dataclass.py"]
    of_python = [f.name for f in files if re.search(r"functools.*cached_property", f.read_text())]
    assert not of_python, "from ..dataclass import cached_property, instead of that of functools"


def test_dataclasses_are_quick_to_define() -> None:
    """See `dataclass`; those of programs (apps, benchmarks, the command) are Python's."""
    root = ROOT / "src/pantile"
    files = [f for f in root.rglob("*.py") if f.relative_to(root).parts[0] not in ("apps", "bench", "cli")]
    of_python = [f.name for f in files if re.search(r"^from dataclasses import .*\bdataclass\b", f.read_text(), re.M)]
    assert not of_python, "from ..dataclass import dataclass, instead of that of dataclasses"
