"""Errors of a kernel that a GPU would not report, or that would only sometimes show."""

from __future__ import annotations

from ..errors import RunError


class SimulationError(RunError):
    """A kernel makes an invalid access, has a data race, or waits for threads that never arrive."""

    def __init__(self, kernel: str, block: int, thread: int | None, message: str) -> None:
        self.kernel, self.block, self.thread, self.message = kernel, block, thread, message
        who = f"kernel {kernel}, block {block}" + ("" if thread is None else f", thread {thread}")
        super().__init__(f"{who}: {message}")

    def __reduce__(self) -> tuple[type[SimulationError], tuple[str, int, int | None, str]]:
        return SimulationError, (self.kernel, self.block, self.thread, self.message)
