"""Whether what passes make is verified, pass by pass: in tests, and for pipelines made with debug=True."""

from __future__ import annotations

import os

VARIABLE = "PANTILE_VERIFY"


def is_asked() -> bool:
    """Whether PANTILE_VERIFY=1 asks for it, for all pipelines of the process."""
    return os.environ.get(VARIABLE, "0") != "0"
