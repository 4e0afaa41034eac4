"""What a target says, however it is named."""

from __future__ import annotations

import pickle
from dataclasses import replace

import llvmlite.binding as llvm
import pytest

from pantile.errors import UserError
from pantile.machine import named as machine_named
from pantile.target import CPUS, Kind, Memory, host, named
from pantile.target.description import cpu_target, llvm_target


def test_by_name() -> None:
    assert named("host") == host()
    assert [(t.architecture, t.vector_bits, t.registers) for t in CPUS.values()] == [
        ("x86", 256, 16),
        ("x86", 512, 32),
        ("aarch64", 128, 32),
        ("riscv", 128, 32),
    ]
    assert host().vector_bits >= 128
    with pytest.raises(UserError, match=r"'sparc' is not a target; use one of host, x86-64-v3"):
        named("sparc")


def test_features_are_said_or_implied() -> None:
    assert llvm_target("x86_64-unknown-linux-gnu", "skylake", "+avx2").vector_bits == 256
    assert llvm_target("x86_64-unknown-linux-gnu", "skylake", "-avx2").vector_bits == 128
    assert [t.native_half for t in CPUS.values()] == [False, False, True, True]
    assert [t.multiplies_by_lane for t in CPUS.values()] == [False, False, True, False]


@pytest.mark.parametrize(
    ("said", "meant"),
    [("x86_64", "x86"), ("AMD64", "x86"), ("arm64", "aarch64"), ("riscv64", "riscv"), ("armv7", "armv7")],
)
def test_systems_call_an_architecture_differently(said: str, meant: str) -> None:
    assert cpu_target(said, 128).architecture == meant


def test_of_a_machine() -> None:
    found = {n: machine_named(n).target for n in ("i7-6700", "opteron-6386-se", "cortex-a15", "sapphire-rapids-8480")}
    assert [(t.architecture, t.vector_bits, t.registers) for t in found.values()] == [
        ("x86", 256, 16),
        ("x86", 256, 16),
        ("armv7", 128, 16),
        ("x86", 512, 32),
    ]
    assert [t.stores_past_caches for t in found.values()] == [True, True, False, True]
    wide_lines = replace(machine_named("i7-6700"), caches=(replace(machine_named("i7-6700").l1, line=128),))
    assert wide_lines.target.line == 128


def test_a_machine_for_another_target() -> None:
    arm = machine_named("neoverse-n1")
    assert arm.for_target(CPUS["aarch64"]) is arm
    foreign = arm.for_target(CPUS["x86-64-v3"])
    assert (foreign.registers, foreign.target.multiplies_by_lane, foreign.cores) == (16, False, arm.cores)


def test_kinds_read_as_schedules_write_them() -> None:
    assert f"{Kind.VECTOR} {Memory.HEAP}" == "vector heap" and Kind("unroll") is Kind.UNROLL


def test_the_same_in_every_process() -> None:
    assert pickle.loads(pickle.dumps(host())) == host()
    assert "{" not in repr(host())  # sets have no order, and this is part of keys


def test_features_that_llvm_does_not_use_well_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With avx512vbmi, instruction selection did not end on a pipeline of pixels of three bytes."""
    features = llvm.FeatureMap({"avx512f": True, "avx512vbmi": True, "avx512vbmi2": True})
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    assert host.__wrapped__().features == "+avx512f,-avx512vbmi,+avx512vbmi2"
