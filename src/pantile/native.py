"""Initializes LLVM in this process, and compiles and loads code for this machine without optimizing it.

Such code is the thread pool and the loops that measure the machine. Kernels are optimized (`codegen/compile.py`) and
may be unloaded, so they have a linker of their own (`codegen/engine.py`).
"""

from __future__ import annotations

import llvmlite.binding as llvm

from .forks import Lock, check_llvm

_lock = Lock()
_is_set_up = False
_is_set_up_for_gpus = False
PTX = "nvptx64-nvidia-cuda"
# This version of LLVM checks for overflow wherever an index could be derived from an earlier one. For kernels with many
# addresses, these checks take most of the time, and our indices never overflow.
_GUARDS_REUSE = 22


def set_up_llvm() -> None:
    """Initialize LLVM. Must be called before any target is used."""
    global _is_set_up
    check_llvm()
    with _lock:
        if not _is_set_up:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            _is_set_up = True


def set_up_gpus() -> None:
    """Set options for PTX, which must happen before any target machine exists: addresses in shared memory have 32
    bits."""
    global _is_set_up_for_gpus
    set_up_llvm()
    llvm.Target.from_triple(
        PTX
    )  # raises an error if LLVM was built without it, where setting the option would end the process
    with _lock:
        if not _is_set_up_for_gpus:
            llvm.set_option("pantile", "--nvptx-short-ptr")
            if llvm.llvm_version_info[0] == _GUARDS_REUSE:
                llvm.set_option("pantile", "--enable-poison-reuse-guard=false")
            _is_set_up_for_gpus = True


def object_code(text: str, level: int) -> bytes:
    """Compile LLVM text for this machine. `level` is that of instruction selection; nothing else is optimized."""
    machine = _code_generator(level)
    return bytes(machine.emit_object(llvm.parse_assembly(text)))


def loaded(code: bytes) -> llvm.ExecutionEngine:
    """Link object code into this process. It stays loaded as long as the result lives."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _code_generator(0))
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _code_generator(level: int) -> llvm.TargetMachine:
    set_up_llvm()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=level, jit=True
    )
