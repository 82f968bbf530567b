"""gradsmith: a source-to-source differentiating transpiler for Python and NumPy."""

from typing import Any

from .array import Array
from .cache import explain_cache
from .devices import block_until_ready, device_get, device_put, devices
from .log import set_up as _set_up_log
from .transforms import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)

__version__ = "0.1.0"
_SUBMODULES = ("lax", "numpy", "random", "tree", "tree_util")      # imported when they are first asked for
__all__ = ["Array", "block_until_ready", "device_get", "device_put", "devices", "explain_cache", "grad", "hessian",
           "hvp", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax", "linearize", "numpy", "random",
           "stop_gradient", "tree", "tree_util", "value_and_grad", "vjp", "vmap"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


_set_up_log()
