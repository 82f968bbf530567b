"""What generated code calls: vectorised mathematics and BLAS, written for Numba."""

# ruff: noqa: F401 (imported to be found here)

from gradsmith.kernels.exponential import exp, exp2, expit, expm1
from gradsmith.kernels.hyperbolic import arccosh, arcsinh, arctanh, cosh, sinh, tanh
from gradsmith.kernels.inverse_trig import arccos, arcsin, arctan, arctan2
from gradsmith.kernels.logarithm import log, log1p, log2, log10
from gradsmith.kernels.powers import cbrt, hypot, power
from gradsmith.kernels.trig import cos, sin, tan
