"""The functions of the NVIDIA driver, from the package cuda-bindings, which is imported on first use."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from ...errors import PantileError, RunError, UserError
from ...forks import Lock, importing

NO_DEVICE = 100
_NOT_INITIALIZED = 3

_found: Any = None
_pid = 0
_lock = Lock()
OUT_OF_MEMORY = 2
INVALID_HANDLE = 400
_DESTROYED = (709, 201, INVALID_HANDLE)  # CONTEXT_IS_DESTROYED, INVALID_CONTEXT
_TOO_OLD = (222, 35, 209, 803)  # UNSUPPORTED_PTX_VERSION, of the runtime; NO_BINARY_FOR_GPU; SYSTEM_DRIVER_MISMATCH
_LAUNCH_LIMITS = (1, 701)  # INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES
_PTX = 218  # INVALID_PTX
# Errors of kernels, which every later call in the process's context also returns.
_CRASHES = (700, 702, 710, 714, 715, 716, 717, 718, 719)


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


class OutOfDeviceMemory(RunError):
    """The device is out of memory; nothing was written, and smaller calls still work."""


class DeviceCrash(RunError):
    """A kernel has failed, which also destroys the process's context on that device."""


def name_of(error: Any) -> str:
    """The driver's name of an error code."""
    return str(getattr(error, "name", f"error {int(error)}"))


def failure(error: Any) -> PantileError:
    """The exception for an error code."""
    code, name = int(error), name_of(error)
    if code == OUT_OF_MEMORY:
        return out_of_memory(0)
    if code in _CRASHES:
        return DeviceCrash(
            f"a kernel has failed on the GPU ({name}), in this call or in one before it that was not waited for; the "
            "CUDA context of this process is lost, so that its pipelines on this GPU, and other libraries' work there, "
            "fail from now on: start the process anew. Pipelines on the CPU and other processes are not affected. "
            "target='cuda-sim' finds reads and writes outside of arrays"
        )
    if code in _TOO_OLD:
        return UserError(
            f"the NVIDIA driver is too old for this code ({name}); update the driver, or compile for an older GPU, "
            "such as target='sm_80'"
        )
    if code == _PTX:
        return UserError(f"the driver refuses the PTX ({name}): it is for another GPU, or the driver is too old")
    return RunError(f"the NVIDIA driver has failed ({name})")


def launch_failure(error: Any, stream: int, launch: str) -> PantileError:
    """The exception for a failed launch; `launch` describes it."""
    if int(error) in _DESTROYED:
        return UserError(
            f"the stream {stream:#x} cannot be used ({name_of(error)}); if it was destroyed, make another one current"
        )
    if int(error) in _LAUNCH_LIMITS:
        return UserError(
            f"the GPU refuses to launch {launch} ({name_of(error)}); give blocks fewer threads or less shared memory"
        )
    return failure(error)


def out_of_memory(needed: int) -> OutOfDeviceMemory:
    """The error for an allocation of this many bytes that failed; 0 for an unknown number."""
    how_much = f"{needed:,} bytes of" if needed else "the"
    return OutOfDeviceMemory(
        f"out of memory on the GPU: there is no room for {how_much} intermediate values and results of this call; "
        "nothing is lost, and smaller calls still work. Free arrays that are no longer needed"
    )
