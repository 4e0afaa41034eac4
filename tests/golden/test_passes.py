"""The loop nests of `examples`, compared with the files beside them; `pytest --update-golden` writes the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pantile.compile import Options, to_kernels, to_loops
from pantile.graph.nodes import Graph
from pantile.graph.outputs import separate_outputs
from pantile.graph.show import show as show_graph
from pantile.ir.nodes import Program, Stmt
from pantile.ir.show import show, show_program
from pantile.lang.build import build
from pantile.lower.nest import LoopNest
from pantile.lower.passes import LOOP_PASSES, PROGRAM_PASSES, Device, Trace
from pantile.schedule.resolve import resolve
from pantile.schedule.schedule import Schedule
from pantile.target import Target, named
from pantile.variant import Variants

from .examples import EXAMPLES, Example
from .gpu_examples import GPU_EXAMPLES

FOLDER = Path(__file__).parent
ALL = [*EXAMPLES, *GPU_EXAMPLES]


class Recorder(Trace):
    """Keeps what every pass returned."""

    def __init__(self) -> None:
        super().__init__(check=True)
        self.results: dict[str, Any] = {}

    def run(self, name: str, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.results[name] = super().run(name, work, *args, **kwargs)
        return self.results[name]


def lowered(graph: Graph, schedule: Schedule, target: Target) -> dict[str, str]:
    """The text after every pass."""
    resolved, plan = resolve(graph, schedule, target=target)
    recorder = Recorder()
    options = Options(target)
    to_kernels(to_loops(resolved, plan, Variants(resolved, plan).usual, options, recorder), options, recorder)
    return {"graph": text(graph), **{name: text(result) for name, result in recorder.results.items()}}


def text(result: object) -> str:
    if isinstance(result, tuple):  # a graph and its plan
        result = result[0]
    if isinstance(result, Graph):
        return show_graph(result).rstrip()
    if isinstance(result, LoopNest):
        return show(result.body)
    if isinstance(result, Program):
        return show_program(result)
    return show(result) if isinstance(result, Stmt) else ""


def golden(example: Example) -> str:
    graph = separate_outputs(build(*example.build()))
    parts = [example.about, text(graph)]
    shown: Schedule | None = None
    for section in example.sections:
        if section.schedule != shown:
            parts.append(repr(section.schedule))
        shown = section.schedule
        parts.append(f"---- {section.title}\n\n{lowered(graph, shown, named(example.target))[section.after]}")
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("example", ALL, ids=lambda e: e.name)
def test_golden(example: Example, update_golden: bool) -> None:
    file, found = FOLDER / f"{example.name}.txt", golden(example)
    if update_golden:
        file.write_text(found)
    assert found == file.read_text(), "if the new loops are right, run pytest --update-golden and review the diff"


@pytest.mark.parametrize("example", [e for e in ALL if len(e.sections) == 2], ids=lambda e: e.name)
def test_an_example_shows_a_difference(example: Example) -> None:
    (_, before), (_, after) = (
        s.split("\n", 1) for s in (FOLDER / f"{example.name}.txt").read_text().split("---- ")[1:]
    )
    assert before.strip() != after.strip()


def test_every_file_has_an_example() -> None:
    assert {f.stem for f in FOLDER.glob("*.txt")} == {e.name for e in ALL}


@pytest.mark.parametrize("device", Device)
def test_every_pass_has_an_example(device: Device) -> None:
    passes = [p.name for p in (*LOOP_PASSES, *PROGRAM_PASSES) if device in p.on]
    shown = {s.after for e in ALL for s in e.sections}
    assert not [name for name in passes if name not in shown]
