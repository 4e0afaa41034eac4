"""The hot loops of products and convolutions, as PTX: sums in registers, factors by 16 bytes from shared memory."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from pantile.apps import APPS
from pantile.target import named

from .assembler import assembled, needs_assembler, spilled
from .hand_built import loops


@lru_cache
def code(name: str) -> str:
    app = APPS[name]
    assert app.on_gpu is not None
    return app.build().with_options(target="cuda-sim").with_schedule(app.on_gpu()).asm("sm_90")


def hottest(name: str) -> str:
    """The innermost loop that has the most multiplications: that of blocks which lie inside."""
    found = [loop for loop in loops(code(name)) if len(loops(loop)) == 1]
    return max(found, key=lambda loop: loop.count("fma.rn") - loop.count("ld.shared.b32"))


def test_product() -> None:
    loop = hottest("matmul")
    assert loop.count("fma.rn.f32") == 8 * 16
    # 8 numbers of one factor and 16 of the other, four at a time.
    assert loop.count("ld.shared.v4.b32") == (8 + 16) // 4
    assert "ld.shared.b32" not in loop
    others = [line for line in loop.splitlines() if line.strip() and not re.search(r"fma\.rn|ld\.shared|\$L__", line)]
    assert len(others) <= 6, others  # counting, and the two addresses
    assert not re.search(r"\.local|ld\.global|\ws64|\wb64|\wu64|bar\.sync", loop)


def test_slices_are_on_their_way() -> None:
    text = code("matmul")
    assert "cp.async.wait_group \t1;" in text and ".local" not in text
    around = min((loop for loop in loops(text) if "cp.async.wait_group" in loop), key=len)
    assert around.count("bar.sync") == 1
    assert "ld.global" not in around and "st.shared" not in around
    assert re.search(r"cp\.async\.cg\.shared\.global \[.*\], \[.*\], 16;", around)


def test_convolution() -> None:
    """Ten pixels by eight channels at three places of the window: weights by fours, pixels by twos."""
    loop = hottest("conv_layer")
    assert loop.count("fma.rn.f32") == 10 * 8 * 3
    assert loop.count("ld.shared.v4.b32") == 3 * 2 and loop.count("ld.shared.v2.b32") == 6
    assert not re.search(r"\.local|ld\.global|bar\.sync", loop)


@needs_assembler
@pytest.mark.parametrize(("name", "registers"), [("matmul", 255), ("conv_layer", 128)])
def test_registers(name: str, registers: int) -> None:
    """As many as leave room for two blocks; what the convolution spills are addresses, outside of its hot loop."""
    said = assembled(code(name), named("sm_90"))
    assert all(int(n) <= registers for n in re.findall(r"Used (\d+) registers", said))
    assert max(map(int, spilled(said))) <= (0 if name == "matmul" else 256)
