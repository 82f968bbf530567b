"""What generated code calls: vectorised mathematics and BLAS, written for Numba."""

# ruff: noqa: F401 (imported to be found here)

import importlib
from typing import Any

from gradsmith.kernels.accumulate import accumulate
from gradsmith.kernels.allocation import empty, zeros
from gradsmith.kernels.complex_numbers import complex_divide
from gradsmith.kernels.exponential import exp, exp2, expit, expm1
from gradsmith.kernels.hyperbolic import arccosh, arcsinh, arctanh, cosh, sinh, tanh
from gradsmith.kernels.inverse_trig import arccos, arcsin, arctan, arctan2
from gradsmith.kernels.logarithm import log, log1p, log2, log10
from gradsmith.kernels.powers import cbrt, hypot, power
from gradsmith.kernels.scalar import (
    absolute,
    ceil,
    copysign,
    fix,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    heaviside,
    int_power,
    left_shift,
    maximum,
    minimum,
    nan_to_num,
    nextafter,
    remainder,
    right_shift,
    rint,
    sign,
    signbit,
    trunc,
)
from gradsmith.kernels.special import (
    digamma,
    entr,
    erf,
    erfc,
    erfinv,
    gammaln,
    logaddexp,
    logaddexp2,
    logit,
    polygamma,
    sinc,
    sinc_derivative,
    xlog1py,
    xlogy,
)
from gradsmith.kernels.trig import cos, sin, tan

abreast = range     # of a loop of which no trip reads or writes what another one writes

# Found here too, but imported only when asked for: BLAS and LAPACK load SciPy.
_ON_DEMAND = {
    "blas": ("gemm", "gemm_add", "gemv", "gemv_add", "ger_add", "dot", "nrm2"),
    "incomplete": (
        "beta",
        "betainc",
        "betaincinv",
        "betaln",
        "erfcx",
        "gamma_function",
        "gammainc",
        "gammaincc",
        "gammainccinv",
        "gammaincinv",
        "log_ndtr",
        "ndtri",
    ),
    "incomplete_slopes": ("betainc_slope", "gammainc_slope", "log_gamma_slope"),
    "lapack": (
        "solve",
        "inv",
        "det",
        "slogdet",
        "cholesky",
        "lu_factor",
        "lu_solve",
        "solve_triangular",
        "adjugate",
        "adjugate_tangent",
    ),
    "stacks": (
        "batched_gemm",
        "stacked_solve",
        "stacked_inv",
        "stacked_det",
        "stacked_slogdet",
        "stacked_cholesky",
        "stacked_solve_triangular",
        "stacked_adjugate",
        "stacked_adjugate_tangent",
    ),
    "decompositions": (
        "svd",
        "singular_values",
        "eigh",
        "eigvalsh",
        "qr",
        "pinv",
        "stacked_svd",
        "stacked_singular_values",
        "stacked_eigh",
        "stacked_eigvalsh",
        "stacked_qr",
        "stacked_pinv",
    ),
    "normal_loops": ("normal_numbers",),
    "random_words": ("fold_in", "threefry"),
    "rejection": ("gamma_draw", "gamma_draws"),
    "fits": ("fits_in_memory",),
    "sharing": ("apart", "distinct"),
    "sorting": ("sort", "argsort"),
    "stream_formulas": ("fma", "stream_erfinv"),
    "views": ("permuted", "reshaped"),
}
_MODULES = {name: module for module, names in _ON_DEMAND.items() for name in names}


def __getattr__(name: str) -> Any:
    module = "filled" if name.startswith("Filled") else _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return found
