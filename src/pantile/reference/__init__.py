"""The reference evaluator: the meaning of a pipeline in plain NumPy, slow and right, independent of analysis and
lowering."""

from .stages import evaluate

__all__ = ["evaluate"]
