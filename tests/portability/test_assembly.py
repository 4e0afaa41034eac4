"""The reader of assembly finds what the tests of hot loops say is not there."""

from __future__ import annotations

import re

import pytest

import pantile as pt

from .assembly import DIALECTS, hottest, steady_loops

AARCH64 = """
    .type   kernel,@function
kernel:
    mov x8, xzr
.LBB0_1:
    ldr q0, [x0, x8]
.LBB0_2:
    ldr q1, [x1]
    fmla    v0.4s, v1.4s, v2.4s
    str q0, [sp, #16]
    b.ne    .LBB0_2
    b.lt    .LBB0_1
.LBB0_3:
    ldr s0, [x0]
    fmadd   s0, s1, s2, s3
    bl  expf
    cbnz    x8, .LBB0_3
    ret
"""

FOUND = {
    "aarch64": {
        "jump": ["b .L1", "b.ne .L1", "cbz x0, .L1", "tbnz w0, #0, .L1"],
        "call": ["bl expf", "blr x8"],
        "vector": ["fmul v0.4s, v1.4s, v2.4s", "ldr q0, [x1]", "ldp q0, q1, [x1]"],
        "scalar_float": ["fmul s0, s1, s2", "fmadd d0, d1, d2, d3", "fdiv s0, s1, s2"],
        "stack": ["str x0, [sp, #8]", "ldp q0, q1, [sp]"],
        "vector_stack": ["str q0, [sp]"],
    },
    "x86": {
        "jump": ["jne .L1", "jmp .L1"],
        "call": ["callq expf@PLT"],
        "vector": ["vmulps %ymm0, %ymm1, %ymm2", "vmovups (%rax), %zmm0"],
        "scalar_float": ["vmulss %xmm0, %xmm1, %xmm2", "vfmadd213ss %xmm0, %xmm1, %xmm2", "vdivsd %xmm0, %xmm1, %xmm2"],
        "stack": ["movq %rax, 8(%rsp)", "vaddps 32(%rsp), %ymm0, %ymm1"],
        "vector_stack": ["vmovups %ymm0, (%rsp)"],
    },
    "riscv": {
        "jump": ["j .L1", "bnez a0, .L1", "blt a0, a1, .L1"],
        "call": ["call expf", "jalr a0"],
        "vector": ["vle32.v v8, (a0)", "vfmacc.vv v8, v9, v10"],
        "setting": ["vsetivli zero, 4, e32, m1, ta, ma"],
        "scalar_float": ["fmul.s fa0, fa1, fa2", "fmadd.s fa0, fa1, fa2, fa3"],
        "stack": ["sd a0, 8(sp)", "vs1r.v v8, (a0)"],
        "vector_stack": ["vl2re32.v v8, (a0)"],
    },
}
NOT_FOUND = {
    "aarch64": {"vector": ["fmul s0, s1, s2"], "scalar_float": ["fmul v0.4s, v1.4s, v2.4s"], "call": ["b .L1"]},
    "x86": {"vector": ["vmulss %xmm0, %xmm1, %xmm2"], "scalar_float": ["vmulps %ymm0, %ymm1, %ymm2"]},
    "riscv": {"vector": ["vsetivli zero, 4, e32, m1, ta, ma"], "scalar_float": ["vfmul.vv v8, v9, v10"]},
}


@pytest.mark.parametrize("arch", DIALECTS)
def test_patterns(arch: str) -> None:
    for expected, cases in ((True, FOUND[arch]), (False, NOT_FOUND[arch])):
        for what, instructions in cases.items():
            for i in instructions:
                assert (re.match(getattr(DIALECTS[arch], what), i) is not None) == expected, (what, i)


def test_loops() -> None:
    (loop,) = steady_loops(AARCH64, "aarch64")
    assert loop.function == "kernel" and len(loop.instructions) == 4 and len(loop.vectors) == 3
    assert loop.like(loop.dialect.vector_stack) == ["str q0, [sp, #16]"]
    assert hottest(AARCH64, "aarch64").instructions == loop.instructions


@pytest.mark.parametrize(("dtype", "lanes"), [("uint8", 16), ("bfloat16", 32)])
def test_pixels_in_which_a_channel_comes_twice(dtype: str, lanes: int) -> None:
    """LLVM (22) takes forever over bytes 0 1 2 2 3 4 5 5 ... of a vector if it has AVX-512. What is computed of 16-bit
    floats is twice as wide as they are."""
    y, x, c = pt.vars("y x c")
    img, out = pt.Input("img", dtype, shape=(None, None, 3)), pt.Func("out")
    channel = pt.minimum(c, 2)
    out[y, x, c] = pt.maximum(img[y, x, channel], img[y, x + 1, channel])
    pixels = pt.on("out").vectorize("x", lanes).unroll("c", 4).reorder("y", "c", "x", "x_v", "c_u")
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1, 4), schedule=pt.Schedule(pixels))
    p = p.with_options(target="x86-64-v4")
    assert ("vpmaxub" if dtype == "uint8" else "vmaxps") in p.asm()
