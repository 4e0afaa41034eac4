"""The matrix product in blocks, in float32 without TF32."""

from collections.abc import Mapping

import torch
import triton
import triton.language as tl

from ..gpu_worker import Inputs, Program, Shapes, Tensor

GROUP = 8  # rows of blocks that share columns of b in the cache
CONFIGS = [
    triton.Config({"BM": m, "BN": n, "BK": k}, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in (
        (64, 64, 16, 4, 3),
        (128, 64, 16, 4, 3),
        (128, 128, 16, 8, 3),
        (64, 128, 32, 8, 2),
    )
]


@triton.autotune(configs=CONFIGS, key=["m", "n", "k"])
@triton.jit
def _matmul(a, b, c, m, n, k, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0)
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    in_group = GROUP * columns
    first = program // in_group * GROUP
    group = tl.minimum(rows - first, GROUP)
    i = (first + program % in_group % group) * BM + tl.arange(0, BM)
    j = (program % in_group // group) * BN + tl.arange(0, BN)
    step = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        r = start + step
        left = tl.load(a + i[:, None] * k + r[None, :], mask=(i[:, None] < m) & (r[None, :] < k), other=0.0)
        right = tl.load(b + r[:, None] * n + j[None, :], mask=(r[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    a, b = inputs["a"], inputs["b"]
    (m, k), n = a.shape, b.shape[1]
    result = torch.empty(shapes[0], device=a.device)

    def grid(meta: Mapping[str, int]) -> tuple[int]:
        return (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)

    def compute() -> Tensor:
        _matmul[grid](a, b, result, m, n, k, GROUP=GROUP)
        return result

    return compute
