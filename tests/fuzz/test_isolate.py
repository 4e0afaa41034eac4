"""Cases in processes of their own, and many cases in one process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .isolate import isolated, isolated_together
from .test_campaign import die_of


def test_cases_share_a_child(tmp_path: Path) -> None:
    def cases() -> None:
        for case in range(4):
            isolated(lambda case=case: (tmp_path / str(case)).write_text(str(os.getpid())))

    isolated_together(cases)
    (child,) = {(tmp_path / str(case)).read_text() for case in range(4)}
    assert child != str(os.getpid())


def test_the_case_that_dies_is_known() -> None:
    begun: list[int] = []  # the cases that this process has begun

    def cases() -> None:
        for case in range(4):
            begun.append(case)
            isolated(lambda case=case: die_of(signal.SIGSEGV) if case == 2 else None)

    with pytest.raises(AssertionError, match="died of SIGSEGV"):
        isolated_together(cases)
    assert begun == [0, 1, 2]


def test_the_case_that_fails_is_known() -> None:
    def cases() -> None:
        for case in range(4):
            isolated(lambda case=case: pytest.fail("not this one") if case == 1 else None)

    with pytest.raises(AssertionError, match="not this one"):
        isolated_together(cases)


def test_cases_that_fail_only_together_fail() -> None:
    done: list[int] = []

    def cases() -> None:
        for case in range(2):
            isolated(lambda case=case: done.append(case))
            assert len(done) < 2, "the second is done beside the first"

    with pytest.raises(AssertionError, match=r"(?s)fails only where cases share a process: .*beside the first"):
        isolated_together(cases)


def test_each_case_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit begins anew with each case, so together they may take longer."""
    limits: list[int] = []
    monkeypatch.setattr("tests.fuzz.isolate.limit_time", limits.append)

    def cases() -> None:
        for _ in range(3):
            isolated(lambda: None)
        assert limits == [60] * 4, "one for the child, and one for each case"

    isolated_together(cases)
