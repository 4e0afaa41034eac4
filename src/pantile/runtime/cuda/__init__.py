"""Execution on NVIDIA GPUs, through the driver alone.

driver        the driver's functions, imported on first use, and the exceptions for their errors
device        GPUs: their contexts, streams, capabilities and limits
machine       a GPU as `pt.machine` describes it, from the driver and from measurements (`measure`)
code          PTX to functions, through the cache on disk
memory        stream-ordered device memory, and host memory for fast copies
views         arrays of other libraries, as calls see them
libraries     PyTorch, CuPy and others: views, new arrays, the caller's stream
exchange      DLPack and the CUDA array interface
results       our own arrays, which support both
arrays        the operations on arrays that a call needs
parameters    the parameters of all launches of a call, packed once and patched
order         the dependences between launches, and the memory of intermediate arrays
graphs        the launches of a call as one CUDA graph
execution     code for calls of one kind, which uses all of the above
"""
