"""The instructions of evaluating a definition once, by kind, independent of its schedule.

Kinds are those of `machine.costs`. Arithmetic on coordinates does not count, unless data are part of it.

Some operations are fused into one instruction with another one, so that each node has fewer instructions:

a*b + c                 of floats, or of integers on ARM: one
int32(a) * int32(b)     of 16 bits each: a product that is wide, and no conversions; sums alike
uint8(max(min(a, 255), 0))      one conversion that saturates
uint8(round(a))                 on ARM limits and a sum, whose last bits are what is asked for
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from ..analysis.loop_bounds import bounding
from ..analysis.narrowing import narrowed_values
from ..dataclass import cached_property, value
from ..expr.nodes import COMPARISON, Cast, Const, Expr, Load, Op, Var
from ..expr.types import FLOAT32, INDEX, DType
from ..expr.visit import children, conjuncts, each_once, loaded, names
from ..graph.nodes import Definition
from .branches import Branches
from .copies import Copies, Instances, Kinds, long_sums
from .linear_forms import LinearForm

# Instructions of our own functions, measured as if all were products and sums, which two units share.
_POLYNOMIAL = {
    "exp": 34,
    "log": 52,
    "sin": 35,
    "cos": 38,
    "tan": 44,
    "tanh": 44,
    "asin": 30,
    "acos": 35,
    "erf": 68,
    "cbrt": 50,
    "pow": 124,
    "atan2": 44,
}
# The latency in cycles of these functions, measured with each waiting for the one before: parts of polynomials are
# computed in parallel.
_FUNCTION_LATENCY = {
    "exp": 46,
    "log": 60,
    "sin": 52,
    "cos": 55,
    "tan": 68,
    "tanh": 71,
    "asin": 43,
    "acos": 37,
    "erf": 75,
    "cbrt": 62,
    "pow": 117,
    "atan2": 65,
}
# The latency in cycles of other instructions.
_LATENCY = {
    "load": 5.0,
    "fma": 3.0,
    "int": 2.0,
    "shift": 2.0,
    "mul": 4.0,
    "widen": 2.0,
    "convert": 4.0,
    "convert_small": 3.0,
    "div": 10.0,
    "sqrt": 12.0,
    "idiv": 12.0,
}
ANYWHERE = 25.0  # the latency of elements at computed indices, which are loaded lane by lane
_ROUNDED = frozenset({"floor", "ceil", "round", "trunc"})
_SCALED = {"mul_shift": 3, "rounding_mul_shift": 3}
_INDEX_BITS = 32  # of data-dependent indices, in vectors
Instructions = list[tuple[str, int, float]]
_SUMS = frozenset({"add", "sub"})


@value()
class Tally:
    """The number of instructions of a kind on elements of this many bits, the loops with which they differ, and the
    points at which they are evaluated, if that depends on coordinates (see `branches`)."""

    kind: str
    bits: int
    loops: frozenset[str]
    where: int
    count: float


def roots(definition: Definition) -> list[Expr]:
    """The expressions that a definition evaluates: its values, its data-dependent indices, and its condition, except
    for the parts that bound loops."""
    decided = [i for i in definition.indices if loaded(i)]
    bounds = set(map(id, bounding(definition.condition)))
    tested = [] if definition.condition is None else [c for c in conjuncts(definition.condition) if id(c) not in bounds]
    return [*narrowed_values(definition), *decided, *tested]


class InstructionCounts:
    """Counts the instructions of evaluating expressions, in any number of copies."""

    def __init__(self, branches: Branches, loops: Collection[str], form: Callable[[Expr], LinearForm]) -> None:
        self._nodes, self._form = branches.evaluated, form
        self._kinds: dict[tuple[str, ...], Kinds] = {}  # by the variables of copies
        own, parts = frozenset(loops), fused_instructions(branches.evaluated)
        self._instructions: list[tuple[Expr, list[tuple[tuple[str, int, frozenset[str], int], float]]]] = []
        for e in branches.evaluated:
            several = parts[id(e)] if id(e) in parts else _instructions(e)
            if several:
                where = own & names(e), branches.where(e)
                self._instructions.append((e, [((kind, bits, *where), count) for kind, bits, count in several]))

    def tallies(self, copies: Copies) -> tuple[Tally, ...]:
        """The instructions of evaluating the expressions once in each copy, summed over all copies."""
        count_of = self._counts(copies)
        counted: dict[tuple[str, int, frozenset[str], int], float] = {}
        for e, several in self._instructions:
            times = count_of(e)
            for what, count in several:
                counted[what] = counted.get(what, 0.0) + count * times
        return tuple(Tally(*what, count) for what, count in counted.items())

    def _counts(self, copies: Copies) -> Callable[[Expr], float]:
        """Return a function that tells how often a node is evaluated."""
        if not copies:
            return lambda e: 1.0
        variables, sums = tuple([v for v, _, _ in copies]), self._sums
        if variables not in self._kinds:
            self._kinds[variables] = Kinds(variables, self._form)
        instances = Instances(copies, self._kinds[variables])
        per_operation = {id(terms): instances.of_sum(terms) for terms in {id(t): t for t in sums.values()}.values()}
        return lambda e: per_operation[id(sums[id(e)])] if id(e) in sums else instances.counted(e)

    @cached_property
    def _sums(self) -> dict[int, list[Expr]]:
        return long_sums(self._nodes)


def live_bytes(evaluated: Iterable[Expr]) -> tuple[int, ...]:
    """The bytes per lane of values that are live at each step of evaluating expressions in postorder, most first."""
    order: dict[int, Expr] = {}
    for root in evaluated:
        each_once(root, order, lambda e: e, _operands_in_registers)  # the memo keeps the order in which nodes were done
    last = {id(c): k for k, e in enumerate(order.values()) for c in _operands_in_registers(e)}
    live, steps = 0, []
    ends: dict[int, int] = {}
    for k, e in enumerate(order.values()):
        if not isinstance(e, (Const, Var)) and e.dtype is not INDEX:
            size = max(1, e.dtype.bytes)
            live += size
            end = last.get(id(e), k)
            ends[end] = ends.get(end, 0) + size
        steps.append(live)
        live -= ends.get(k, 0)
    return tuple(sorted(steps, reverse=True))


def depth(evaluated: Iterable[Expr]) -> float:
    """The length of the critical path from the first load to the last result, in cycles."""
    done: dict[int, float] = {}

    def visit(e: Expr) -> float:
        before = max((done[id(c)] for c in _operands_in_registers(e)), default=0.0)
        return before + (_LATENCY["load"] if isinstance(e, Load) else _own_latency(e))

    return max((each_once(e, done, visit, _operands_in_registers) for e in evaluated), default=0.0)


@value()
class StartCounts:
    """The number of instructions on vectors, and of elements that are loaded one by one, that can start after a number
    of cycles if no execution unit is busy."""

    after: float
    loops: frozenset[str]  # that they differ by
    places: frozenset[str]
    vectors: float
    elements: float


def start_counts(evaluated: Iterable[Expr], loops: Collection[str]) -> tuple[StartCounts, ...]:
    """The earliest start of each part of expressions, latest first."""
    done: dict[int, float] = {}
    at: dict[tuple[float, frozenset[str], frozenset[str]], list[float]] = {}
    own = frozenset(loops)

    def visit(e: Expr) -> float:
        after = max((done[id(c)] for c in _operands_and_indices(e)), default=0.0)
        if isinstance(e, Load):
            places = own & frozenset[str]().union(*(names(i) for i in e.indices if done[id(i)]))
            at.setdefault((after, own & names(e), places), [0.0, 0.0])[after > 0] += 1
            return after + (ANYWHERE if after else _LATENCY["load"])
        count = 0.0 if e.dtype is INDEX else sum(n for _, _, n in _instructions(e))
        if count:
            at.setdefault((after, own & names(e), frozenset()), [0.0, 0.0])[0] += count
        return after + _own_latency(e)

    for e in evaluated:
        each_once(e, done, visit, _operands_and_indices)
    return tuple(StartCounts(*where, *counts) for where, counts in sorted(at.items(), key=lambda i: -i[0][0]))


def _operands_and_indices(e: Expr) -> tuple[Expr, ...]:
    """The operands of a node; those of a load are its indices."""
    return e.indices if isinstance(e, Load) else e.operands


def _own_latency(e: Expr) -> float:
    if e.dtype is INDEX:
        return 0.0
    if isinstance(e, Op) and e.op in _FUNCTION_LATENCY and e.dtype.is_float:
        return _FUNCTION_LATENCY[e.op]
    return sum(_LATENCY[kind] for kind, _, _ in _instructions(e))


def _operands_in_registers(e: Expr) -> tuple[Expr, ...]:
    """The operands that are in registers; for a load, only those indices that are loaded themselves."""
    return tuple([i for i in e.indices if loaded(i)]) if isinstance(e, Load) else e.operands


def _instructions(e: Expr) -> list[tuple[str, int, float]]:
    if isinstance(e, Cast):
        return _conversion(e)
    if not isinstance(e, Op) or e.op == "within":
        return []
    operand = e.args[-1].dtype
    bits = _INDEX_BITS if operand is INDEX else max(8, operand.bits)
    if operand.is_float:
        if e.op == "rsqrt":
            return [("sqrt", bits, 1.0), ("div", bits, 1.0)]
        return [("fma", bits, _POLYNOMIAL[e.op])] if e.op in _POLYNOMIAL else [(*_float_instruction(e, bits), 1.0)]
    if e.op in ("floordiv", "mod"):
        return _division(e, bits)
    if e.op in ("shl", "shr"):
        return [("shift", bits, 1.0)]
    if e.op == "mul":
        return [("mul", bits, 1.0)]
    return [("mul", bits, 1.0 * _SCALED[e.op])] if e.op in _SCALED else [("int", bits, 1.0)]


def _float_instruction(e: Op, bits: int) -> tuple[str, int]:
    if e.op == "div":
        return ("fma" if isinstance(e.args[1], Const) else "div"), bits
    if e.op == "sqrt":
        return "sqrt", bits
    if e.op in _ROUNDED:
        return "convert", bits
    if e.op in COMPARISON or e.op in ("select", "min", "max"):
        return "int", bits
    return "fma", bits


def _division(e: Op, bits: int) -> list[tuple[str, int, float]]:
    by = e.args[1]
    if not isinstance(by, Const):
        return [("idiv", bits, 1.0)]
    n = int(by.value)
    if n > 0 and n & (n - 1) == 0:
        return [("shift", bits, 1.0)]
    # The upper half of a product with the inverse, which is wider; for a remainder, also another product and
    # difference.
    count = (2.0 if bits > 16 else 3.5) + (1.0 if e.op == "mod" else 0.0)
    return [("mul", bits, count), ("int", bits, count)]


def _conversion(e: Cast) -> list[tuple[str, int, float]]:
    """One instruction for each doubling or halving, on vectors of the wider type; one more between int and float."""
    a, b = e.value.dtype, e.dtype
    if a is INDEX or b is INDEX:
        return [] if not loaded(e) else [("widen", _INDEX_BITS, 1.0)]
    small, large = sorted((max(8, a.bits), max(8, b.bits)))
    instructions = []
    while small < large:
        small *= 2
        instructions.append(("widen", small, 1.0))
    if a.is_float != b.is_float:
        instructions.append(("convert_small" if is_small(a, b) else "convert", large, 1.0))
    return instructions


def fused_instructions(nodes: list[Expr]) -> dict[int, Instructions]:
    """The instructions of fused nodes by id; other nodes have those of their operation. Kinds "with_..." are free on
    ARM."""
    uses = Counter(id(c) for e in nodes for c in children(e))
    instructions: dict[int, Instructions] = {}
    taken: Counter[int] = Counter()  # uses of a conversion that need no instruction
    widened: dict[int, Cast] = {}
    for e in nodes:
        if isinstance(e, Op) and e.op in ("add", "sub", "mul") and e.dtype is not INDEX:
            wide = [] if e.dtype.is_float else [a for a in e.args if _widens(a)]
            widened |= {id(a): a for a in wide if isinstance(a, Cast)}
            taken.update(map(id, wide))
            products = [a for a in e.args if isinstance(a, Op) and a.op == "mul" and uses[id(a)] == 1]
            if e.op in _SUMS and products:
                if e.dtype.is_float:
                    instructions[id(products[-1])] = []
                else:
                    instructions[id(e)] = [("with_mul", e.dtype.bits, 1.0)]
            if e.op == "mul" and wide and all(_widens(a) or isinstance(a, Const) for a in e.args):
                instructions[id(e)] = [("mul_wide", e.dtype.bits, 1.0)]
        elif isinstance(e, Cast):
            instructions |= {id(a): [] for a in _saturating_clamps(e, e.value)}
            instructions |= _rounding_conversion(e)
            if _narrows(e) and isinstance(e.value, Op) and e.value.op in ("shr", "floordiv"):
                instructions[id(e)] = [("with_narrow", max(8, e.value.dtype.bits), 1.0)]
    for k, a in widened.items():
        if taken[k] == uses[k]:
            instructions[k] = [("with_wide", a.dtype.bits, 1.0)]
    return instructions


def _widens(e: Expr) -> bool:
    return isinstance(e, Cast) and _integers(e) and e.dtype.bits == 2 * max(8, e.value.dtype.bits)


def _narrows(e: Cast) -> bool:
    return _integers(e) and e.value.dtype.bits == 2 * max(8, e.dtype.bits)


def _integers(e: Cast) -> bool:
    both = (e.dtype, e.value.dtype)
    return not any(t.is_float or t is INDEX for t in both)


def is_small(source: DType, to: DType) -> bool:
    """Whether a conversion is from 8 or 16 bits to floats; on ARM, these are sums (`codegen/mantissa`)."""
    return to == FLOAT32 and source.is_int and source.bits <= 16


def _rounding_conversion(e: Cast) -> dict[int, Instructions]:
    """The instructions that remain of a rounding with its clamps, and of the conversion."""
    limits = _saturating_clamps(e, e.value)
    inside = _clamped_operand(limits[-1]) if limits else e.value
    if not (is_small(e.dtype, e.value.dtype) and isinstance(inside, Op) and inside.op == "round"):
        return {}
    below: dict[int, Instructions] = {id(a): [("with_limit", 32, 1.0)] for a in _saturating_clamps(e, inside.args[0])}
    narrowed = [("widen", bits, 1.0) for bits in (32, 16) if bits > e.dtype.bits]
    return {**below, id(inside): [("with_round", 32, 1.0)], id(e): [("round_small", 32, 1.0), *narrowed]}


def _saturating_clamps(e: Cast, inside: Expr) -> list[Expr]:
    """The clamps to the range of a smaller type that are part of a saturating conversion."""
    if e.dtype.is_float or e.dtype is INDEX or e.dtype.bits >= e.value.dtype.bits or e.dtype.is_bool:
        return []
    clamps: list[Expr] = []
    limits = (int(e.dtype.min), int(e.dtype.max))
    while isinstance(inside, Op) and inside.op in ("min", "max") and len(clamps) < 2:
        limited = _clamped_operand(inside)
        if limited is None or not any(isinstance(a, Const) and a.value in limits for a in inside.args):
            break
        clamps.append(inside)
        inside = limited
    return clamps


def _clamped_operand(e: Expr) -> Expr | None:
    """The operand that a minimum or maximum clamps, unless it is a constant, too."""
    return next((a for a in children(e) if not isinstance(a, Const)), None)
