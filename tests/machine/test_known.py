"""Machines by name."""

from __future__ import annotations

import pytest

from pantile import UserError
from pantile.machine import NAMED, named

DOCUMENTS = (
    "haswell-e5-2630-v3", "haswell-e5-2620-v3", "opteron-6386-se", "i7-5930k", "i7-6700", "cortex-a15", "cortex-a57",
    "broadwell-e5-2683-v4",
)  # fmt: skip


@pytest.mark.parametrize("name", [*DOCUMENTS, "neoverse-n1", "sapphire-rapids-8480"])
def test_plausible(name: str) -> None:
    machine = named(name)
    assert machine.name == name and machine.threads >= machine.cores >= 1
    sizes = [c.size for c in machine.caches]
    assert sizes == sorted(sizes) and len(set(sizes)) == len(sizes)
    speeds = [c.bandwidth for c in machine.caches]
    assert speeds == sorted(speeds, reverse=True) and speeds[-1] >= machine.core_bandwidth
    assert machine.bandwidth >= machine.core_bandwidth > 0
    assert machine.vector_bits in (128, 256, 512)


def test_all_are_tested() -> None:
    assert set(NAMED) == {*DOCUMENTS, "neoverse-n1", "sapphire-rapids-8480"}


def test_the_widest_vectors() -> None:
    assert named("sapphire-rapids-8480").lanes(32) == 16
    assert named("haswell-e5-2630-v3").l2.per_core == 256 << 10
    assert named("cortex-a57").l2.per_core == 512 << 10, "halide-autoscheduler §5.4: the per-core fraction of L2"


def test_unknown() -> None:
    with pytest.raises(UserError, match="'pentium' is not a machine that is known by name; use one of haswell"):
        named("pentium")
