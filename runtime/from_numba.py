"""Functions called from people's own `numba.njit` code.

Numba asks a Function for its type and gets a dispatcher, which specialises the Function to Numba types: numbers,
arrays of any size, and tuples of them.  Code that cannot be written for every size refuses sizes of 0 and 1 with `Miss`
when it runs.  Machine code of callers is not cached by Numba, which would not see that the Function has changed.
"""

from __future__ import annotations

import inspect
from typing import Any

from numba import njit, types
from numba.core.errors import NumbaError, TypingError
from numba.core.imputils import user_function
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import make_concrete_template
from numba.extending import typeof_impl
from numba.np.numpy_support import as_dtype

from .arguments import DTYPES, Described
from .function import Function
from .numba_adapter import Adapter, NotInNumba
from .specialise import Specialisation, result_form, specialise
from .transpiler.errors import TranspileError
from .transpiler.frontend.trees import StaticNode
from .transpiler.frontend.values import Leaf
from .transpiler.ir.dims import symbol
from .transpiler.ir.types import Type

NAMED_TUPLE: Any = types.BaseNamedTuple                 # Numba's own hints know only some of their attributes
TUPLE: Any = types.BaseTuple
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
        args = tuple(types.unliteral(a) for a in (*args, *self._by_position(len(args), dict(kws))))
        self.compile(args)
        name = self.py_func.__name__
        template = make_concrete_template(name, key=name, signatures=self.nopython_signatures)
        names = self.function.parameters[:len(args)]
        names += [f"argument{k}" for k in range(len(names), len(args))]
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        return template, inspect.Signature(parameters), args, {}

    def _by_position(self, given: int, kws: dict[str, Any]) -> list[Any]:
        """Keyword arguments that follow on the positional ones."""
        found = []
        for name in self.function.parameters[given:]:
            if name not in kws:
                break
            found.append(kws.pop(name))
        if kws:
            raise TypingError(f"{self.function!r} is called with {', '.join(kws)}, which follows on no argument before "
                              "it: in compiled code, give all arguments from the left")
        return found

    def compile(self, sig: Any) -> Any:
        args = tuple(sig)
        known: Any = self.overloads.get(args)
        if known is None:
            known = self._compiled(args)
            _tell_numba(self.targetctx, known)
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
        table: Any = spec.entry         # Numba's own code asks: it is not turned off
        overload = table.overloads[spec.signature]
        if _is_flat(args, spec):
            return overload
        try:
            adapter = Adapter(spec, args, repr(self.function))
        except NotInNumba as problem:
            raise TypingError(str(problem)) from problem
        wrapper: Any = njit(adapter.function(_callable(table.py_func, overload)))
        wrapper.compile(args)
        return wrapper.overloads[args]


def _is_flat(args: tuple[Any, ...], spec: Specialisation) -> bool:
    """Whether the entry takes and returns what compiled code does."""
    returns = result_form(spec.trace.out_tree) is not None or spec.trace.out_tree == StaticNode(None)
    return returns and not spec.trace.captures and all(isinstance(a, (types.Array, types.Number, types.Boolean))
                                                       for a in args)


def _callable(py_func: Any, overload: Any) -> Any:
    """A dispatcher with this overload alone, for Numba to call."""
    made: Any = CPUDispatcher(py_func)
    made.add_overload(overload)
    made.targetctx.insert_user_function(overload.entry_point, overload.fndesc, [overload.library])
    made.disable_compile()
    return made


class _Uncached:
    """Stands in the library of a function, and so in those of all its callers, for Numba not to write them to disk:
    what it would load later may be the machine code of a function that has changed since."""

    def __reduce__(self) -> Any:
        raise NumbaError("machine code that calls gradsmith's functions cannot be kept by Numba, which would not see "
                         "when they change: leave out cache=True of the functions that call it")

    def __call__(self) -> None:
        """Numba would call it when it loads the library."""


UNCACHED = _Uncached()


def _tell_numba(context: Any, overload: Any) -> None:
    """How the overload is called.  Numba forgets it when the dispatcher goes that compiled it, so it is told again;
    in a way that makes it refuse `cache=True`: with its warning where this is called, with an error in callers of such
    functions."""
    overload.library._reload_init.add(UNCACHED)
    plain = user_function(overload.fndesc, [overload.library])

    def call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.active_code_library._dynamic_globals.append(overload.fndesc.qualname)
        return plain(context, builder, sig, args)

    call.signature, call.libs = plain.signature, plain.libs     # type: ignore[attr-defined]
    context._defns.pop(overload.entry_point, None)
    context._defns[overload.entry_point].append(call, plain.signature)


def _described(args: tuple[Any, ...], low: int) -> Described:
    """Arguments of these Numba types, with lengths of at least `low`."""
    leaves: list[Any] = []
    found: list[Any] = []
    count = 0

    def visit(type: Any) -> Any:
        nonlocal count
        if isinstance(type, (types.NoneType, types.Omitted)):
            return None
        if isinstance(type, NAMED_TUPLE):
            return type.instance_class(*map(visit, type.types))
        if isinstance(type, TUPLE):
            return tuple(map(visit, type.types))
        if isinstance(type, types.Array):
            dims = tuple(symbol(f"n{count + k}", low) for k in range(type.ndim))
            count += type.ndim
            leaf = Leaf(Type(_dtype(type.dtype), dims), False, None, layout=type.layout, writable=type.mutable)
        elif isinstance(type, (types.Number, types.Boolean)):
            leaf = Leaf(Type(_dtype(type)), _dtype(type) in PYTHON, None)
        else:
            raise TypingError(f"arguments from compiled code must be numbers, arrays or tuples of them, not {type}")
        leaves.append(leaf)
        found.append(type)
        return leaf

    return Described(tuple(map(visit, args)), {}, leaves, found, ("numba", args))


def _dtype(type: Any) -> str:
    try:
        name = str(as_dtype(type).name)
    except NotImplementedError:
        name = ""
    if name not in DTYPES:
        raise TypingError(f"arguments from compiled code must be numbers or arrays of them, not {type}")
    return name


@typeof_impl.register(Function)
def _type_of(value: Function, context: Any) -> Any:
    return types.Dispatcher(value.for_numba)
