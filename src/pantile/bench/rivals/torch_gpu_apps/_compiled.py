"""Formulas, compiled."""

from collections.abc import Callable

import torch

from ..gpu_worker import Tensor


def compiled(formula: Callable[[Tensor], Tensor], image: Tensor) -> Callable[[], Tensor]:
    """The formula of one image, for its shape alone."""
    compute = torch.compile(formula, dynamic=False, fullgraph=True)
    return lambda: compute(image)


def luma(image: Tensor) -> Tensor:
    """Of three planes."""
    return 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2]
