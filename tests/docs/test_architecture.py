"""The import directions of `.importlinter` hold, and the test command is the one that the README and CI name."""

from __future__ import annotations

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
