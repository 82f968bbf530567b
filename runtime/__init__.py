"""gradsmith: a source-to-source differentiating transpiler for Python and NumPy."""

from .cache import explain_cache
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
__all__ = ["explain_cache", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "linearize",
           "stop_gradient", "value_and_grad", "vjp", "vmap"]

_set_up_log()
