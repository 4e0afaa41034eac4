"""The matrix product: cuBLAS, in float32 without TF32."""

import torch

from ..gpu_worker import Inputs, Program, Shapes


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    a, b = inputs["a"], inputs["b"]
    result = torch.empty(shapes[0], device=a.device)
    return lambda: torch.mm(a, b, out=result)
