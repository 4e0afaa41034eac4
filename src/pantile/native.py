"""LLVM in this process: set up once, and code for this machine that is made as it is written and loaded to stay.

That is the thread pool and the loops that measure the machine. Kernels, for any target, are optimized
(`codegen/compile.py`) and come and go, so that they have a linker which can let go of them (`codegen/engine.py`).
"""

from __future__ import annotations

import llvmlite.binding as llvm

from .forks import Lock, check_llvm

_lock = Lock()
_is_set_up = False
_is_set_up_for_gpus = False
PTX = "nvptx64-nvidia-cuda"
# This version of LLVM asks, wherever an index could be made from an earlier one, whether that one may have overflowed,
# which takes most of the time of kernels with many addresses, and ours never do.
_GUARDS_REUSE = 22


def set_up_llvm() -> None:
    """Initialize LLVM, before any target is used."""
    global _is_set_up
    check_llvm()
    with _lock:
        if not _is_set_up:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            _is_set_up = True


def set_up_gpus() -> None:
    """Before a machine is made that writes PTX: addresses in memory of a block have 32 bits, as on the hardware."""
    global _is_set_up_for_gpus
    set_up_llvm()
    llvm.Target.from_triple(PTX)  # fails where LLVM was built without it, which would end the process over the option
    with _lock:
        if not _is_set_up_for_gpus:
            llvm.set_option("pantile", "--nvptx-short-ptr")
            if llvm.llvm_version_info[0] == _GUARDS_REUSE:
                llvm.set_option("pantile", "--enable-poison-reuse-guard=false")
            _is_set_up_for_gpus = True


def object_code(text: str, level: int) -> bytes:
    """The object code of LLVM text, for this machine; instructions are selected at the level, and nothing else is
    optimized."""
    machine = _code_generator(level)
    return bytes(machine.emit_object(llvm.parse_assembly(text)))


def loaded(code: bytes) -> llvm.ExecutionEngine:
    """The object code, linked into this process; it stays as long as what is returned."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _code_generator(0))
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _code_generator(level: int) -> llvm.TargetMachine:
    set_up_llvm()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=level, jit=True
    )
