"""What `import pantile` and a first call bring in: nothing that only few programs use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pantile as pt

LATER = (
    "islpy", "email", "html", "scipy", "PIL", "cuda",  # what takes long, and who imports that
    "pantile.analysis.polyhedra", "pantile.autoschedule.dp", "pantile.autoschedule.polymage",
    "pantile.autoschedule.posttile", "pantile.autoschedule.shapes", "pantile.autoschedule.autogpu",
    "pantile.autoschedule.blocks", "pantile.autoschedule.polymage_gpu", "pantile.autoschedule.variants",
    "pantile.explain.page", "pantile.explain.text",
    "pantile.apps", "pantile.bench", "pantile.cli",
    "pantile.backends.cuda", "pantile.runtime.cuda", "pantile.machine.multiprocessor",
    "pantile.machine.capabilities",
)  # fmt: skip
MOST_MODULES = 345  # of ours: room for some that every call needs; what else is there, is there by mistake

FIRST_EXAMPLE = """
import numpy as np
import pantile as pt

y, x = pt.vars("y x")
img = pt.Input("img", "uint16", ndim=2)
blur = pt.Func("blur")
blur[y, x] = (img[y, x] + img[y, x + 1] + img[y, x + 2]) // 3
pt.Pipeline(blur, shape=(img.shape[0], img.shape[1] - 2){options})(img=np.zeros((108, 192), dtype=np.uint16))
"""


def imported(program: str) -> set[str]:
    program += "\nimport sys; print('imported', *sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(run.stdout.rpartition("imported ")[2].split())


@pytest.mark.parametrize(
    "program",
    ["import pantile", FIRST_EXAMPLE.format(options=""), FIRST_EXAMPLE.format(options=", schedule='auto'")],
    ids=["import", "default", "auto"],
)
def test_what_few_programs_use_is_not_imported(program: str) -> None:
    found = imported(program)
    assert found.isdisjoint(LATER)
    assert sum(m.split(".")[0] == "pantile" for m in found) <= MOST_MODULES


def test_strategies_are_there_under_all_their_names() -> None:
    for name, strategy in pt.autoschedule.STRATEGIES.items():
        assert strategy.name == name
        assert getattr(pt.autoschedule, strategy.__name__) is strategy
    assert set(pt.autoschedule.__all__) <= set(dir(pt.autoschedule))
    with pytest.raises(AttributeError, match=r"module 'pantile\.autoschedule' has no attribute 'Dps'"):
        pt.autoschedule.Dps  # type: ignore[attr-defined]  # noqa: B018
