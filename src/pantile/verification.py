"""Whether to verify the results of passes. They are verified in tests and for pipelines with debug=True."""

from __future__ import annotations

import os

VARIABLE = "PANTILE_VERIFY"


def is_enabled() -> bool:
    """Whether PANTILE_VERIFY=1 enables verification for all pipelines of the process."""
    return os.environ.get(VARIABLE, "0") != "0"
