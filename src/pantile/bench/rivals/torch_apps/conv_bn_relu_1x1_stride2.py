"""Another window or stride."""

from .conv_bn_relu import prepare

__all__ = ["prepare"]
