"""The tables of the documentation are what the measured files say."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .snippets import ROOT


@pytest.fixture(scope="module")
def results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results", ROOT / "tools" / "results.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["results"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))])
def test_tables_are_what_their_files_say(results: ModuleType, page: str) -> None:
    text = (ROOT / page).read_text()
    assert results.written(text) == text, "run `python tools/results.py`"


def test_every_measured_file_has_a_table() -> None:
    pages = "".join(p.read_text() for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    unused = [p.name for p in (ROOT / "docs" / "results").glob("*.json") if p.name not in pages]
    assert not unused


def test_a_table_follows_its_file(results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def result(system: str, schedule: str, ms: float) -> dict[str, object]:
        return {"app": "blur", "system": system, "schedule": schedule, "threads": 2, "ms": ms}

    document = {
        "run": {"date": "2026-01-02", "commit": "0123456789abcdef", "command": "pantile bench blur"},
        "machine": {"cpu": "a CPU", "cores": 2},
        "results": [result("pantile", "auto", 2.0), result("halide", "manual", 3.0), result("halide", "adams", 2.5)],
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    monkeypatch.setattr(results, "DATA", tmp_path)
    page = "Before.\n<!-- table: beside a.json -->\nold\n<!-- end -->\nAfter.\n"
    assert results.written(page) == (
        "Before.\n<!-- table: beside a.json -->\n"
        "2026-01-02, commit 0123456789, a CPU, 2 cores: `pantile bench blur`\n\n"
        "| ms | auto | halide:manual | halide:adams | best / auto |\n| --- | ---: | ---: | ---: | ---: |\n"
        "| blur | 2.00 | 3.00 | 2.50 | 1.25 |\n| geometric mean |  |  |  | 1.25 |\n<!-- end -->\nAfter.\n"
    )
