"""A pipeline runs on whatever is behind the door: here on a backend that computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile import compile, scheduled_pipeline
from pantile.expr.types import DType
from pantile.ir.nodes import Program
from pantile.ir.show import show_program
from pantile.lower.passes import Trace
from pantile.target import Target


class Filling:
    """Fills outputs with a number, and notes what it is asked for."""

    enter = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def check(self, target: Target) -> None:
        self.asked.append("check")

    def kernels(self, program: Program, trace: Trace, debug: bool) -> Program:
        self.asked.append("kernels")
        return program

    def llvm(self, program: Program, target: Target, *, strict: bool, debug: bool) -> str:
        self.asked.append("llvm")
        return show_program(program)

    def assembly(self, text: str, target: Target, debug: bool) -> str:
        return text.upper()

    def artifact(self, program: Program, text: str, target: Target, debug: bool) -> bytes:
        self.asked.append("artifact")
        return program.name.encode()

    def loaded(self, artifact: bytes) -> Filling:
        self.asked.append(f"loaded {artifact.decode()}")
        return self

    def prepare(
        self, inputs: Sequence[Any], outputs: Sequence[Any], numbers: Sequence[DType], labels: Mapping[str, str]
    ) -> Filling:
        shapes = [[a.shape for a in arrays] for arrays in (inputs, outputs)]
        self.asked.append(f"prepare {shapes} {[str(t) for t in numbers]}")
        return self

    def run(self, arrays: Sequence[Any], numbers: Sequence[Any], threads: int) -> bool:
        arrays[-1][...] = numbers[0]
        return True


def scaled() -> pt.Pipeline:
    y, x = pt.vars("y x")
    img, gain, out = pt.Input("img", "float32", ndim=2), pt.Param("gain", "float32"), pt.Func("out")
    out[y, x] = img[y, x] * gain
    return pt.Pipeline(out, shape=img.shape, name="behind_the_door")


def test_all_steps_are_a_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Filling()
    for module in (compile, scheduled_pipeline):
        monkeypatch.setattr(module, "backend_of", lambda target: backend)
    p, img = scaled(), np.zeros((3, 5), np.float32)
    assert (p(img=img, gain=7) == 7).all() and (p(img=img, gain=2) == 2).all()
    shapes = "[[(3, 5)], [(3, 5)]]"
    assert backend.asked == [
        "check",
        "kernels",
        "llvm",
        "artifact",
        "loaded behind_the_door",
        f"prepare {shapes} ['float32']",
    ]
    assert p.llvm() == p.loops() and p.asm() == p.loops().upper()


def test_what_this_machine_cannot_run_is_refused() -> None:
    foreign = "x86-64-v3" if pt.machine.detect().architecture != "x86_64" else "aarch64"
    with pytest.raises(pt.UserError, match="cannot run; look at it"):
        scaled().with_options(target=foreign)(img=np.zeros((3, 5), np.float32), gain=1)
