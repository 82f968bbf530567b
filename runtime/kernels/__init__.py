"""What generated code calls: vectorised mathematics and BLAS, written for Numba."""
