"""Every mistake in strategies, machines, options and targets: one case each."""

from __future__ import annotations

from dataclasses import replace

import pantile as pt
from pantile.simulator import occupancy

from .cases import Case, Cases, assert_refused
from .pipelines import func, picture, pipeline

CASES = Cases()
must_fail = CASES.must_fail


# ---- strategies and machines


@must_fail("estimates=5 are not arguments by name; pass shapes of inputs and values of params, such as {")
def estimates_of_no_kind() -> object:
    return pt.Pipeline(func(), (3, 3), schedule="greedy", estimates=5)  # type: ignore[arg-type]


@must_fail("estimates={5: .*} are not arguments by name")
def estimates_without_names() -> object:
    return pt.Pipeline(func(), (3, 3), schedule="greedy", estimates={5: (8, 9)})  # type: ignore[arg-type]


@must_fail("machine='i7-6700' is not a machine; pass pt.machine.detect")
def machine_of_no_kind() -> object:
    return pt.Pipeline(func(), (3, 3), machine="i7-6700")  # type: ignore[arg-type]


@must_fail("machine=H200 is a GPU, and the pipeline is for .*; leave machine= out, or write target='cuda'")
def machine_that_is_a_gpu() -> object:
    return pt.Pipeline(func(), (3, 3), machine=pt.machine.named("H200"))


@must_fail(
    "schedule='autogpu' finds schedules for GPUs, and the pipeline is for .*; write target='cuda' or target='cuda-s"
)
def strategy_for_gpus_on_a_cpu() -> object:
    return pt.Pipeline(func(), (3, 3), schedule="autogpu")


@must_fail("'pentium' is not a machine that is known by name; use one of haswell-e5-2630-v3, ")
def unknown_machine() -> object:
    return pt.machine.named("pentium")


@must_fail(r"Dp\(innermost_tile_size=0\): pass an integer of 1 to 2147483647, or None$")
def tile_of_no_size() -> object:
    return pt.autoschedule.Dp(innermost_tile_size=0)


@must_fail(r"Dp\(fusion='none'\): choose one of 'dp', 'greedy'$")
def unknown_choice() -> object:
    return pt.autoschedule.Dp(fusion="none")


@must_fail(r"Dp\(multi_level=1\): pass True or False$")
def number_for_a_switch() -> object:
    return pt.autoschedule.Dp(multi_level=1)  # type: ignore[arg-type]


@must_fail(r"Greedy\(load_cost=nan\): pass a number of 0 to 1e\+12$")
def cost_that_is_none() -> object:
    return pt.autoschedule.Greedy(load_cost=float("nan"))


@must_fail(r"Polymage\(tile_sizes=\(8,\)\): pass a tuple of 2: an integer of 1 to 2147483647, an integer of 1 to ")
def too_few_sizes() -> object:
    return pt.autoschedule.Polymage(tile_sizes=(8,))  # type: ignore[arg-type]


@must_fail(r"PostTile\(candidates=\(\)\): pass a tuple of at least one, each an integer of 1 to 2147483647$")
def no_candidates() -> object:
    return pt.autoschedule.PostTile(candidates=())


@must_fail(r"Cpu\(cores=0\): pass an integer of 1 to 1048576$")
def machine_without_cores() -> object:
    return replace(pt.machine.named("i7-6700"), cores=0)


@must_fail(r"Cpu\(vector_bits=100\): choose one of 32, 64, 128, 256, 512, 1024, 2048$")
def vectors_of_no_width() -> object:
    return replace(pt.machine.named("i7-6700"), vector_bits=100)


@must_fail(r"Gpu\(multiprocessors=0\): pass an integer of 1 to 2147483647$")
def gpu_without_multiprocessors() -> object:
    return replace(pt.machine.named("H200"), multiprocessors=0)


@must_fail(
    r"Multiprocessor\(matrix_instructions=5\): pass a tuple of at least one, each pt.machine.MatrixInstruction\(...\), "
    r"or \(\)$"
)
def matrix_instructions_of_no_kind() -> object:
    return replace(pt.machine.named("H200").multiprocessor, matrix_instructions=5)  # type: ignore[arg-type]


@must_fail("nothing is known of compute capability 2.0; known are 3.2, 3.5, 3.7, 5.0, .* 10.3, 12.0$")
def unknown_compute_capability() -> object:
    return occupancy(128, 0, 32, "sm_20")


@must_fail(r"Cpu\(issue=2\): pass pt.machine.Issue\(...\)$")
def machine_without_units() -> object:
    return replace(pt.machine.named("i7-6700"), issue=2)


@must_fail(r"Cpu\(caches=...\): a cache has less than 1e-09 bytes a second; pass what it has$")
def cache_without_bandwidth() -> object:
    return replace(pt.machine.named("i7-6700"), caches=(pt.machine.Cache(32768, 64, 8, 1, 0.0),))


# ---- options


@must_fail("strict=1: pass True or False$")
def number_for_strict() -> object:
    return pt.Pipeline(func(), (3, 3), strict=1)  # type: ignore[arg-type]


@must_fail("debug=None: pass True or False$")
def nothing_for_debug() -> object:
    return pt.Pipeline(func(), (3, 3), debug=None)  # type: ignore[arg-type]


@must_fail("algebra='no': pass True or False$")
def word_for_algebra() -> object:
    return pt.Pipeline(func(), (3, 3), algebra="no")  # type: ignore[arg-type]


@must_fail("5 is not a target; use one of host, ")
def target_of_no_name() -> object:
    return pt.Pipeline(func(), (3, 3), target=5)  # type: ignore[arg-type]


@must_fail("html=5 is not a file; pass a path such as html='explained.html'$")
def page_of_no_name() -> object:
    return pipeline().explain(html=5)  # type: ignore[arg-type]


@must_fail("html='/nowhere/page.html' cannot be written: No such file or directory$")
def page_in_no_folder() -> object:
    return pipeline().explain(html="/nowhere/page.html")


# ---- targets


@must_fail("'vax' is not a target; use one of host, ")
def unknown_target() -> object:
    return pt.Pipeline(func(), (3, 3), target="vax")


@must_fail("the pipeline is compiled for riscv64.*, which this machine .* cannot run; look at it with .asm")
def foreign_target() -> object:
    return pipeline(target="riscv64")(img=picture())


# ---- the test


@CASES.each
def test_message(case: Case, text: str) -> None:
    assert_refused(case, text)
