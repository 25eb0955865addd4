"""The dataflow view of a kernel, and the joining of kernels: a result that only its next reader needs stays on chip."""
