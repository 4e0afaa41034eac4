"""Every app compiles for every target, whatever the host, and its hot loops are the vector code they should be."""

from __future__ import annotations

import functools
import re

import pytest

import pantile as pt
from pantile.apps import APPS
from pantile.target import CPUS
from pantile.target import description as targets
from tests.apps.pipelines import SCHEDULES

from .assembly import Loop, hottest, steady_loops

EVERY = [(name, how) for name in ("blur", "unsharp", "harris") for how in SCHEDULES]
TILED = ("matmul", "conv_layer")  # tiles of registers
every_app = pytest.mark.parametrize(("name", "how"), EVERY, ids=map("-".join, EVERY))
every_target = pytest.mark.parametrize("to", CPUS)

# What a target's widest registers look like in instructions.
WIDE = {
    "x86-64-v3": r".*%ymm",
    "x86-64-v4": r".*%zmm",
    "aarch64": r".*\b(q\d+|v\d+\.(16b|8h|4s))",
    "riscv64": r"v",
}
# The instructions that the arithmetic of an app comes down to.
FUSED = {
    "x86-64-v3": r"vfn?m(add|sub)\d+ps .*%ymm",
    "x86-64-v4": r"vfn?m(add|sub)\d+ps .*%zmm",
    "aarch64": r"fml[as] v\d+\.4s",
    "riscv64": r"vfn?m(acc|add|sac|sub)\.v",
}
THIRDS = {  # the high half of a 16-bit product
    "x86-64-v3": r"vpmulhuw .*%ymm",
    "x86-64-v4": r"vpmulhuw .*%zmm",
    "aarch64": r"umull2? v\d+\.4s",
    "riscv64": r"vmulhu\.v",
}
QUOTIENT = {
    "x86-64-v3": r"vdivps .*%ymm",
    "x86-64-v4": r"vdivps .*%zmm",
    "aarch64": r"fdiv v\d+\.4s",
    "riscv64": r"vfdiv\.vv",
}
NEEDED = {"blur": [THIRDS], "unsharp": [FUSED, QUOTIENT], "harris": [FUSED]}


@functools.cache
def code(name: str, how: str, to: str) -> str:
    """The assembly of an app; its expert is asked for the target's vectors, not the host's."""
    return APPS[name].build().with_schedule(APPS[name].schedule(how, CPUS[to], cores=16)).asm(to)


def loops(name: str, how: str, to: str) -> list[Loop]:
    found = steady_loops(code(name, how, to), CPUS[to].architecture)
    assert found, "no loop works mostly on vectors"
    return found


@every_app
@every_target
def test_hot_loop_is_vector_code(name: str, how: str, to: str) -> None:
    loop = hottest(code(name, how, to), CPUS[to].architecture)
    assert loop.like(NEEDED[name][0][to]), f"nothing like {NEEDED[name][0][to]} in\n{loop}"
    wide = [i for i in loop.like(WIDE[to]) if i in loop.vectors]
    assert 4 * len(wide) >= 3 * len(loop.vectors), f"most vectors are narrower than the target's in\n{loop}"


@every_app
@every_target
def test_steady_loops_have_what_they_need(name: str, how: str, to: str) -> None:
    for pattern in NEEDED[name]:
        assert any(loop.like(pattern[to]) for loop in loops(name, how, to)), f"no {pattern[to]}"


@every_app
@every_target
def test_steady_loops_have_no_scalar_arithmetic_and_no_calls(name: str, how: str, to: str) -> None:
    for loop in loops(name, how, to):
        assert not loop.like(loop.dialect.scalar_float), str(loop)
        assert not loop.like(loop.dialect.call), str(loop)


def come_back(on_stack: list[str]) -> list[str]:
    """Without what is only written there, by x86: rows of clamped elements, which vectors load from elsewhere."""
    stores = {i: m[1] for i in on_stack if (m := re.fullmatch(r"vmov\S+ %[xyz]mm\d+, (-?\d*\(%rsp\))", i))}
    places = [re.sub(r".*?(-?\d*\(%rsp\)).*", r"\1", i) for i in on_stack]
    return [i for i in on_stack if i not in stores or places.count(stores[i]) > 1]


@every_app
@every_target
def test_steady_loops_keep_their_values_in_registers(name: str, how: str, to: str) -> None:
    for loop in loops(name, how, to):
        kept, vectors = (len(come_back(loop.like(p))) for p in (loop.dialect.stack, loop.dialect.vector_stack))
        assert 7 * vectors <= len(loop.instructions), f"{vectors} vectors on the stack in\n{loop}"
        assert 4 * kept <= len(loop.instructions), f"{kept} registers on the stack in\n{loop}"


