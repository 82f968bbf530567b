"""The incomplete gamma and beta functions and their inverses, for code that Numba compiles: SciPy's own C functions.

SciPy exposes them through `scipy.special.cython_special`. Compiled code links to them by name, as it does to BLAS (see
`symbols`). The arguments are taken as float64. In plain Python the functions are those of `scipy.special`.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding
from numba import config, njit
from numba.core import types
from numba.core.typing import signature
from scipy import special
from scipy.special import cython_special

from gradsmith.kernels.symbols import PREFIX, pointer_of, signature_of

ARITIES = {
    "beta": 2,
    "betainc": 3,
    "betaincinv": 3,
    "betaln": 2,
    "erfcx": 1,
    "gamma": 1,
    "gammainc": 2,
    "gammaincc": 2,
    "gammainccinv": 2,
    "gammaincinv": 2,
    "log_ndtr": 1,
    "ndtri": 1,
}


def _linked(name: str, arity: int) -> Callable[..., Any]:
    """SciPy's function of `arity` doubles, as a symbol. Cython's functions have an int for the last argument."""
    wanted = f"double ({'double, ' * arity}int __pyx_skip_dispatch)"
    for prefix in ("", "__pyx_fuse_0", "__pyx_fuse_1"):
        capsule = cython_special.__pyx_capi__.get(prefix + name)
        if capsule is not None and signature_of(capsule) == wanted:
            llvmlite.binding.add_symbol(f"{PREFIX}special_{name}", pointer_of(capsule))
            break
    else:
        raise ImportError(f"scipy.special.cython_special has no {name} of type {wanted}")
    kinds = signature(types.float64, *[types.float64] * arity, types.int32)
    return types.ExternalFunction(f"{PREFIX}special_{name}", kinds)


def _compiled(name: str, arity: int) -> Callable[..., Any]:
    external = _linked(name, arity)
    bodies = (lambda x: external(x, 0), lambda a, x: external(a, x, 0), lambda a, b, x: external(a, b, x, 0))
    return njit(nogil=True)(bodies[arity - 1])  # type: ignore[no-any-return]


for _name, _arity in ARITIES.items():
    globals()["gamma_function" if _name == "gamma" else _name] = (
        getattr(special, _name) if config.DISABLE_JIT else _compiled(_name, _arity)  # type: ignore[attr-defined]
    )
