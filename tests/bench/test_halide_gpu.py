"""Halide's published schedules for GPUs are legal for our programs: they lower for a GPU that is not there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pantile.apps import APPS
from pantile.bench.contender import Unavailable
from pantile.bench.rivals import halide
from pantile.bench.rivals.process import BENCH_FOLDER, programs

from .shorter import setting

LOWERING = """
import importlib, json, sys
sys.path.append(sys.argv[1])
import halide as hl
from rivals.halide_worker import HalideArray, _bind_image
exec(sys.argv[5])
app, inputs, file = sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
program = importlib.import_module(f"rivals.halide_apps.{app}")
spare = getattr(program, "SPARE_ROWS", 0)
images = {name: _bind_image(name, HalideArray(dtype, shape, spare))[0] for name, (dtype, shape) in inputs.items()}
target = hl.Target("x86-64-linux-cuda-cuda_capability_70")
output = program.build(images, target, manual=True)
output.compile_to_lowered_stmt(file, output.infer_arguments(), hl.StmtOutputFormat.Text, target)
"""
WHOLE_BLOCKS = {"a": (64, 64), "b": (64, 128)}  # the published product is for sizes that blocks divide


@pytest.mark.parametrize("app", sorted(programs("halide")))
def test_lowers(app: str, tmp_path: Path) -> None:
    try:
        python = halide.find_python()
    except Unavailable as reason:
        pytest.skip(str(reason))
    shapes = WHOLE_BLOCKS if app == "matmul" else APPS[app].sizes["small"]
    inputs = {name: (a.dtype.str, a.shape) for name, a in APPS[app].random(shapes).items()}
    file = tmp_path / "lowered.txt"
    arguments = [BENCH_FOLDER, app, json.dumps(inputs), file, setting(app)]
    done = subprocess.run([python, "-c", LOWERING, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "halide_cuda_run(" in file.read_text(errors="replace")
