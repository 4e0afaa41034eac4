"""What a kernel does that a GPU would not forgive, or would forgive today and not tomorrow."""

from __future__ import annotations

from ..errors import RunError


class SimulationError(RunError):
    """A kernel reads or writes what it must not, races, or waits for threads that never come."""

    def __init__(self, kernel: str, block: int, thread: int | None, message: str) -> None:
        self.kernel, self.block, self.thread, self.message = kernel, block, thread, message
        who = f"kernel {kernel}, block {block}" + ("" if thread is None else f", thread {thread}")
        super().__init__(f"{who}: {message}")

    def __reduce__(self) -> tuple[type[SimulationError], tuple[str, int, int | None, str]]:
        return SimulationError, (self.kernel, self.block, self.thread, self.message)
