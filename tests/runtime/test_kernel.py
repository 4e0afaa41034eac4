"""What a kernel's codes and reports say, and how the object code of one is kept."""

from __future__ import annotations

import pytest

from pantile.errors import RunError, UserError
from pantile.runtime import threads
from pantile.runtime.kernel import ObjectCode, failure

BUFFERS = ("img", "out", "t")


def test_out_of_memory() -> None:
    error = failure(-1, [], BUFFERS, {})
    assert isinstance(error, RunError) and str(error).startswith("out of memory: ")


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ([1, 0, 9, 0, 8, 0, 0, 0], "Input 'img' is read at element 9 of its memory, which has elements 0 .. 8"),
        ([2, 2, -1, 0, 3, 0, 0, 0], "t is written at element -1 of its memory, which has elements 0 .. 3"),
    ],
)
def test_reports_name_the_buffer(report: list[int], text: str) -> None:
    assert str(failure(1, report, BUFFERS, {"img": "Input 'img'"})).startswith(text)


def test_object_code_is_kept_whole() -> None:
    code = ObjectCode("pantile.f", BUFFERS, True, (b"\n\0code\n", b"", b"\n"))
    assert ObjectCode.from_bytes(code.to_bytes()) == code


def test_a_wrong_number_of_threads_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise ValueError("PANTILE_NUM_THREADS must be a number of threads, not 'many'")

    monkeypatch.setattr(threads, "pool", refuse)
    with pytest.raises(UserError, match="PANTILE_NUM_THREADS must be a number of threads, not 'many'"):
        threads.get_num_threads()
