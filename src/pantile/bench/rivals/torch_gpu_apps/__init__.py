"""Apps in PyTorch on a GPU: filters as formulas for `torch.compile`, products and convolutions as calls of its
libraries, cuBLAS and cuDNN, in float32 throughout.
"""

import torch

torch.set_grad_enabled(False)
torch.set_float32_matmul_precision("highest")
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
