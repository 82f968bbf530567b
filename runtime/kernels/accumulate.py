"""Adding up in any order.

Loops keep the order of the user's arithmetic, which stops LLVM from vectorising a sum.  Where the sum is ours (a
reduction such as np.sum, whose order NumPy leaves open), its one addition carries LLVM's flags `reassoc` and `nsz`;
everything else in the loop stays strict.  Reference: LLVM Language Reference, "Fast-Math Flags".
"""

from typing import Any

from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin


def accumulate(total: Any, x: Any) -> Any:
    """total + x, in any order with the other additions to the same total.  Both have one float or complex type."""
    return total + x


class _Template(AbstractTemplate):
    key = accumulate

    def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        if keywords or len(arguments) != 2 or not isinstance(arguments[0], types.Float):
            return None
        return Signature(arguments[0], (arguments[0], arguments[0]), None)


infer_global(accumulate, types.Function(_Template))


@lower_builtin(accumulate, types.Float, types.Float)
def _lower(context: Any, builder: Any, signature: Signature, arguments: tuple[Any, ...]) -> Any:
    total, x = arguments
    return builder.fadd(total, x, flags=("reassoc", "nsz"))
