"""The benchmark applications written in Halide, one module each.

Every module offers

- ``OUTPUT_DTYPE``: the NumPy type string of the result, such as ``"<f4"``;
- ``ORIGIN``: the coordinates of its first element;
- ``SPARE_ROWS``: rows that must exist above and below the inputs because some
  autoscheduler reads them, although no result depends on them;
- ``build(images, target, *, manual)``: the output ``Func``, carrying the expert
  schedule that Halide publishes for CPUs if `manual`, otherwise unscheduled.

Coordinates follow Halide: the fastest-varying index comes first, so that an array
of shape ``(3, rows, columns)`` is indexed ``[x, y, c]``.
"""
