"""The settings of random cases are those of tests/fuzz."""

from __future__ import annotations

from tests.fuzz import conftest as _settings  # noqa: F401
