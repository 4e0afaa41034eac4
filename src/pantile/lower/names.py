"""Names in the loop IR. Names given by users and words added by lowering are kept apart.

    f, f.1, f.out     buffers: of an input, of a stage or of one of its values, and the copy of it that the caller gets
    f.stride.0        things that belong to a buffer or a definition: its name, an added word, perhaps a number
    f.x, f.u1.r.x     loop variables: of the pure definition of f, and of its first update
    f.x.min           things that belong to a loop: its name, an added word, perhaps a number

A word in a loop's name gets a prime if lowering could add the same word at this position: the loop `min` of f is
f.min'. No two things can therefore have the same name, whatever names users choose: users' words contain neither primes
nor dots, and do not begin with a digit.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..errors import InternalError
from ..expr.nodes import Var, var
from ..graph.nodes import Graph, Stage
from ..schedule.plan import Site

# All words that lowering adds to names, by what they follow.
_OF_BUFFERS = frozenset(
    {"out", "shape", "stride", "min", "value", "held", "lanes", "block", "thread", "ahead", "from", "combined"}
    | {"registers"}
)
_OF_LOOPS = frozenset(
    {"min", "max", "lo", "at", "rest", "row", "column", "first", "steady", "steady_end", "edge"}
    | {"piece", "start", "whole", "begin", "constant", "block", "thread", "turn", "own", "early", "lane", "warp"}
    | {"tiles", "blocks"}
)
_UPDATE = re.compile(r"u\d+")
_EXTENT = re.compile(r"\.shape\.\d+$")
_ADDED = re.compile(rf"(\.({'|'.join(sorted(_OF_BUFFERS))})(\.-?\d+)?)+$")  # the parts that of_buffer has added


def is_of_call(name: str) -> bool:
    """Whether a scalar is a param, whose name is a single word, or an extent of an array."""
    return "." not in name or _EXTENT.search(name) is not None


def is_end(name: str) -> bool:
    """Whether a name is that of the coordinate in a loop where the whole blocks, or the iterations without tests,
    end."""
    return name.endswith((".rest", ".steady_end", ".edge"))


def prefix(stage: Stage, definition: int) -> str:
    """The prefix of a definition's loop variables: the stage's name, then u1, u2, ... for updates."""
    return stage.name if definition == 0 else f"{stage.name}.u{definition}"


def loop_name(stage: Stage, definition: int, loop: str) -> str:
    """The name of a loop's variable."""
    return f"{prefix(stage, definition)}.{_words(loop)}"


def site_variable(graph: Graph, site: Site) -> str:
    """The loop variable of a site."""
    return loop_name(graph.stage[site.stage], site.definition, site.loop)


@lru_cache(maxsize=1 << 10)  # the loops of many stages have the same names
def _words(loop: str) -> str:
    first, *others = loop.split(".")
    words = [_apart(first, first in _OF_BUFFERS or _UPDATE.fullmatch(first) is not None)]
    return ".".join([*words, *(_apart(word, word in _OF_LOOPS) for word in others)])


def _apart(word: str, ours: bool) -> str:
    return f"{word}'" if ours else word


def of_buffer(name: str, word: str, number: int | None = None) -> str:
    """The name of something that belongs to a buffer or a definition."""
    return _composed_name(name, word, number, _OF_BUFFERS)


def made_for(buffer: str) -> str:
    """The buffer of a stage for which lowering has made another buffer: f.1 for f.1.from.2. For f.1 it is f.1
    itself."""
    return _ADDED.sub("", buffer)


def of_loop(variable: str, word: str, number: int | None = None) -> str:
    """The name of something that belongs to a loop."""
    return _composed_name(variable, word, number, _OF_LOOPS)


def _composed_name(name: str, word: str, number: int | None, words: frozenset[str]) -> str:
    if word not in words:
        raise InternalError(f"{word!r} is not a word that names are made of: a user's name could be the same")
    return f"{name}.{word}" if number is None else f"{name}.{word}.{number}"


def region_names(stage: Stage, dim: str) -> tuple[Var, Var]:
    """The names of the first and the last coordinate over which a stage is computed."""
    loop = loop_name(stage, 0, dim)
    return var(of_loop(loop, "min")), var(of_loop(loop, "max"))
