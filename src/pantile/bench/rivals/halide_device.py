"""The GPU as Halide has it: what :mod:`.gpu_worker` asks of a library.

Halide's Python has no streams, events or graphs. Its runtime asks a handler which stream to use, though, and tells it
its context; with both of them the driver has all of that.
"""

import ctypes
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

# No Python binding has these.
SET_HANDLERS = "_ZN6Halide8Internal16JITSharedRuntime20set_default_handlersERKNS_11JITHandlersE"
KEEP_MEMORY = "_ZN6Halide8Internal16JITSharedRuntime24reuse_device_allocationsEb"

_THIS_THREAD = 1  # which a capture forbids to do what cannot be captured
_WARM_CALLS = 3  # before a capture, so that memory is there

_Choose = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))


class _Handlers(ctypes.Structure):
    """What a pipeline calls; the last one chooses a stream. Null leaves one as it is."""

    _fields_ = (("functions", ctypes.c_void_p * 13),)


class HalideDevice:
    """All that Halide launches goes to the stream that is the current one here: the default one, but for captures."""

    def __init__(self) -> None:
        """Become the handler, and have memory of intermediate arrays kept for the next call."""
        self._driver = Driver()
        self._stream: int | None = None
        self._context: int | None = None  # Halide's, once something has run
        self._choose = _Choose(self._chosen)  # which must live as long as Halide may call it
        halide, handlers = _loaded("libHalide"), _Handlers()
        handlers.functions[-1] = ctypes.cast(self._choose, ctypes.c_void_p)
        set_handlers = getattr(halide, SET_HANDLERS)
        set_handlers.restype = _Handlers  # those of before
        set_handlers(ctypes.byref(handlers))
        getattr(halide, KEEP_MEMORY)(ctypes.c_bool(True))

    def wait(self) -> None:
        """Until the GPU has nothing to do, in Halide's context, which is the current one from then on."""
        self._driver.cuCtxSetCurrent(ctypes.c_void_p(self._context))
        self._driver.cuCtxSynchronize()

    def elapsed_ms(self, work: Callable[[], object], calls: int) -> float:
        """How long so many calls take on the GPU, one after the other."""
        start, end, elapsed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        self.wait()
        for event in (start, end):
            self._driver.cuEventCreate(ctypes.byref(event), 0)
        self._driver.cuEventRecord(start, None)
        for _ in range(calls):
            work()
        self._driver.cuEventRecord(end, None)
        self._driver.cuEventSynchronize(end)
        self._driver.cuEventElapsedTime(ctypes.byref(elapsed), start, end)
        for event in (start, end):
            self._driver.cuEventDestroy_v2(event)
        return elapsed.value

    def captured(self, work: Callable[[], object], calls: int) -> Callable[[], object]:
        """So many calls as one CUDA graph. What the processor computes among them is refused: its copies to the GPU
        are of the default stream, which waits for the one that is captured.
        """
        driver, stream, graph, replayed = self._driver, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.wait()
        driver.cuStreamCreate(ctypes.byref(stream), 0)
        self._stream = stream.value
        try:
            for _ in range(_WARM_CALLS):
                work()
            self.wait()
            driver.cuStreamBeginCapture_v2(stream, _THIS_THREAD)
            try:
                for _ in range(calls):
                    work()
            except Exception:
                with suppress(RuntimeError):
                    driver.cuStreamEndCapture(stream, ctypes.byref(graph))
                raise
            driver.cuStreamEndCapture(stream, ctypes.byref(graph))
        finally:
            self._stream = None
        driver.cuGraphInstantiateWithFlags(ctypes.byref(replayed), graph, ctypes.c_uint64(0))
        return lambda: driver.cuGraphLaunch(replayed, None)

    def _chosen(self, _: Any, context: int, stream: Any) -> int:
        self._context = context
        stream[0] = self._stream
        return 0


class Driver:
    """NVIDIA's driver, whose functions fail by exceptions."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name: str) -> Callable[..., None]:
        """A function of its."""
        function = getattr(self._library, name)

        def checked(*arguments: Any) -> None:
            if failed := function(*arguments):
                raise RuntimeError(f"{name} fails with error {failed}")

        setattr(self, name, checked)
        return checked


def _loaded(name: str) -> ctypes.CDLL:
    """A library that this process has loaded, wherever it is from."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return ctypes.CDLL(next(path for path in (line.split(maxsplit=5)[-1] for line in lines) if name in path))
