"""gradsmith: a source-to-source differentiating transpiler for Python and NumPy."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .array import Array
    from .cache import explain_cache
    from .checking import check
    from .checkpointing import checkpoint, checkpoint_policies, remat
    from .custom_rules import custom_jvp, custom_vjp
    from .device_array import DeviceArray
    from .placement import block_until_ready, default_backend, device_count, device_get, device_put, devices
    from .sparse.functions import sparse_hessian, sparse_jacobian
    from .to_stablehlo import ShapeDtypeStruct, stablehlo
    from .transforms import (
        functional,
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
    from .transpiler.errors import TranspileError

__version__ = "0.1.0"

# Names are imported when they are first asked for: the command line, and modules that need the kernels alone, do not
# wait for the rest.  See the end of this file for `import gradsmith` itself.
_HOMES = {
    **dict.fromkeys(("sparse_hessian", "sparse_jacobian"), "sparse.functions"),
    "Array": "array", "DeviceArray": "device_array", "explain_cache": "cache", "check": "checking",
    **dict.fromkeys(("checkpoint", "checkpoint_policies", "remat"), "checkpointing"),
    "stablehlo": "to_stablehlo", "ShapeDtypeStruct": "to_stablehlo",
    "sharded": "xla.sharded", "TranspileError": "transpiler.errors",
    "custom_jvp": "custom_rules", "custom_vjp": "custom_rules",
    **dict.fromkeys(("block_until_ready", "default_backend", "device_count", "device_get", "device_put", "devices"),
                    "placement"),
    **dict.fromkeys(("functional", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "linearize",
                     "stop_gradient", "value_and_grad", "vjp", "vmap"), "transforms"),
    **dict.fromkeys(("bool_", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "c64",
                     "c128"), "transpiler.signature"),
}
_SUBMODULES = ("checking", "custom_derivatives", "implicit", "jax", "lax", "numpy", "random", "torch", "tree",
               "tree_util", "xla")
__all__ = ["Array", "DeviceArray", "ShapeDtypeStruct", "TranspileError", "block_until_ready", "check", "checkpoint",
           "checkpoint_policies", "custom_jvp", "custom_vjp", "default_backend", "device_count", "device_get",
           "device_put", "devices", "explain_cache", "functional", "grad", "hessian", "hvp", "implicit", "jacfwd",
           "jacobian", "jacrev", "jit", "jvp", "lax", "linearize", "numpy", "random", "remat", "sharded",
           "sparse_hessian", "sparse_jacobian", "stablehlo", "stop_gradient", "tree", "tree_util", "value_and_grad",
           "vjp", "vmap", "xla"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES, "__version__"})


def _is_for_a_part() -> bool:
    """Whether this package is imported on the way to one of its modules (`import gradsmith.kernels`): then an import
    of that name is under way further up the stack."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap" and (
                str(frame.f_locals.get("name")).startswith(f"{__name__}.")):
            return True
        frame = frame.f_back
    return False


# Whoever imports the package will transform something, and should not wait for Numba and the table of operations then.
if not TYPE_CHECKING and not _is_for_a_part():
    from .transforms import prepare
    prepare()
