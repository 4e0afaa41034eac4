"""The matrix product: cuBLAS, in float32 without TF32."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

Tensor = Any


def prepare(inputs: Mapping[str, Tensor], shapes: tuple[tuple[int, ...], ...]) -> Callable[[], Tensor]:
    """Into the same matrix at every call."""
    a, b = inputs["a"], inputs["b"]
    result = torch.empty(shapes[0], device=a.device)
    return lambda: torch.mm(a, b, out=result)
