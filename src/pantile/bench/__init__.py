"""Measuring pipelines beside other systems: `pantile bench`.

`contender` says what can be timed; `ours` and `rivals` provide it; `agreement` checks that all compute the same;
`rounds` times them in turn; `report` shows what came out.
"""

from .command import add_arguments, main, run

__all__ = ["add_arguments", "main", "run"]
