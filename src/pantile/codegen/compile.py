"""Compiles LLVM text to object code or assembly: parses, verifies and optimizes it, and selects instructions.

LLVM's own vectorizers are off: vectors, unrolled loops, steady loops without branches and shared subexpressions are
explicit in the text. For CPUs, LLVM only runs the function simplification pipeline of its first level. The module
passes of that level took a fifth of LLVM's time. Run times without them, measured on 27 apps: temporal_denoise -7 %,
max_filter -4 %, tpm +5 %, bicubic_resize +3 %, the others within 3 %. Some module passes are quadratic in the length of
a function, and some parts of the highest level of instruction selection in the length of a basic block. If there are
very long ones, functions are therefore only simplified for GPUs, too, and instructions are selected one level lower.

Code for debugging, in which every access is checked, is not optimized at all, which takes a tenth of LLVM's time.

LLVM schedules instructions by a model of the core. The model of an out-of-order core keeps few values live and puts
whole chains of dependent instructions one after another. Our blocks are hundreds of instructions long, which exceeds
the window of such a core, so it would wait for one chain after another. The model of an in-order core interleaves
independent instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from ..errors import InternalError
from ..expr.depth import side_by_side
from ..forks import check_llvm, in_team, llvm_for_a_team
from ..machine.host import usable_cores
from ..native import set_up_gpus, set_up_llvm
from ..target import Target
from ..target.description import CUDA
from ..target.gpu import OF_ONE_GENERATION
from .parts import parts

T = TypeVar("T")

_OPTIMIZE = 1
_SELECT = 3  # instruction selection, register allocation and scheduling at the level that makes loops fast
_SELECT_LONG = 2  # one level lower, at which multiply-adds are fused greedily
_SELECT_FOR_DEBUGGING = 0
_OF_WARPGROUPS = '"wgmma.'
_LONG = 4_000  # instructions between two labels; apps have up to 2,700
_LONG_FUNCTION = 16_000  # lines; apps have up to 10,200
# Cores whose code is scheduled by the model of another core, which must not have instructions that they lack. Measured
# run times: temporal_denoise -12 %, clahe -9 %, guided_filter -5 %, bicubic_resize +6 %; canny, harris, matmul and
# bilateral_grid unchanged.
_ORDERED_AS = {"neoverse-n1": "cortex-a55"}


def compile_objects(text: str, target: Target, debug: bool = False) -> tuple[bytes, ...]:
    """Compile to relocatable object code for `target`; long modules are compiled in several parts in parallel."""
    return _of_parts(text, lambda part: compile_object(part, target, debug))


def assemblies(text: str, target: Target) -> tuple[str, ...]:
    """Compile to assembly, for targets whose drivers assemble it; long modules are compiled in several parts."""
    return _of_parts(text, lambda part: assembly(part, target))


def _of_parts(text: str, make: Callable[[str], T]) -> tuple[T, ...]:
    """Compile the parts of a module in parallel.

    The longest parts are compiled first, and no more at a time than there are cores: otherwise, short parts would take
    time from those that finish last.
    """
    modules = parts(text)
    if len(modules) == 1:
        return (make(text),)
    check_llvm()
    made: dict[int, T] = {}
    waiting = iter(sorted(range(len(modules)), key=lambda k: -len(modules[k])))

    def work() -> None:
        with in_team():
            for k in waiting:
                made[k] = make(modules[k])

    with llvm_for_a_team():
        side_by_side([work] * min(len(modules), usable_cores()))
    return tuple(made[k] for k in range(len(modules)))


def with_own_features(text: str, target: Target) -> Target:
    """The target, extended by the instructions that only its generation of GPUs has if the code uses some of them. PTX
    for sm_90a runs only on GPUs of compute capability 9.0, PTX for sm_90 also on later ones."""
    return replace(target, cpu=f"{target.cpu}{OF_ONE_GENERATION}") if _OF_WARPGROUPS in text else target


def compile_object(text: str, target: Target, debug: bool = False) -> bytes:
    """Compile a whole module to one object file."""
    return bytes(_emitter(text, target, debug).emit_object(optimized(text, target, debug)))


def assembly(text: str, target: Target, debug: bool = False) -> str:
    """The assembly of the code that `compile_object` produces."""
    target = with_own_features(text, target)
    return str(_emitter(text, target, debug).emit_assembly(optimized(text, target, debug)))


def _emitter(text: str, target: Target, debug: bool) -> llvm.TargetMachine:
    """The target machine that selects and schedules instructions. Earlier passes use that of the target itself."""
    if debug:
        return target_machine(target, _SELECT_FOR_DEBUGGING)
    ordered = replace(target, cpu=_ORDERED_AS.get(target.cpu, target.cpu))
    quickly = target.has_blocks or _has_long_block(text, _LONG)  # drivers schedule PTX themselves
    return target_machine(ordered, _SELECT_LONG if quickly else _SELECT)


def _has_long_block(text: str, long: int) -> bool:
    length = 0
    for line in text.splitlines():
        length = length + 1 if line.startswith("  ") else 0
        if length > long:
            return True
    return False


def target_machine(target: Target, level: int = _SELECT) -> llvm.TargetMachine:
    """LLVM's code generator for a target. It must not be shared between threads."""
    if target.architecture == CUDA:
        set_up_gpus()
    set_up_llvm()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=level,
        reloc="pic",
        codemodel="small",
        abiname="lp64d" if target.architecture == "riscv" else "",
    )


def optimized(text: str, target: Target, debug: bool = False) -> llvm.ModuleRef:
    """Parse, verify and, except for debug builds, optimize a module in a context of its own."""
    machine = target_machine(target)
    header = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    try:
        module = llvm.parse_assembly(header + text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the generated code: {error}") from None
    if debug:
        return module
    options = llvm.create_pipeline_tuning_options(speed_level=_OPTIMIZE)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    if not target.has_blocks or _has_long_function(text) or _has_long_block(text, _LONG):
        simplifying = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                simplifying.run(function, builder)
        _dispose(simplifying)
    else:
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        _dispose(passes)
    return module


def _has_long_function(text: str) -> bool:
    return any(part.count("\n") > _LONG_FUNCTION for part in text.split("\ndefine "))


def _dispose(passes: NewPassManager) -> None:
    """Free the passes and their caches, some 60 KiB. `close` does not (its bases are in the wrong order)."""
    NewPassManager._dispose(passes)
    passes.detach()
