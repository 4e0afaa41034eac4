"""Expressions, which graphs and the loop IR share: types, nodes, typed construction, traversal and printing."""

from .build import binary, unary
from .nodes import meaning
from .numpy_functions import apply_function, apply_ufunc, rounded
from .show import show

meaning.binary, meaning.unary, meaning.rounded = binary, unary, rounded
meaning.apply_ufunc, meaning.apply_function = apply_ufunc, apply_function
meaning.show = show
