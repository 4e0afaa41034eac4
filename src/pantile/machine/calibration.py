"""Measures the costs of instructions on this machine, for `pantile calibrate`.

Each cost is measured by a loop of many independent dependency chains, as in `measure`. If LLVM could optimize an
instruction away on its own, plain arithmetic follows it, whose time is subtracted. Startup costs, such as those of
loops and stages, are not costs of instructions and are not measured.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dataclass import dataclass
from ..target import Target
from .measure import CHAINS, ROUNDS, STEPS, chained, chains, compiled, quickest

_GATHERS = 12  # chains of gathers: enough to hide their latency
_TABLE = 1024  # elements to gather from: they fit in a cache
_LEAST, _MOST = 0.05, 100.0  # cycles; measurements outside of these bounds were disturbed


@dataclass(frozen=True)
class _TimedLoop:
    """A loop of chains. `step` is one step of a chain, as LLVM text that computes %n{k} from %a{k} in chain {k}."""

    cost: str  # the field of Costs that it measures
    kind: str  # floats, ints or scalar: the type of the chain
    step: str
    counted: float = 1.0  # instructions in a step that have this cost
    plain: int = 0  # other instructions in a step, of plain arithmetic
    count: int = CHAINS


def calibrated(
    target: Target, ghz: float, plain: float, report: Callable[[str], None], rounds: int = ROUNDS
) -> dict[str, float]:
    """Measure fields of Costs, which takes a few seconds. `plain` is the number of plain integer instructions per
    cycle. `report` is called with a description of each step."""
    lanes = target.lanes(32)
    loops = {loop.cost: loop for loop in _loops(lanes, target.gathers)}
    report("compiling loops")
    engine = compiled(_text(lanes, [*loops.values()]))
    run = {cost: [chains(engine, f"cost.{cost}")] for cost in loops}
    costs: dict[str, float] = {}
    for cost, seconds in quickest(run, rounds, lambda cost: report(f"measuring {cost}")).items():
        loop = loops[cost]
        cycles = (seconds * ghz * 1e9 / (STEPS * loop.count) - loop.plain / plain) / loop.counted
        if _LEAST <= cycles <= _MOST:
            costs[cost] = round(cycles, 3)
    return costs


def _loops(lanes: int, gathers: bool) -> list[_TimedLoop]:
    floats, ints, shorts = f"<{lanes} x float>", f"<{lanes} x i32>", f"<{lanes} x i16>"
    turned = ", ".join(f"i32 {(k + 1) % lanes}" for k in range(lanes))
    threes = ", ".join(["i32 3"] * lanes)
    return [
        _TimedLoop("mul", "ints", f"%n{{k}} = mul {ints} %a{{k}}, %i"),
        _TimedLoop(
            "shift", "ints", f"%m{{k}} = lshr {ints} %a{{k}}, <{threes}>\n  %n{{k}} = xor {ints} %m{{k}}, %i", plain=1
        ),
        _TimedLoop(
            "widen",
            "ints",
            f"%m{{k}} = trunc {ints} %a{{k}} to {shorts}\n  %p{{k}} = add {shorts} %m{{k}}, %h\n"
            f"  %n{{k}} = sext {shorts} %p{{k}} to {ints}",
            counted=2,
            plain=1,
        ),
        _TimedLoop(
            "convert",
            "floats",
            f"%m{{k}} = fptosi {floats} %a{{k}} to {ints}\n  %p{{k}} = xor {ints} %m{{k}}, %i\n"
            f"  %n{{k}} = sitofp {ints} %p{{k}} to {floats}",
            counted=2,
            plain=1,
        ),
        _TimedLoop("div", "floats", f"%n{{k}} = fdiv {floats} %f, %a{{k}}"),
        _TimedLoop("sqrt", "floats", f"%n{{k}} = call {floats} @llvm.sqrt.v{lanes}f32({floats} %a{{k}})"),
        _TimedLoop("idiv", "scalar", "%m{k} = or i32 %a{k}, %one.i\n  %n{k} = udiv i32 %one.i, %m{k}"),
        _TimedLoop("shuffle", "ints", f"%n{{k}} = shufflevector {ints} %a{{k}}, {ints} %i, <{lanes} x i32> <{turned}>"),
        _TimedLoop("gather", "ints", _gather(lanes), counted=lanes, count=_GATHERS),
        *([_TimedLoop("lookup", "ints", _lookup(lanes), counted=lanes, count=_GATHERS)] if gathers else []),
        _TimedLoop("scalar", "scalar", "%m{k} = add i32 %a{k}, %one.i\n  %n{k} = xor i32 %m{k}, %one.i", counted=2),
        _TimedLoop(
            "latency",
            "floats",
            f"%n{{k}} = call {floats} @llvm.fma.v{lanes}f32({floats} %f, {floats} %f, {floats} %a{{k}})",
            count=1,
        ),
    ]


def _gather(lanes: int) -> str:
    """LLVM text that loads the elements at a vector of indices one by one."""
    ints = f"<{lanes} x i32>"
    most = ", ".join([f"i32 {_TABLE - 1}"] * lanes)
    lines = [f"%w{{k}} = and {ints} %a{{k}}, <{most}>"]
    before = "%i"
    for lane in range(lanes):
        after = "%n{k}" if lane == lanes - 1 else f"%v{{k}}.{lane}"
        lines += [
            f"%x{{k}}.{lane} = extractelement {ints} %w{{k}}, i32 {lane}",
            f"%y{{k}}.{lane} = getelementptr i32, ptr @table, i32 %x{{k}}.{lane}",
            f"%z{{k}}.{lane} = load i32, ptr %y{{k}}.{lane}",
            f"{after} = insertelement {ints} {before}, i32 %z{{k}}.{lane}, i32 {lane}",
        ]
        before = after
    return "\n  ".join(lines)


def _lookup(lanes: int) -> str:
    """LLVM text that loads the elements at a vector of indices by one gather instruction. The loaded elements are added
    to the next indices."""
    ints, most = f"<{lanes} x i32>", ", ".join([f"i32 {_TABLE - 1}"] * lanes)
    every = f"<{', '.join(['i1 true'] * lanes)}>"
    return "\n  ".join(
        [
            f"%w{{k}} = and {ints} %a{{k}}, <{most}>",
            f"%y{{k}} = getelementptr i32, ptr @table, {ints} %w{{k}}",
            f"%z{{k}} = call {ints} @llvm.masked.gather.v{lanes}i32.v{lanes}p0(<{lanes} x ptr> align 4 %y{{k}}, "
            f"<{lanes} x i1> {every}, {ints} zeroinitializer)",
            f"%n{{k}} = xor {ints} %z{{k}}, %a{{k}}",
        ]
    )


def _text(lanes: int, loops: list[_TimedLoop]) -> str:
    floats, ints = f"<{lanes} x float>", f"<{lanes} x i32>"
    operands = (
        f"%i = bitcast {floats} %f to {ints}\n  %h = trunc {ints} %i to <{lanes} x i16>\n"
        "  %one.i = bitcast float %one to i32"
    )
    types = {"floats": floats, "ints": ints}
    parts = []
    for loop in loops:
        if loop.kind == "scalar":
            shape = ("<1 x float>", "<1 x i32>", "i32")
            operand = "%one.i = bitcast float %one to i32"
        else:
            shape, operand = (floats, ints, types[loop.kind]), operands
        parts.append(chained(f"cost.{loop.cost}", *shape, loop.step, loop.count, operand))
    return f"""
declare {floats} @llvm.fma.v{lanes}f32({floats}, {floats}, {floats})
declare {floats} @llvm.sqrt.v{lanes}f32({floats})
declare {ints} @llvm.masked.gather.v{lanes}i32.v{lanes}p0(<{lanes} x ptr>, <{lanes} x i1>, {ints})
@one = global float 1.0
@table = global [{_TABLE} x i32] zeroinitializer
{"".join(parts)}
"""
