"""The interval evaluator, which bounds the values of an expression while its variables range over intervals.

There is one implementation, generic in its scalars. With Python ints, it checks a call's regions; with NumPy arrays,
the cost model evaluates many candidate tiles at once; with expressions, it builds the arithmetic that computes a tile's
bounds at run time.

    interval(2*x + 1, {"x": Interval(0, 9)})  ->  Interval(1, 19)

Constants stay Python numbers in every mode. A bound of None is unknown (plus or minus infinity). Index arithmetic is
exact. Integer arithmetic on data wraps, so its result is known only if it provably stays within its type. Ends that are
expressions are indices, except that the ends of floats have their type (`float_ends`).

    interval_values      intervals and their scalars
    interval_rules       the rule of each operation, in exact arithmetic
    interval_types       the effects of types: wrapping, saturation, rounding
    interval_conditions  how conditions narrow the intervals of variables
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..expr import build
from ..expr.nodes import COMPARISON, Bits, Broadcast, Cast, Const, Expr, Load, Op, Ramp, Var
from ..expr.types import INDEX, UINT64
from ..expr.visit import has_floats, loaded, names, operands_first
from . import float_ends
from .interval_conditions import narrowed_by, refine_by
from .interval_rules import FLOAT_OPS, OPS, whole_numbers
from .interval_types import cast_range, held, in_order, may_divide_by_zero, rounded, type_range, variable_range, wrapped
from .interval_values import EVERYTHING, Interval, LazyInterval, Scalar, Scope, smax, smin

__all__ = [
    "EVERYTHING", "MOST_SCOPES", "Evaluator", "Interval", "IntervalProgram", "LazyInterval", "Scalar", "Scope",
    "interval", "narrowed_by", "refine", "smax", "smin", "type_range", "values_of",
]  # fmt: skip
MOST_SCOPES = 32  # scopes in which an expression is evaluated, one for each path to it through selects
_MAY_WRAP = {"add", "sub", "neg", "mul", "floordiv", "abs", "shl"}


def values_of(buffer: str) -> str:
    """The name under which a scope holds the range of a buffer's values, if more than its type is known."""
    return f"{buffer}[]"


def interval(e: Expr, scope: Scope) -> Interval:
    """The interval of the values of `e`. A variable that is not in scope stands for itself."""
    return Evaluator(scope).visit(e)


def refine(scope: Scope, condition: Expr, holds: bool, by: Evaluator | None = None) -> Scope:
    """The scope in which `condition` holds (or does not), with variables bounded by its comparisons; the same object if
    it bounds none. `by` is an evaluator that may have evaluated parts of the condition in this scope."""
    return refine_by(Evaluator(scope) if by is None else by.at(scope), condition, holds)


