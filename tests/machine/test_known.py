"""Machines by name."""

from __future__ import annotations

import pickle
import struct
from dataclasses import fields

import pytest

from pantile import UserError
from pantile.machine import NAMED, Cpu, Gpu, Machine, named

DOCUMENTS = (
    "haswell-e5-2630-v3",
    "haswell-e5-2620-v3",
    "opteron-6386-se",
    "i7-5930k",
    "i7-6700",
    "cortex-a15",
    "cortex-a57",
    "broadwell-e5-2683-v4",
)
RENAMED = r"^pt\.machine\.Machine\(\.\.\.\) is now pt\.machine\.Cpu\(\.\.\.\)$"


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
    with pytest.raises(UserError, match=r"'pentium' is not a machine that is known by name; use one of hasw.*, H200$"):
        named("pentium")


def test_a_machine_is_a_cpu_or_a_gpu() -> None:
    assert isinstance(named("i7-6700"), Machine) and isinstance(named("i7-6700"), Cpu)
    assert isinstance(named("H200"), Machine) and isinstance(named("H200"), Gpu)


def test_machine_was_the_name_of_cpu() -> None:
    known = named("i7-6700")
    values = {f.name: getattr(known, f.name) for f in fields(known)}
    with pytest.warns(DeprecationWarning, match=RENAMED) as said:
        made: object = Machine(**values)
    assert type(made) is Cpu and made == known and hash(made) == hash(known)
    assert said[0].filename == __file__


def test_values_saved_under_the_old_name_are_read() -> None:
    saved = pickle.dumps(named("i7-6700")).replace(b"\x8c\x03Cpu", b"\x8c\x07Machine")
    with pytest.warns(DeprecationWarning, match=RENAMED):
        assert pickle.loads(_framed(saved)) == named("i7-6700")


def _framed(pickled: bytes) -> bytes:
    """With the length of its one frame told anew."""
    return pickled[:3] + struct.pack("<Q", len(pickled) - 11) + pickled[11:]
