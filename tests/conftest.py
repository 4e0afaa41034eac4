"""Options of the whole test suite, and a compile cache of its own.

How many random cases: `ci` (the default) is the same every time, and shows what fails as it was drawn, since a case
that takes long to fail takes hours to shrink; `python -m tests.fuzz.reduce` makes it small. PANTILE_FUZZ=long searches
anew, and shrinks.
"""

from __future__ import annotations

import faulthandler
import gc
import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from .long import LONG

# Hypothesis draws now and then from the constants it finds in the modules that are loaded: the cases would change with
# every edit anywhere, and with the tests that are run beside.
providers._get_local_constants = lambda: providers.Constants()

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("ci", max_examples=8, derandomize=True, database=None, phases=[Phase.generate], **_COMMON)
settings.register_profile("long", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("PANTILE_FUZZ", "ci"))

gc.disable()  # until all tests are collected, which leaves no garbage


def pytest_collection_finish() -> None:
    """Modules and tests live to the end: no garbage is looked for among them, here and in processes that tests fork."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the loop nests of tests/golden and the outputs shown in docs anew instead of comparing them",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


# Nearly all tests are about other things than how `auto` schedules: what names no schedule is computed plainly.
os.environ["PANTILE_SCHEDULE"] = "plain"
# A warning is an error in processes that tests start, too, such as that of a search which failed.
os.environ["PYTHONWARNINGS"] = "error::UserWarning"
# Each pass is held to what it guarantees.
os.environ["PANTILE_VERIFY"] = "1"
# Formulas in NumPy are for comparison: threads of its BLAS would spin beside other tests, for many times as long as
# the products take. BLAS reads this when NumPy is imported, which is later.
os.environ["OPENBLAS_NUM_THREADS"] = "1"


@pytest.fixture(scope="session", autouse=True)
def _own_compile_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Code compiled by another run must not hide what this one would compile; the processes of one run share theirs."""
    run = tmp_path_factory.getbasetemp()
    cache = (run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    os.environ["PANTILE_CACHE_DIR"] = str(cache)


if LONG:

    @pytest.fixture(autouse=True)
    def _no_time_limit() -> None:
        """A test that searches for hours is not one that hangs; its cases have limits of their own."""
        faulthandler.cancel_dump_traceback_later()