@pytest.mark.parametrize("name", TILED)
@every_target
def test_products_accumulate_in_registers(name: str, to: str) -> None:
    loop = max(loops(name, "expert", to), key=lambda loop: len(loop.like(FUSED[to])))
    assert 4 * len(loop.like(FUSED[to])) >= len(loop.instructions), f"few products in\n{loop}"
    assert not loop.like(loop.dialect.vector_stack), str(loop)


@every_app
@every_target
def test_nothing_but_the_runtime_is_called(name: str, how: str, to: str) -> None:
    dialect = loops(name, how, to)[0].dialect
    whole = Loop(name, tuple(" ".join(x.split()) for x in code(name, how, to).splitlines()), dialect)
    called = {i.split()[-1].removesuffix("@PLT") for i in whole.like(dialect.call)}
    assert "pantile_parallel_for" in called <= {"pantile_parallel_for", "pantile_scratch_push", "pantile_scratch_pop"}


@pytest.mark.parametrize("name", ["unsharp", "harris"])
@every_target
def test_strict_code_fuses_nothing(name: str, to: str) -> None:
    text = APPS[name].build().with_options(strict=True).asm(to)
    assert not [loop for loop in steady_loops(text, CPUS[to].architecture) if loop.like(FUSED[to])]


@pytest.mark.parametrize("host", CPUS)
def test_the_host_makes_no_difference(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = code("blur", "plain", "aarch64")
    monkeypatch.setattr(targets, "host", lambda: CPUS[host])
    p = APPS["blur"].build()
    assert p.options.target == CPUS[host]
    assert p.asm("aarch64") == expected
    assert p.asm() == p.asm(host)


# Fixed point: what one step of a camera pipeline comes down to, a choice by parity included.
FIXED = {
    "x86-64-v3": (r"vpavgw .*%ymm", r"vpunpck[lh]wd"),
    "aarch64": (r"urhadd v\d+\.8h", r"uabd v\d+\.8h", r"(zip[12]|st2)\b"),
}


@pytest.mark.parametrize("to", FIXED)
def test_fixed_point_stays_narrow(to: str) -> None:
    """Averages, differences and mosaics of 16 bits are instructions on 16 bits."""
    y, x = pt.vars("y x")
    a, b = pt.Input("a", "uint16", ndim=2), pt.Input("b", "uint16", ndim=2)
    mean, out = pt.Func("mean"), pt.Func("out")
    near, far = (a[y, x], a[y, x + 1]), (b[y, x], b[y, x + 1])
    closer = pt.absd(*near) < pt.absd(*far)
    mean[y, x] = pt.select(closer, pt.rounding_halving_add(*near), pt.rounding_halving_add(*far))
    there = pt.rounding_halving_add(mean[y, x // 2], mean[y, x // 2 + 1])
    out[y, x] = pt.select(x % 2 == 0, mean[y, x // 2], a[y, x // 2] - there + b[y, x // 2])
    lanes = CPUS[to].vector_bits // 16
    by_row = pt.Schedule(
        pt.on("out").vectorize("x", 2 * lanes),
        pt.on("mean").compute_at("out", "y").vectorize("x", lanes),
    )
    p = pt.Pipeline(out, shape=(a.shape[0], 2 * a.shape[1] - 8), schedule=by_row)
    found = steady_loops(p.asm(to), CPUS[to].architecture)
    for pattern in FIXED[to]:
        assert any(loop.like(pattern) for loop in found), f"no {pattern}"
    widened = r"vpmovzxwd|uaddl|ushll"
    assert not any(loop.like(widened) for loop in found)


def test_lookups_leave_vector_registers_in_words() -> None:
    """Indices of 16 bits are taken four at a time, and bytes found are put together eight at a time."""
    y, x = pt.vars("y x")
    img, table = pt.Input("img", "uint16", ndim=2), pt.Input("table", "uint8", ndim=1)
    out = pt.Func("out")
    out[y, x] = table[pt.minimum(img[y, x], 1023)]
    p = pt.Pipeline(out, shape=img.shape, schedule=pt.Schedule(pt.on("out").vectorize("x", 16)))
    text = p.asm("aarch64")
    assert len(re.findall(r"\bldrb\b", text)) % 16 == 0
    assert not re.search(r"\b(umov|smov|ld1)\b", text)


@every_target
def test_copies_that_ask_for_lines_ahead_stay_loops(to: str) -> None:
    """LLVM would make of them a call of memcpy, and a loop that asks for all lines at once."""
    assert "memcpy" not in code("tp", "expert", to)


def test_transposes_turn_whole_lines_in_registers() -> None:
    copying, turning = loops("tp", "expert", "aarch64")
    assert 2 * len(copying.like("prfu?m")) == len(copying.like("ldp q")) == len(copying.like("stp q")), str(copying)
    assert [len(turning.like(p)) for p in ("ldr q", "zip", "stnp q")] == [16, 32, 8], str(turning)
