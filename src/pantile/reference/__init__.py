"""The meaning of a pipeline: a plain NumPy evaluator, slow and right, that knows nothing of analysis or lowering."""

from .evaluate import evaluate

__all__ = ["evaluate"]
