"""The import directions of `.importlinter` hold, and the test command is the one that the README and CI name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_point_one_way() -> None:
    check = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    found = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "\ntests/run\n" in (ROOT / "README.md").read_text()
    commands = [s for s in (ROOT / ".ci/run").read_text().splitlines() if s and not s.startswith("#")]
    assert commands == ['exec "$(dirname "$0")/../tests/run" </dev/null']


def test_properties_are_cached_without_a_lock() -> None:
    """See `cached`; benchmarks are programs of their own, which do not fork."""
    files = [f for f in (ROOT / "src/pantile").rglob("*.py") if f.parent.name != "bench" and f.name != "cached.py"]
    of_python = [f.name for f in files if re.search(r"functools.*cached_property", f.read_text())]
    assert not of_python, "from ..cached import cached_property, instead of that of functools"


def test_dataclasses_are_quick_to_define() -> None:
    """See `dataclass`; those of programs (apps, benchmarks, the command) are Python's."""
    root = ROOT / "src/pantile"
    files = [f for f in root.rglob("*.py") if f.relative_to(root).parts[0] not in ("apps", "bench", "cli")]
    of_python = [f.name for f in files if re.search(r"^from dataclasses import .*\bdataclass\b", f.read_text(), re.M)]
    assert not of_python, "from ..dataclass import dataclass, instead of that of dataclasses"