class Evaluator:
    """Evaluates an expression without recursion, each shared node once. A branch of a select is evaluated in the scope
    that its condition implies, by an evaluator of its own.

    A node that many such branches share is evaluated under some of their conditions and then under none, because there
    may be as many sets of conditions as there are paths through the selects.
    """

    def __init__(self, scope: Scope, outermost: Evaluator | None = None) -> None:
        self.scope = scope
        self.memo: dict[int, Interval] = {}
        self.outermost = outermost  # None if this is the outermost evaluator
        self.is_loose = False  # of the outermost evaluator: whether it was used in place of one with a narrower scope
        self.often: dict[int, int] = {} if outermost is None else outermost.often
        self.branches: dict[tuple[int, bool], tuple[Expr, Evaluator]] = {}
        self.made: list[Expr] = []  # keeps expressions alive to which only the memo refers, by their ids

    def at(self, scope: Scope) -> Evaluator:
        """An evaluator of this scope: this one if the scope is its own."""
        return self if scope is self.scope else Evaluator(scope)

    def of_built(self, e: Expr) -> Interval:
        """Evaluate an expression that was built for this purpose, and keep it alive while its id is in the memo."""
        self.made.append(e)
        return self.visit(e)

    def visit(self, e: Expr) -> Interval:
        operand = self.memo.get(id(e))
        if operand is not None:
            return operand
        stack = [(self, e)]
        while stack:
            evaluator, node = stack[-1]
            if id(node) in evaluator.memo:
                stack.pop()
                continue
            waiting = []
            for inner, c in evaluator.operands(node):
                if id(c) not in inner.memo:
                    if c.operands:
                        waiting.append((inner, c))
                    else:
                        inner.note(c)
            if waiting:
                stack += reversed(waiting)
                continue
            stack.pop()
            evaluator.note(node)
        return self.memo[id(e)]

    def note(self, e: Expr) -> None:
        """Evaluate a node whose operands are in the memo."""
        self.memo[id(e)] = self.node(e)
        self.often[id(e)] = self.often.get(id(e), 0) + 1

    def within(self, condition: Expr, holds: bool) -> Evaluator:
        """The evaluator of a branch that is taken where `condition` holds (or does not)."""
        operand = (id(condition), holds)
        if operand not in self.branches:
            scope = refine_by(self, condition, holds)
            inner = self if scope is self.scope else Evaluator(scope, self.outermost or self)
            self.branches[operand] = (condition, inner)
        return self.branches[operand][1]

    def of(self, e: Expr) -> Evaluator:
        """The evaluator for a node in this scope; this one for variables and constants, which take no time."""
        if id(e) in self.memo or not e.operands:
            return self
        return self.unless_often(self.often.get(id(e), 0))

    def unless_often(self, times: int) -> Evaluator:
        """This evaluator, or the outermost one for a node that has been evaluated in too many scopes."""
        if times < MOST_SCOPES or self.outermost is None:
            return self
        self.outermost.is_loose = True
        return self.outermost

    def operands(self, e: Expr) -> list[tuple[Evaluator, Expr]]:
        """The operands that `node` needs, each with the evaluator to evaluate it."""
        if not isinstance(e, (Op, Cast, Broadcast, Ramp)) or e.dtype.is_bool or self.is_scalar(e):
            return []
        if isinstance(e, Op) and e.op == "select":
            condition, then, otherwise = e.args
            sides = [(self.within(condition, True), then), (self.within(condition, False), otherwise)]
            return [(by.of(c), c) for by, c in sides]
        if isinstance(e, Op) and e.op not in (FLOAT_OPS if e.dtype.is_float else OPS):
            return []
        return [(self.of(c), c) for c in e.operands]

    def operand(self, e: Expr) -> Interval:
        """The interval of an operand, which is in the memo."""
        return self.of(e).memo[id(e)]

    def node(self, e: Expr) -> Interval:
        if isinstance(e, Const):
            if e.dtype.is_float:
                return rounded(Interval(e.value, e.value, sure=True), e.dtype)
            return Interval.point(int(e.value))
        if isinstance(e, Var) and e.name in self.scope:
            return variable_range(self.scope[e.name], e.dtype)
        if isinstance(e, Var) and e.dtype in float_ends.COMPUTED:
            return Interval(e, e, sure=True)
        if self.is_scalar(e):  # both ends share it; otherwise, each use would double the expression
            return Interval.point(build.cast(INDEX, e))
        if e.dtype.is_bool:
            return Interval(0, 1)
        if isinstance(e, Op):
            return self.operation(e)
        if isinstance(e, Cast):
            r = self.operand(e.value)
            result = cast_range(r, e.value.dtype, e.dtype)
            return in_order(e, r, result) if e.value.dtype.is_float and not e.dtype.is_float else result
        if isinstance(e, Load):
            return self.scope.get(values_of(e.buffer)) or type_range(e.dtype)
        if isinstance(e, Bits):
            return type_range(e.dtype)
        if isinstance(e, Broadcast):
            return self.operand(e.value)
        if isinstance(e, Ramp):
            step = OPS["mul"](self.operand(e.stride), Interval(0, e.lanes - 1))
            return OPS["add"](self.operand(e.base), step)
        return EVERYTHING

    def is_scalar(self, e: Expr) -> bool:
        """Whether an expression is a single number at run time, so that it is its own bound, whether it wraps or not.
        This excludes floats, which may be rounded differently where they occur again, and uint64, some of whose values
        do not fit an index."""
        own = names(e)
        if not own or not self.scope.keys().isdisjoint(own) or not e.dtype.is_int or e.dtype is UINT64 or e.lanes > 1:
            return False
        return not loaded(e) and (e.dtype is INDEX or not has_floats(e))

    def operation(self, e: Op) -> Interval:
        if e.op in COMPARISON or e.dtype.is_bool:
            return Interval(0, 1)
        if e.op == "select":
            return self.select(e)
        if e.op == "popcount":
            return Interval(0, e.dtype.bits)
        if e.dtype.is_float:
            return self.float_operation(e)
        rule = OPS.get(e.op)
        if rule is None:
            return type_range(e.dtype)
        result = rule(*[self.operand(a) for a in e.args])
        if e.dtype is INDEX:
            return result
        return wrapped(result, e.dtype) if e.op in _MAY_WRAP else held(result, e.dtype)

    def float_operation(self, e: Op) -> Interval:
        rule = FLOAT_OPS.get(e.op)
        if rule is None:
            return EVERYTHING
        operands = [self.operand(a) for a in e.args]
        result = rule(*operands)
        sure = all(r.sure for r in operands)
        if may_divide_by_zero(e) and isinstance(operands[1].low, Expr):
            result, sure = result if operands[1].is_point else EVERYTHING, False
        result = rounded(Interval(result.low, result.high, sure=sure), e.dtype)
        if float_ends.may_be_rounded_otherwise(e):
            result = Interval(*float_ends.outwards(result.low, result.high, e.dtype), sure=result.sure)
        return whole_numbers("floor")(result) if e.op == "floordiv" else result

    def select(self, e: Op) -> Interval:
        condition, then, otherwise = e.args
        a, b = self.within(condition, True).operand(then), self.within(condition, False).operand(otherwise)
        both = a.hull(b)
        return Interval(both.low, both.high, sure=a.sure and b.sure)


