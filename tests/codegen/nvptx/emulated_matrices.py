"""Matrix instructions for `emulated`: each thread gives its words to a function of ours, which waits for those of its
warp and returns what the PTX manual says that its lane gets."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pantile.ir.instructions import INSTRUCTIONS

Array = np.ndarray[Any, np.dtype[Any]]
Given = dict[int, Array]  # by thread, the words of its operands
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32))
_CALL = re.compile(r"call ({.*}) @llvm\.nvvm\.((?:mma|ldmatrix)[\w.]+)\((.*)\)")
_TYPES = {"f32.f32": "float16", "f16.f16": "float16", "bf16": "uint16", "s8": "int8", "u8": "uint8"}
_LANE = [divmod(lane, 4) for lane in range(32)]  # groupID and threadID_in_group of the manual


def replaced(text: str) -> str:
    """The text with calls of ours, and the functions that they call."""
    used = dict[str, str]()

    def call(found: re.Match[str]) -> str:
        result, name, args = found.groups()
        types = [a.rsplit(" ", 1)[0] for a in re.split(r", (?=<|i32|float|ptr)", args)]
        used[name] = _wrapper(name, result, types)
        return f'call {result} @"{name}"(i32 %T, {args})'

    return _CALL.sub(call, text) + "".join(used.values())


def _wrapper(name: str, result: str, types: list[str]) -> str:
    """A function that hands its operands over in memory; those of `ldmatrix` lie there already."""
    lines, results = list[str](), result.strip("{}").split(", ")
    given = "%a0"
    if types != ["ptr"]:
        given = "%given"
        lines.append(f"%given = alloca [{len(types)} x i32]")
        for k, t in enumerate(types):
            lines += [f"%p{k} = getelementptr i32, ptr %given, i32 {k}", f"store {t} %a{k}, ptr %p{k}"]
    lines += [f"%got = alloca [{len(results)} x i32]", f'call void @"of {name}"(i32 %T, ptr {given}, ptr %got)']
    before = "poison"
    for k, t in enumerate(results):
        lines += [f"%q{k} = getelementptr i32, ptr %got, i32 {k}", f"%w{k} = load {t}, ptr %q{k}"]
        lines.append(f"%r{k} = insertvalue {result} {before}, {t} %w{k}, {k}")
        before = f"%r{k}"
    args = ", ".join(["i32 %T", *(f"{t} %a{k}" for k, t in enumerate(types))])
    body = "\n  ".join([*lines, f"ret {result} {before}"])
    return f'\ndeclare void @"of {name}"(i32, ptr, ptr)\ndefine internal {result} @"{name}"({args}) {{\n  {body}\n}}\n'


def callbacks(barrier: threading.Barrier) -> Mapping[str, Any]:
    """The functions that the wrappers call, by name."""
    given: Given = {}
    names = [found[2] for spec in INSTRUCTIONS.values() if (found := _CALL.match(spec.llvm))]
    return {f"of {name}": CALLBACK(_callback(name, given, barrier)) for name in names}


def _callback(name: str, given: Given, barrier: threading.Barrier) -> Callable[[int, Any, Any], None]:
    work = _multiplied if name.startswith("mma") else _transposed if ".trans" in name else _loaded

    def run(thread: int, operands: Any, results: Any) -> None:
        given[thread] = np.ctypeslib.as_array(operands, (10 if name.startswith("mma") else 4,)).copy()
        barrier.wait()
        first = thread // 32 * 32
        found = work(name, np.stack([given[first + k] for k in range(32)]), thread % 32)
        barrier.wait()
        for k, word in enumerate(found.view(np.uint32)):
            results[k] = int(word)

    return run


def _loaded(name: str, rows: Array, lane: int) -> Array:
    """One word of row lane//4 of each matrix; lanes 8*m to 8*m + 7 give the addresses of its rows."""
    group, thread = _LANE[lane]
    return np.array([rows[8 * m + group, thread] for m in range(int(name[name.index(".x") + 2]))], np.uint32)


def _transposed(name: str, rows: Array, lane: int) -> Array:
    """Two elements of column lane//4 of each matrix."""
    group, thread = _LANE[lane]
    elements = np.ascontiguousarray(rows).view(np.uint16)
    matrices = range(int(name[name.index(".x") + 2]))
    return np.array([[elements[8 * m + 2 * thread + n, group] for n in (0, 1)] for m in matrices], np.uint16).ravel()


def _multiplied(name: str, words: Array, lane: int) -> Array:
    types = name.split("row.col.")[1]
    e = 4 if "k32" in name else 2
    of_sums = {"s8": np.int32, "u8": np.int32, "f16.f16": np.float16}.get(types, np.float32)
    a, b, c = np.zeros((16, 8 * e)), np.zeros((8 * e, 8)), np.zeros((16, 8))
    for k, (group, thread) in enumerate(_LANE):
        mine = [np.ascontiguousarray(words[k, s]) for s in (slice(0, 4), slice(4, 6), slice(6, None))]
        left, right, sums = mine[0].view(_TYPES[types]), mine[1].view(_TYPES[types]), mine[2].view(of_sums)
        if types == "bf16":
            left, right = ((x.astype(np.uint32) << 16).view(np.float32) for x in (left, right))
        for n, value in enumerate(left):
            a[group + 8 * (n // e % 2), thread * e + n % e + 4 * e * (n // (2 * e))] = value
        for n, value in enumerate(right):
            b[thread * e + n % e + 4 * e * (n // e), group] = value
        for n, value in enumerate(sums[:4]):
            c[group + 8 * (n // 2), thread * 2 + n % 2] = value
    d, (group, thread) = (c + a @ b).astype(of_sums), _LANE[lane]
    return np.array([d[group + 8 * (n // 2), thread * 2 + n % 2] for n in range(4)], of_sums)
