"""What is known of GPUs by the name of their code."""

from __future__ import annotations

import pytest

from pantile.target import GPUS
from pantile.target.description import gpu_target
from pantile.target.gpu import LONGEST_ACCESS, compute_capability, copies_asynchronously


def test_compute_capabilities_are_numbers() -> None:
    names = ("sm_75", "sm_90a", "sm_103a", "sm_120", "sm_100f")
    assert [compute_capability(n) for n in names] == [(7, 5), (9, 0), (10, 3), (12, 0), (10, 0)]


@pytest.mark.parametrize(
    ("name", "has_them"),
    [("sm_70", False), ("sm_75", False), ("sm_80", True), ("sm_90a", True), ("sm_100", True), ("sm_120", True)],
)
def test_what_came_with_ampere(name: str, has_them: bool) -> None:
    """Numbers of three digits are newer than those of two."""
    assert copies_asynchronously(name) == gpu_target(name).native_bfloat == has_them


def test_by_name() -> None:
    assert list(GPUS) == ["sm_70", "sm_75", "sm_80", "sm_90"]
    assert {t.lanes(8) for t in GPUS.values()} == {LONGEST_ACCESS}
