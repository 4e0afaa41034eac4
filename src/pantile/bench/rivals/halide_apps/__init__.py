"""The benchmark applications written in Halide, one module each.

Every module offers ``build(images, target, *, manual)``: the output ``Func``, carrying
the expert schedule that Halide publishes for CPUs, or (``gpu_expert``) for GPUs if `target` has one,
if `manual`, otherwise unscheduled. Those for GPUs were published for smaller ones: sizes of tiles are the best
of a few on an H200, where that is faster. A pipeline with several outputs returns them in a tuple. It may also have

- ``ORIGIN``: the coordinates of the result's first element (``ORIGINS``, one for each of
  several), zero by default;
- ``SPARE_ROWS``: rows that must exist above and below the inputs because some
  autoscheduler reads them, although no result depends on them;
- ``BEAM_SIZE``: of Adams2019, where its own choice takes too long.

Coordinates follow Halide: the fastest-varying index comes first, so that an array
of shape ``(3, rows, columns)`` is indexed ``[x, y, c]``.
"""
