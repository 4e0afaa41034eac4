"""Long modules are compiled in several parts at once, which together are the module."""

from __future__ import annotations

import ctypes
import threading

import pytest

from pantile.codegen import compile as compiling
from pantile.codegen import parts
from pantile.codegen.compile import compile_object, compile_objects
from pantile.codegen.engine import load
from pantile.errors import InternalError
from pantile.forks import is_in_llvm
from pantile.target import host

LINES = 500
COMMON = """attributes #0 = { nounwind }
declare i32 @pantile_parallel_for(ptr, ptr, i64, i64, i64) nounwind
!0 = !{}
"""


def _body(name: str, adds: int) -> str:
    """index + closure[0], and as often again as it is long."""
    head = f'define internal i32 @"{name}"(ptr noalias %closure, i64 %index, ptr noalias %scratch) #0 {{'
    lines = [f"  %v{k + 1} = add i64 %v{k}, %more" for k in range(adds)]
    return "\n".join([head, "entry:", "  %more = load i64, ptr %closure, align 8", "  %v0 = add i64 %index, 0", *lines,
                      f"  %result = trunc i64 %v{adds} to i32", "  ret i32 %result", "}", ""])  # fmt: skip


def _module(*lengths: int) -> str:
    """A kernel that adds up what its bodies return."""
    bodies = [_body(f"k.x.{k}", length) for k, length in enumerate(lengths)]
    calls = [f'  %c{k + 1} = call i32 @call(ptr @"k.x.{k}", ptr %args, i32 %c{k})' for k in range(len(lengths))]
    kernel = ['define i32 @"k"(ptr noalias readonly %args, i64 %num_threads) #0 {', "entry:", "  %c0 = add i32 0, 0",
              *calls, f"  ret i32 %c{len(lengths)}", "}", ""]  # fmt: skip
    return "\n".join([*bodies, "\n".join(kernel), COMMON, "declare i32 @call(ptr, ptr, i32) nounwind", ""])


_Body = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_Call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
_Kernel = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)


@_Call
def _call(body: int, closure: int, before: int) -> int:
    return before + int(_Body(body)(closure, 1, None))


def _result(objects: tuple[bytes, ...], number: int) -> int:
    address = ctypes.cast(_call, ctypes.c_void_p).value
    assert address is not None
    code = load(objects, "k", {"call": address})
    return int(_Kernel(code.address)(ctypes.byref(ctypes.c_int64(number)), 1))


def test_short_modules_stay_whole() -> None:
    text = _module(20, 30)
    assert parts.parts(text) == [text]


def test_parts_are_about_as_long_and_each_function_is_in_one() -> None:
    text = _module(*[LINES] * 5, 3 * LINES)
    found = parts.parts(text)
    assert len(found) == 5 and found == parts.parts(text)
    for name in [*(f"k.x.{k}" for k in range(6)), "k"]:
        assert sum(f'define i32 @"{name}"(' in part for part in found) == 1
    assert max(part.count("\n") for part in found) < 4 * LINES


def test_there_are_parts_where_they_are_worth_it() -> None:
    assert len(parts.parts(_module(20 * LINES))) == 1
    assert len(parts.parts(_module(20 * LINES, LINES))) == 2
    assert len(parts.parts(_module(*[2 * LINES] * 20))) == 8


def test_what_they_compute_together_is_what_the_module_does() -> None:
    text = _module(LINES, 2 * LINES, 3 * LINES)
    objects = compile_objects(text, host())
    assert len(objects) == 3 and objects == compile_objects(text, host())
    assert _result(objects, 7) == _result((compile_object(text, host()),), 7) == 3 + 7 * 6 * LINES


@pytest.mark.parametrize("cores", [1, 2, 9])
def test_no_more_parts_are_compiled_at_once_than_there_are_cores(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text, at_once, most = _module(LINES, 2 * LINES, 3 * LINES), threading.Semaphore(cores), list[int]()

    def make(module: str) -> bytes:
        assert at_once.acquire(blocking=False)
        most.append(len(module))
        try:
            return compile_object(module, host())
        finally:
            at_once.release()

    monkeypatch.setattr(compiling, "usable_cores", lambda: cores)
    assert compiling._of_parts(text, make) == compile_objects(text, host())
    assert most[0] == max(most) and len(most) == 3


def test_a_part_that_llvm_refuses_is_an_error_and_leaves_llvm_to_others() -> None:
    text = _module(*[LINES] * 4).replace("%v7 = add i64", "%v7 = add i65", 1)
    with pytest.raises(InternalError, match="LLVM refuses"):
        compile_objects(text, host())
    assert not is_in_llvm()
    other = threading.Thread(target=lambda: compile_object(_module(3), host()))
    other.start()
    other.join(60)
    assert not other.is_alive()
