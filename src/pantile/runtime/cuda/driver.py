"""The functions of the NVIDIA driver, by the package cuda-bindings, imported on first use."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from ...errors import UserError
from ...forks import Lock, importing
from .failures import failure

NO_DEVICE = 100
_NOT_INITIALIZED = 3

_found: Any = None
_pid = 0
_lock = Lock()


class MissingDriver(UserError):
    """Nothing on this machine can run code for a GPU."""


def driver() -> Any:
    """The functions, each of which returns an error code and its results."""
    if _found is None or _pid != os.getpid():
        _find()
    return _found


def checked(answer: tuple[Any, ...]) -> Any:
    """The result or results of a driver function; raises an error for its error code."""
    if answer[0]:
        raise failure(answer[0])
    return answer[1] if len(answer) == 2 else answer[1:]


def _find() -> None:
    global _found, _pid
    with _lock:
        if _found is not None and _pid != os.getpid():
            raise UserError(
                "this process was forked from one that has used the GPU, which the driver does not support; "
                "start processes afresh, as multiprocessing.get_context('spawn') does"
            )
        if _found is None:
            functions = _imported()
            _initialize(functions)
            _found, _pid = functions, os.getpid()


def _imported() -> Any:
    try:
        with importing:
            functions = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise MissingDriver(
            f"the target cuda needs the package cuda-bindings, which cannot be imported ({error}); "
            "pip install 'pantile[cuda]'"
        ) from error
    return functions


def _initialize(functions: Any) -> None:
    try:
        (error,) = functions.cuInit(0)
    except Exception as failed:  # the library is missing; bindings raise different errors
        raise MissingDriver(
            "there is no NVIDIA driver on this machine (libcuda cannot be loaded); install it, or run with "
            "target='cuda-sim', or without target= on the CPU"
        ) from failed
    if error == NO_DEVICE:
        raise MissingDriver(
            "the NVIDIA driver finds no GPU; look at nvidia-smi and at CUDA_VISIBLE_DEVICES, or run with "
            "target='cuda-sim', or without target= on the CPU"
        )
    if error:
        name = getattr(error, "name", str(error))
        raise MissingDriver(f"the NVIDIA driver does not start ({name}); does nvidia-smi work?") from failure(error)
