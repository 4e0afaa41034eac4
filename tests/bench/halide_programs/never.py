"""A program that takes forever to build."""

import time
from typing import Any


def build(images: Any, target: Any, *, manual: bool) -> Any:
    del images, target, manual
    time.sleep(1000)
