"""Apps in Triton: filters whose programs go down some rows with what they keep in registers, and a matrix product in
the usual blocks, in float32 without TF32, with the best of a few block sizes.
"""

import torch

torch.set_grad_enabled(False)
