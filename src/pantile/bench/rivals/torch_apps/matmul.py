"""The matrix product."""

from collections.abc import Callable, Mapping

import torch

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Tensors share the arrays' memory."""
    a, b = torch.from_numpy(inputs["a"]), torch.from_numpy(inputs["b"])
    (out,) = outputs
    result = torch.from_numpy(out)

    def compute() -> Array:
        torch.mm(a, b, out=result)
        return out

    return compute
