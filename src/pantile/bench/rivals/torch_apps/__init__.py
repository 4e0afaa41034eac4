"""Apps as calls of PyTorch, in the layout it is fastest on; weights are brought into it beforehand."""

import torch


def set_threads(threads: int) -> None:
    """How many it runs on."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
