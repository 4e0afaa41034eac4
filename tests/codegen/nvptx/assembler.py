"""NVIDIA's assembler, where there is one on the path."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from pantile.errors import InternalError
from pantile.target import Target

_ASSEMBLER = shutil.which("ptxas")
_OLDEST = {"sm_70": "sm_75"}  # what recent assemblers know at least; it runs older PTX, too
_SECONDS = 120

has_assembler = _ASSEMBLER is not None
needs_assembler = pytest.mark.skipif(not has_assembler, reason="there is no ptxas here")


def assembled(text: str, target: Target, *options: str) -> str:
    """What the assembler says of PTX; it takes all of it."""
    assert _ASSEMBLER is not None
    capability = f"{target.cpu}a" if f".target {target.cpu}a" in text else _OLDEST.get(target.cpu, target.cpu)
    command = [_ASSEMBLER, "-v", "-arch", capability, *options, "-o", "/dev/null", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode != 0:
        raise InternalError(f"ptxas refuses the generated code: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def spilled(said: str) -> set[str]:
    """What the assembler keeps in memory of threads, in bytes: of code that needs none, 0."""
    return set(re.findall(r"(\d+) bytes (?:stack frame|spill stores)", said))
