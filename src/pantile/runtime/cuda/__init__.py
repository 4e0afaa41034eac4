"""Running on NVIDIA's GPUs, through the driver alone.

driver        the driver's functions, imported when a GPU is first asked for
failures      what its error codes mean, and what to do
device        GPUs: their contexts, capabilities and limits
machine       a GPU as `pt.machine` describes them, told by the driver and measured (`measure`)
code          PTX to functions, through the cache on disk
memory        of the device in stream order, and of the host where the device copies quickly
views         arrays of other libraries, as calls see them
libraries     what PyTorch, CuPy and others give: views, new arrays, the caller's stream
exchange      DLPack and the CUDA array interface: arrays of whoever speaks them
results       arrays of our own, which speak both
arrays        what calls ask about arrays
parameters    the parameters of all launches of a call, packed once and patched
order         which launches wait for which, and where intermediate arrays lie
graphs        launches as one CUDA graph
streams       streams of our own, and waiting between streams
running       all of it: code for calls of one kind
"""
