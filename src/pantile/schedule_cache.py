"""A cache on disk of schedules that strategies have found, next to the code, so that the next process neither searches
nor compiles.

The key is the pipeline, the strategy with its parameters, the sizes, the machine and the version of Pantile. Strategies
that measure are not cached, nor are users' strategies, whose source may change. An entry is text, which is validated as
strictly as if a user had written it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from . import tuning_results, untrusted_json
from .analysis.fingerprint import fingerprint
from .autoschedule import (
    STRATEGIES,
    Alternative,
    Auto,
    Found,
    Given,
    GroupReport,
    Problem,
    Report,
    Strategy,
    Tuned,
)
from .cost_model.result import time
from .errors import UserError, here, working_alone
from .expr.depth import on_deep_stack, rare_collections
from .graph.nodes import InputInfo
from .progress import doing
from .runtime import cache
from .runtime.threads import get_num_threads
from .schedule import Schedule


def find_schedule(strategy: Strategy, problem: Problem) -> Found:
    """The schedule that the strategy finds, or a cached one."""
    if isinstance(strategy, Tuned):
        return _find_tuned(problem)
    if strategy.measures or STRATEGIES.get(strategy.name) is not type(strategy):
        return _find(strategy, problem)
    name = cache.key(*_key(strategy, problem))
    result = _from_bytes(cache.read(name))
    if result is None:
        result = _find(strategy, problem, is_ours=True)
        cache.write(name, _to_bytes(result))
    return result


def _find_tuned(problem: Problem) -> Found:
    """The winner of `pantile tune`, or else the schedule of `auto`, with a warning."""
    threads = get_num_threads()
    winner = tuning_results.read(problem, threads)
    if winner is not None:
        remark = f"{winner.name}: the fastest of {winner.tried}, {time(winner.seconds)} when it was tuned"
        return Given(winner.schedule, remark, called=Tuned.name).find(problem)
    where = here()
    shapes = " ".join(f"--shape {i.name}={_extents(problem, i)}" for i in problem.graph.arguments)
    hint = (
        f"{problem.graph.name} was not tuned for these sizes, {threads} threads and this machine, and runs under the "
        f"schedule of auto; tune it with: pantile tune FILE.py:NAME {shapes}"
    )
    warnings.warn_explicit(hint, tuning_results.NotTuned, where.file, where.line)
    fallback = find_schedule(Auto(), problem)
    return replace(fallback, report=replace(fallback.report, remarks=(*fallback.report.remarks, hint)))


def _extents(problem: Problem, i: InputInfo) -> str:
    known = i.known or (None,) * i.ndim
    extents = [problem.scalars.get(i.extent(k), n) for k, n in enumerate(known)]
    return "x".join(map(str, extents))


class NotFound(UserWarning):
    """A pipeline runs under the plain schedule, because the search for its schedule has failed."""


def plain_instead(strategy: Strategy, problem: Problem, failure: Exception) -> Found:
    """The plain schedule, with a warning, in place of one that a strategy failed to find."""
    where, name = here(), problem.graph.name
    hint = (
        f"{name} runs under the plain schedule, because {strategy.name} failed ({type(failure).__name__}: {failure}), "
        'which is a bug of Pantile; schedule="plain" avoids this warning'
    )
    warnings.warn_explicit(hint, NotFound, where.file, where.line)
    return Given(Schedule(), hint, called=strategy.name).find(problem)


def _find(strategy: Strategy, problem: Problem, is_ours: bool = False) -> Found:
    search = working_alone()(strategy.find) if is_ours else strategy.find
    stages = f"the {len(problem.graph.stages)} stages of {problem.graph.name}"
    with doing(f"{strategy.name} schedules {stages}"), rare_collections():
        return on_deep_stack(search)(problem)


def _key(strategy: Strategy, problem: Problem) -> list[str]:
    sizes = (sorted(problem.shapes.items()), sorted(problem.scalars.items()))
    return ["schedule", fingerprint(problem.graph), *map(repr, (strategy, sizes, problem.machine, problem.strict))]


def _to_bytes(result: Found) -> bytes:
    others = result.report.alternatives
    report = asdict(replace(result.report, alternatives=()))
    report["parameters"] = {k: str(v) for k, v in report["parameters"].items()}
    report["alternatives"] = [
        {"name": a.name, "schedule": a.schedule.to_json(), "seconds": a.seconds, "why": a.why} for a in others
    ]
    return json.dumps({"schedule": result.schedule.to_json(), "report": report}, default=_number).encode()


def _number(value: Any) -> Any:
    """Convert a NumPy number, which a cost may be, to Python's."""
    return value.item()


_ALTERNATIVE = {"name": str, "schedule": str, "seconds": untrusted_json.NUMBER, "why": str}
_GROUP = {
    "output": str,
    "members": [str],
    "levels": [{...: int}],
    "costs": {...: untrusted_json.NUMBER},
    "remarks": [str],
}
_REPORT = {
    "strategy": str,
    "machine": str,
    "parameters": {...: str},
    "groups": [_GROUP],
    "inlined": [str],
    "counts": {...: untrusted_json.NUMBER},
    "remarks": [str],
    "alternatives": [_ALTERNATIVE],
}


def _from_bytes(data: bytes | None) -> Found | None:
    """The schedule of an entry; None if there is none, or if it is invalid."""
    try:
        result = untrusted_json.loads(data or b"null", infinite=True)
        if not untrusted_json.fits(result, {"schedule": str, "report": _REPORT}):
            return None
        return Found(Schedule.from_json(result["schedule"]), _report(result["report"]))
    except (UserError, ValueError):
        return None


def _report(fields: Mapping[str, Any]) -> Report:
    groups = tuple(GroupReport(**_with_tuples(g, "members", "levels", "remarks")) for g in fields["groups"])
    others = tuple(Alternative(**{**a, "schedule": Schedule.from_json(a["schedule"])}) for a in fields["alternatives"])
    return Report(**_with_tuples({**fields, "groups": groups, "alternatives": others}, "inlined", "remarks"))


def _with_tuples(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {k: tuple(v) if k in names else v for k, v in fields.items()}
