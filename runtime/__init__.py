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
_TYPES = ("bool_", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128")      # annotations
__all__ = ["Array", "block_until_ready", "device_get", "device_put", "devices", "explain_cache", "grad", "hessian",
           "hvp", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax", "linearize", "numpy", "random",
           "stop_gradient", "tree", "tree_util", "value_and_grad", "vjp", "vmap"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    if name in _TYPES:
        from .transpiler import signature
        return getattr(signature, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_TYPES, "__version__"]


_set_up_log()
