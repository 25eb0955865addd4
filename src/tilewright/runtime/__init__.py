"""Running kernels: the `jit` object, arrays of other libraries, the compile cache."""
