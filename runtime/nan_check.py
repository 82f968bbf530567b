"""Where a NaN comes from: the statement of the user's program (or of its derivative) that made it.

The compiled function runs as always.  Only if its result has a NaN is the traced func evaluated statement by
statement, and the first that makes a NaN out of operands without one is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .function import Function
from .transpiler.errors import Location, error
from .transpiler.ir.evaluate import evaluate
from .transpiler.ir.nodes import Let, Stmt


class NanChecked(Function):
    """A Function that raises FloatingPointError, with the user's line, where its result would have a NaN."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = super().__call__(*args, **kwargs)
        if any(map(_has_nan, _leaves(result))):
            raise self._explained(args, kwargs)
        return result

    def _explained(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
        described = self.described(args, kwargs)
        spec = self.specialisation(described)
        found: list[tuple[str, Location | None, str]] = []

        def watch(stmt: Stmt, operands: Sequence[Any], results: Sequence[Any]) -> None:
            if not found and any(map(_has_nan, results)) and not any(map(_has_nan, operands)):
                assert isinstance(stmt, Let)
                found.append((stmt.op.name, stmt.loc, ", ".join(_shown(x) for x in operands)))

        flat = spec.flat(described.values)
        evaluate(spec.trace.func, *(_typed(v, p.type.numpy) for v, p in zip(flat, spec.trace.func.params)), watch=watch)
        kind = self.__gradsmith_transformed__[0]
        if not found:
            return error("E609", f"the result of {kind} has a NaN, which was in the arguments already", None,
                         kind=FloatingPointError)
        name, loc, operands = found[0]
        return error("E609", f"the result of {kind} has a NaN: it was first made here, by {name}({operands}) in the "
                     "value or the derivative of this line", loc, kind=FloatingPointError,
                     help="mask the argument with np.where before the operation, or move away from this point")


def nan_checked(kind: str, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> NanChecked:
    return NanChecked(kind, fun, args, {k: v for k, v in kwargs.items() if v is not None and v is not False})


def _typed(value: Any, dtype: np.dtype[Any]) -> Any:
    return value if isinstance(value, np.ndarray) else dtype.type(value)


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from _leaves(part)
    elif isinstance(tree, (np.ndarray, np.generic, float, complex)):
        yield tree
    elif hasattr(tree, "__dataclass_fields__"):
        for name in tree.__dataclass_fields__:
            yield from _leaves(getattr(tree, name))


def _has_nan(x: Any) -> bool:
    array = np.asarray(x)
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def _shown(x: Any) -> str:
    array = np.asarray(x)
    return f"{array.reshape(-1)[0]:.6g}" if array.size == 1 else f"array of shape {array.shape}"
