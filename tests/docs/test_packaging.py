"""What the package says of itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pantile as pt

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text("utf8")


def test_the_newest_version_has_its_changes() -> None:
    versions = re.findall(r"^## \[(\d.*)\]", (ROOT / "CHANGELOG.md").read_text("utf8"), re.MULTILINE)
    assert pt.__version__ == versions[0]
    assert versions == sorted(versions, key=lambda v: [int(n) for n in v.split(".")], reverse=True)


def test_tested_versions_of_python_are_those_that_it_says() -> None:
    stated = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    oldest = re.search(r'requires-python = ">=(.*)"', PROJECT)
    for workflow in ("tests", "package"):
        text = (ROOT / f".github/workflows/{workflow}.yml").read_text("utf8")
        tested = re.search(r"python: \[(.*)\]", text)
        assert tested is not None and oldest is not None
        assert re.findall(r"3\.\d+", tested[1]) == [stated[0], stated[-1]]
        assert stated[0] == oldest[1]
        assert "ubuntu-24.04, ubuntu-24.04-arm" in text


def test_elsewhere_than_on_linux_a_sentence_says_so() -> None:
    assert '"Operating System :: POSIX :: Linux"' in PROJECT
    code = "import sys; sys.platform = 'win32'; import pantile"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.returncode == 1
    assert told.stderr.splitlines()[-1].startswith("ImportError: Pantile runs on Linux, and this is win32; on Windows")
