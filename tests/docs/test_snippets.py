"""Every Python block of the documentation runs, and prints what the documentation says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .snippets import FILES, ROOT, blocks, run


def relative(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_snippets(file: Path, update_golden: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # a snippet may write files
    monkeypatch.delenv("PANTILE_SCHEDULE")  # as readers have it
    found = run(file)
    if update_golden:
        file.write_text(found)
    assert found == file.read_text(), "if the new output is right, run pytest --update-golden and review the diff"


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_every_block_says_what_it_is(file: Path) -> None:
    known = re.compile(r"python|python skip: \S.*|output|sh|text")
    for block in blocks(file.read_text()):
        assert known.fullmatch(block.info), f"{relative(file)}:{block.line}: a block of {block.info!r}"


@pytest.mark.parametrize("file", FILES, ids=relative)
def test_links_lead_somewhere(file: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", file.read_text()):
        assert (file.parent / target).exists(), f"{relative(file)} links to {target}"
