"""Expands transcendental functions to plain arithmetic.

Input: an `Op` exp, log, pow, cbrt, sin, cos, tan, tanh, asin, acos, erf or atan2 of any float type and lanes.
Output: an expression of basic operations with the same value; special cases are as in C and NumPy.

Largest error in units of the last place of the exact result, denormal results included, and vector operations per
vector (those on float64 inside a float32 function count twice):

                 ulp           operations
            float32 float64  float32 float64
    exp       1.0     1.3      20      28
    log       1.2     1.4      28      44
    pow       2.9     1.8      84     106
    cbrt      0.7     0.6      44      50
    sin       1.9     1.9      26      21
    cos       1.9     1.9      28      21
    tan       2.9     2.7      29      31
    tanh      1.9     2.0      27      35
    asin      2.0     2.2      18      28
    acos      1.4     1.3      24      34
    erf       1.1     1.3      33      65
    atan2     2.2     2.1      29      44

The errors hold whether or not a backend fuses multiplications into additions, but not under reassociation. sin, cos and
tan are reduced exactly for |x| <= 1e12; beyond that, sin and cos are some value in [-1, 1], and tan is any number.
float16 and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import InternalError
from ...expr.build import cast
from ...expr.nodes import Expr, Op
from ...expr.types import FLOAT32
from .exponential import cbrt, erf, exp, log, pow, tanh
from .trigonometric import acos, asin, atan2, cos, sin, tan

_FUNCTIONS: dict[str, Callable[..., Expr]] = {
    "exp": exp, "log": log, "pow": pow, "cbrt": cbrt, "tanh": tanh, "sin": sin, "cos": cos, "tan": tan, "asin": asin,
    "acos": acos, "erf": erf, "atan2": atan2,
}  # fmt: skip
TRANSCENDENTAL = frozenset(_FUNCTIONS)


def expand(op: Op) -> Expr:
    """Expand a function to basic operations."""
    if op.op not in TRANSCENDENTAL or not op.dtype.is_float:
        raise InternalError(f"{op} is not a transcendental function of a float")
    function = _FUNCTIONS[op.op]
    if op.dtype.bits >= 32:
        return function(*op.args)
    return cast(op.dtype, function(*(cast(FLOAT32, a) for a in op.args)))
