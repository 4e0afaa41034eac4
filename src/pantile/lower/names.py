"""Names of the loop IR: what users called things, and what lowering adds to that, kept apart.

    f, f.1, f.out     buffers: of an input, of a stage or of one value of it, and the copy of it that the caller gets
    f.stride.0        what belongs to a buffer or a definition: its name, a word of ours, perhaps a number
    f.x, f.u1.r.x     loop variables: of the pure definition of f, of its first update
    f.x.min           what belongs to a loop: its name, a word of ours, perhaps a number

A word of a loop's name that is one of ours in that place gets a prime: the loop `min` of f is f.min'. So no two things
can have the same name, whatever users call theirs: their words have neither primes nor dots, nor begin with a digit.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..errors import InternalError
from ..expr.nodes import Var, var
from ..graph.nodes import Graph, Stage
from ..schedule.plan import Site

# Every word that a made-up name can contain, by what it follows.
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
_ADDED = re.compile(rf"(\.({'|'.join(sorted(_OF_BUFFERS))})(\.-?\d+)?)+$")  # what of_buffer adds, perhaps several times


def is_of_call(name: str) -> bool:
    """Whether a scalar is a param, whose name is a single word, or an extent of an array."""
    return "." not in name or _EXTENT.search(name) is not None


def is_end(name: str) -> bool:
    """Whether a name is that of the coordinate where whole blocks, or what needs no tests, end in a loop."""
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


@lru_cache(maxsize=1 << 10)  # loops of many stages have the same names
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
    """The buffer of a stage for which lowering has made another one: f.1 of f.1.from.2; of f.1, that is itself."""
    return _ADDED.sub("", buffer)


def of_loop(variable: str, word: str, number: int | None = None) -> str:
    """The name of something that belongs to a loop."""
    return _composed_name(variable, word, number, _OF_LOOPS)


def _composed_name(name: str, word: str, number: int | None, words: frozenset[str]) -> str:
    if word not in words:
        raise InternalError(f"{word!r} is not a word that names are made of: a user's name could be the same")
    return f"{name}.{word}" if number is None else f"{name}.{word}.{number}"


def region_names(stage: Stage, dim: str) -> tuple[Var, Var]:
    """The names of the first and last coordinate a stage is computed over."""
    loop = loop_name(stage, 0, dim)
    return var(of_loop(loop, "min")), var(of_loop(loop, "max"))