class IntervalProgram:
    """Index arithmetic on constants and variables, compiled to steps that can be evaluated in many scopes."""

    def __init__(self, e: Expr) -> None:
        self._e, self._names = e, names(e)
        self._steps: list[tuple[Callable[..., Interval], tuple[int, ...]] | Interval | str] | None = []
        positions: dict[int, int] = {}
        for n in operands_first(e):
            step = _step(n, positions)
            if step is None:
                self._steps = None
                break
            positions[id(n)] = len(self._steps)
            self._steps.append(step)

    def interval(self, scope: Scope) -> Interval:
        """The interval of the expression in a scope."""
        if self._steps is None or not all(name in scope for name in self._names):
            return interval(self._e, scope)
        results: list[Interval] = []
        for step in self._steps:
            if isinstance(step, tuple):
                results.append(step[0](*[results[k] for k in step[1]]))
            else:
                results.append(scope[step] if isinstance(step, str) else step)
        return results[-1]


def _step(
    e: Expr, positions: Mapping[int, int]
) -> tuple[Callable[..., Interval], tuple[int, ...]] | Interval | str | None:
    """The step for a node: a rule and the positions of its operands, the interval of a constant, or the name of a
    variable. None for any other node."""
    if e.dtype is not INDEX:
        return None
    if isinstance(e, Const):
        return Interval.point(int(e.value))
    if isinstance(e, Var):
        return e.name
    if isinstance(e, Op) and e.op in OPS:
        return OPS[e.op], tuple(positions[id(c)] for c in e.args)
    return None
