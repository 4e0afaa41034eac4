"""The GPU of this machine as a `pt.machine.Gpu`, from its driver and the rates that `pantile calibrate --gpu` has
measured.

Facts that the driver does not report, such as FP32 cores and allocation units, follow from the compute capability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

from ... import cache_directory, untrusted_json
from ...errors import UserError
from ...machine.capabilities import like, of_geforce
from ...machine.multiprocessor import Gpu, Multiprocessor
from ...target.gpu import WARP_SIZE
from .device import Device, current
from .driver import MissingDriver
from .measure import GpuRates, measure

FILE_NAME = "gpu.json"
_RATES = {"ghz": untrusted_json.NUMBER, "bandwidth": untrusted_json.NUMBER, "shared_per_cycle": untrusted_json.NUMBER}


def detect(device: Device | None = None) -> Gpu:
    """Describe a GPU, by default the current one, with its measured rates or, without these, the driver's rates."""
    device = device or current()
    return _described(device, _cached_rates().get(_key(device)) or _rates_of_driver(device))


def at_hand() -> Gpu | None:
    """The current GPU; None if there is none."""
    try:
        device = current()
    except MissingDriver:
        return None
    return detect(device)


def calibrate(device: Device | None = None, progress: Callable[[str], None] = lambda _: None) -> Gpu:
    """Measure the rates of a GPU, which should be idle, and cache them. `progress` is called with the current step."""
    device = device or current()
    rates = measure(device, progress)
    entries = {key: asdict(r) for key, r in {**_cached_rates(), _key(device): rates}.items()}
    untrusted_json.write_entries(cache_directory.directory(), FILE_NAME, entries)
    return _described(device, rates)


def _key(device: Device) -> str:
    return f"{device.name}, {device.multiprocessors} multiprocessors, {device.memory} bytes"


def _cached_rates() -> dict[str, GpuRates]:
    try:
        return {
            key: GpuRates(**r)
            for key, r in untrusted_json.read_entries(cache_directory.directory(), FILE_NAME, _RATES).items()
        }
    except UserError:  # raised for rates that no GPU has
        return {}


def _rates_of_driver(device: Device) -> GpuRates:
    """The rates that follow from the clocks that the driver reports, in kHz; memory transfers data twice per cycle."""
    memory_hz = 1e3 * device.attribute("MEMORY_CLOCK_RATE")
    if not memory_hz:
        raise UserError(f"the driver does not report the clock of the memory of {device}; run pantile calibrate --gpu")
    bandwidth = 2 * memory_hz * device.attribute("GLOBAL_MEMORY_BUS_WIDTH") / 8
    return GpuRates(device.attribute("CLOCK_RATE") / 1e6, bandwidth, like(device.capability).shared_per_cycle)


def _described(device: Device, rates: GpuRates) -> Gpu:
    return Gpu(
        name=device.name,
        capability=device.capability,
        multiprocessors=device.multiprocessors,
        multiprocessor=replace(_multiprocessor(device), shared_per_cycle=rates.shared_per_cycle),
        ghz=rates.ghz,
        l2=device.attribute("L2_CACHE_SIZE"),
        bandwidth=rates.bandwidth,
    )


def _multiprocessor(device: Device) -> Multiprocessor:
    known = like(device.capability)
    return replace(
        of_geforce(known) if "GeForce" in device.name else known,
        warps=device.attribute("MAX_THREADS_PER_MULTIPROCESSOR") // WARP_SIZE,
        blocks=device.attribute("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        registers=device.attribute("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        registers_per_block=device.attribute("MAX_REGISTERS_PER_BLOCK"),
        shared=device.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        shared_per_block=device.most_shared,
        shared_reserved=device.attribute("RESERVED_SHARED_MEMORY_PER_BLOCK"),
    )
