"""Lazy imports of names that few programs need: their modules are imported on first use.

    if TYPE_CHECKING:
        from .page import as_page, write_page
    else:
        __getattr__, __dir__ = imported_later(__name__, page="as_page write_page")

A name equal to that of its module is the module itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from .forks import importing


def imported_later(package: str, **names: str) -> tuple[Callable[[str], Any], Callable[[], Iterable[str]]]:
    """`__getattr__` and `__dir__` for a package. `names` maps each module to the names that it provides."""
    modules = {name: module for module, of in names.items() for name in of.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with importing:
            module = import_module(f"{package}.{modules[name]}")
        value = module if name == modules[name] else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: {*vars(sys.modules[package]), *modules}
