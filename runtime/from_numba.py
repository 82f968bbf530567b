"""Functions called from people's own `numba.njit` code.

Numba asks a Function for its type and gets a dispatcher, which specialises the Function to Numba types: arrays of any
size and numbers.  Code that cannot be written for every size refuses sizes of 0 and 1 with `Miss` when it runs.
"""

from __future__ import annotations

import inspect
from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import make_concrete_template
from numba.extending import typeof_impl
from numba.np.numpy_support import as_dtype

from .arguments import Described
from .function import Function
from .specialise import result_form, specialise
from .transpiler.errors import TranspileError
from .transpiler.frontend.trees import StaticNode
from .transpiler.frontend.values import Leaf
from .transpiler.ir.dims import symbol
from .transpiler.ir.types import Type

PYTHON = {"bool", "int64", "float64", "complex128"}        # what Numba knows Python's numbers as


class ForNumba(CPUDispatcher):  # type: ignore[misc]
    """A Function as Numba's dispatchers are: overloads by types, each compiled when it is first asked for."""

    def __init__(self, function: Function) -> None:
        def stand_in() -> None:
            """Numba looks at its name alone."""

        stand_in.__name__ = stand_in.__qualname__ = function.generated_name()
        super().__init__(stand_in)
        self.function = function

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if kws:
            raise TypingError(f"{self.function!r} takes positional arguments in compiled code")
        args = tuple(map(types.unliteral, args))
        self.compile(args)
        name = self.py_func.__name__
        template = make_concrete_template(name, key=name, signatures=self.nopython_signatures)
        parameters = [inspect.Parameter(f"a{k}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in range(len(args))]
        return template, inspect.Signature(parameters), args, {}

    def compile(self, sig: Any) -> Any:
        args = tuple(sig)
        known: Any = self.overloads.get(args)
        if known is None:
            known = self._compiled(args)
            # Numba forgets it when the dispatcher goes that compiled it, so it is told again.
            self.targetctx.insert_user_function(known.entry_point, known.fndesc, [known.library])
            self.add_overload(known)
        return known.entry_point

    def _compiled(self, args: tuple[Any, ...]) -> Any:
        problems = []
        for low in (0, 2):
            try:
                spec = specialise(self.function, _described(args, low), name=self.function.generated_name(),
                                  reason="called from compiled code", source=self.function.source_text,
                                  checks_sharing=True)
                break
            except TranspileError as problem:
                problems.append(problem)
        else:
            raise TypingError(str(problems[-1])) from problems[-1]
        if spec.trace.captures:
            names = ", ".join(str(capture.access) for capture in spec.trace.captures)
            raise TypingError(f"{self.function!r} reads {names}, which compiled code cannot: make them arguments")
        if result_form(spec.trace.out_tree) is None and spec.trace.out_tree != StaticNode(None):
            raise TypingError(f"{self.function!r} must return a number, an array or a tuple of them in compiled code")
        return spec.entry.overloads[spec.signature]


def _described(args: tuple[Any, ...], low: int) -> Described:
    """Arguments of these Numba types, with lengths of at least `low`."""
    leaves: list[Any] = []
    count = 0
    for type in args:
        if isinstance(type, types.Array):
            dims = tuple(symbol(f"n{count + k}", low) for k in range(type.ndim))
            count += type.ndim
            leaves.append(Leaf(Type(as_dtype(type.dtype).name, dims), False, None, layout=type.layout,
                               writable=type.mutable))
        elif isinstance(type, (types.Number, types.Boolean)):
            name = as_dtype(type).name
            leaves.append(Leaf(Type(name), name in PYTHON, None))
        else:
            raise TypingError(f"arguments from compiled code must be numbers or arrays, not {type}")
    return Described(tuple(leaves), {}, leaves, list(args), ("numba", args))


@typeof_impl.register(Function)
def _type_of(value: Function, context: Any) -> Any:
    return types.Dispatcher(value.for_numba)
