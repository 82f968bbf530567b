"""Kernels: elementary functions that LLVM inlines into a loop and vectorises.

`@kernel(numpy_function)` over a function of `Value`s (see `expression`) makes one callable for all uses. In plain
Python it is the NumPy function. In code that Numba compiles, a call of it picks float32 or float64 by its arguments'
types and becomes a call of an LLVM function that is always inlined. Its text is written at its first use, once per
process and format, so importing kernels costs nothing and a use costs Numba no type inference.

Integers and mixed formats are taken as float64. A complex argument goes to Numba's implementation of the NumPy
function, or to that of `complex_numbers`.
"""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

from gradsmith.kernels.expression import F32, F64, Code, Format, Value

Body = Callable[..., Value]
FORMATS = {types.float32: F32, types.float64: F64}
COMPLEX = (types.complex64, types.complex128)
LLVM_TYPES = {"float": ir.FloatType(), "double": ir.DoubleType()}


class Definition(ir.Function):
    """A function given by its text.

    Having no blocks that llvmlite knows of, it is left alone by Numba's fast-math pass, which would put the caller's
    flags on every instruction and break the error-free sums in here.
    """

    def __init__(self, module: ir.Module, type: ir.FunctionType, name: str, text: str) -> None:
        super().__init__(module, type, name)
        self.text = text

    def __str__(self) -> str:
        return self.text


@cache
def written(body: Body, format: Format) -> Code:
    """The LLVM function of `body` for `format`: its lines are the whole definition."""
    code = Code()
    parameters = [Value(code, format, format.llvm, f"%{name}") for name in inspect.signature(body).parameters]
    result = body(*parameters)
    declared = ", ".join(f"{format.llvm} {parameter.name}" for parameter in parameters)
    head = f"define internal {format.llvm} @{symbol(body, format)}({declared}) alwaysinline nounwind {{"
    code.lines = [head, *code.lines, f"  ret {format.llvm} {result.name}", "}"]
    return code


def symbol(body: Body, format: Format) -> str:
    return f"gradsmith_{body.__name__}_{format.name}"


def declare(module: ir.Module, body: Body, format: Format) -> ir.Function:
    """The function of `body` in `module`, defined there with all that it refers to if it is not yet."""
    name = symbol(body, format)
    if name in module.globals:
        return module.globals[name]
    code = written(body, format)
    for intrinsic, llvm in code.intrinsics:
        _declare_intrinsic(module, intrinsic, LLVM_TYPES[llvm])
    for external, llvm in code.externals:
        if external not in module.globals:
            ir.Function(module, ir.FunctionType(LLVM_TYPES[llvm], [LLVM_TYPES[llvm]]), external)
    for support, text in code.support.items():
        if support not in module.globals:
            Definition(module, ir.FunctionType(ir.VoidType(), ()), support, text)
    float_type = LLVM_TYPES[format.llvm]
    parameters = [float_type] * len(inspect.signature(body).parameters)
    return Definition(module, ir.FunctionType(float_type, parameters), name, "\n".join(code.lines))


def _declare_intrinsic(module: ir.Module, name: str, type: ir.Type) -> None:
    operands = {"llvm.fma": 3, "llvm.fmuladd": 3, "llvm.copysign": 2}.get(name, 1)
    module.declare_intrinsic(name, [type], ir.FunctionType(type, [type] * operands))


def kernel(reference: Callable[..., Any], takes_complex: bool = True,
           of_complex: Callable[..., Any] | None = None) -> Callable[[Body], Callable[..., Any]]:
    """Make the callable; `reference` is what it does in plain Python.

    of_complex: for complex numbers, where Numba's implementation of `reference` will not do.
    """

    def register(body: Body) -> Callable[..., Any]:
        arity = len(inspect.signature(body).parameters)

        def call(*arguments: Any) -> Any:
            with np.errstate(all="ignore"):  # compiled code does not warn either
                return reference(*arguments)

        call.__name__ = call.__qualname__ = body.__name__
        call.__doc__ = body.__doc__
        call.__module__ = body.__module__
        make_callable_by_compiled_code(call, body, arity, takes_complex)
        if takes_complex:
            for number in COMPLEX:
                lower_builtin(call, *[number] * arity)(
                    partial(lower_reference, of_complex or calling(reference, arity)))
        return call

    return register


def make_callable_by_compiled_code(call: Callable[..., Any], body: Body, arity: int, takes_complex: bool) -> None:
    class CallTemplate(AbstractTemplate):
        key = call

        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
            common = common_type(arguments)
            if keywords or len(arguments) != arity or common is None or (common in COMPLEX and not takes_complex):
                return None
            return Signature(common, (common,) * arity, None)

    infer_global(call, types.Function(CallTemplate))
    for number, format in FORMATS.items():
        lower_builtin(call, *[number] * arity)(partial(lower_body, body, format))


def common_type(arguments: tuple[types.Type, ...]) -> types.Type | None:
    """The type that all arguments are cast to, which is the result's too."""
    if not all(isinstance(argument, types.Number | types.Boolean) for argument in arguments):
        return None
    if len(set(arguments)) == 1 and arguments[0] in (*FORMATS, *COMPLEX):
        return arguments[0]
    return types.complex128 if any(isinstance(argument, types.Complex) for argument in arguments) else types.float64


def lower_body(body: Body, format: Format, context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
    return builder.call(declare(builder.module, body, format), arguments)


def lower_reference(
    implementation: Callable[..., Any], context: Any, builder: Any, signature: Signature, arguments: Any
) -> Any:
    return context.compile_internal(builder, implementation, signature, arguments)


def calling(reference: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """A function of `arity` arguments that Numba can compile."""
    if arity == 1:
        return lambda x: reference(x)
    return lambda x, y: reference(x, y)
