"""Exceptions with run-time numbers among their arguments, laid out as Numba lays them out.

    static        { class and arguments, pickled;  length;  hash;     null;    0 }      a constant of the module
    with numbers  { the same, with gaps;           length;  numbers;  boxing;  count }  allocated; raising frees it

`boxing` is a function from the numbers, one to a word, to a tuple of Python objects.  Code of Numba's that is given
such an exception raises it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import callconv, cgutils

from .numbers import FLOATS, LLVM
from .values import BOOL, TYPES, NotCovered, Number

BOXING = "gradsmith_boxed_"         # and the kinds of the numbers
_WORD = ir.IntType(64)
_INFO: Any = callconv.excinfo_t


def has_numbers(module: ir.Module) -> bool:
    """Whether the module's function may raise an exception with run-time numbers."""
    return any(name.startswith(BOXING) for name in module.globals)


def made(context: Any, builder: Any, exception: type[BaseException], args: Sequence[Any], place: Any) -> Any:
    """A pointer to the exception; args: Python objects and Numbers.  place: for the traceback.  NotCovered."""
    numbers = [arg for arg in args if isinstance(arg, Number)]
    kinds = "".join(map(_kind, numbers))
    api = context.get_python_api(builder)
    gap = context.get_dummy_value()
    static = tuple(gap if isinstance(arg, Number) else arg for arg in args)
    pickled = builder.load(api.serialize_object((exception, static, place)))
    whole = ir.LiteralStructType([_INFO, ir.ArrayType(_WORD, len(numbers))])
    memory = context.nrt.allocate(builder, context.get_constant(TYPES.intp, context.get_abi_sizeof(whole)))
    info = builder.bitcast(memory, whole.as_pointer())
    words = cgutils.gep_inbounds(builder, info, 0, 1)
    for k, (number, kind) in enumerate(zip(numbers, kinds, strict=True)):
        builder.store(_word(builder, number, kind), cgutils.gep_inbounds(builder, words, 0, k))
    members = (builder.extract_value(pickled, 0), builder.extract_value(pickled, 1),
               builder.bitcast(words, callconv.GENERIC_POINTER),
               builder.bitcast(_boxing(context, builder.module, kinds), callconv.GENERIC_POINTER),
               callconv.int32_t(len(numbers)))
    head = cgutils.gep_inbounds(builder, info, 0, 0)
    for k, member in enumerate(members):
        builder.store(member, cgutils.gep_inbounds(builder, head, 0, k))
    return head


def _kind(number: Number) -> str:
    if number.type not in LLVM:
        raise NotCovered(f"an exception with a {number.type}")
    return "b" if number.type == BOOL else "f" if number.type in FLOATS else "i" if number.type.signed else "u"


def _word(builder: Any, number: Number, kind: str) -> Any:
    value = number.llvm
    if kind == "f":
        wide = builder.fpext(value, ir.DoubleType()) if value.type != ir.DoubleType() else value
        return builder.bitcast(wide, _WORD)
    if value.type == _WORD:
        return value
    return builder.sext(value, _WORD) if kind == "i" else builder.zext(value, _WORD)


def _boxing(context: Any, module: ir.Module, kinds: str) -> Any:
    """From a pointer to words to a tuple."""
    name = BOXING + kinds
    if name in module.globals:
        return module.globals[name]
    pointer = callconv.GENERIC_POINTER
    function = ir.Function(module, ir.FunctionType(pointer, [pointer]), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    api = context.get_python_api(builder)
    words = builder.bitcast(function.args[0], _WORD.as_pointer())
    boxed = api.tuple_new(len(kinds))
    for k, kind in enumerate(kinds):
        word = builder.load(cgutils.gep_inbounds(builder, words, k))
        match kind:
            case "f":
                item = api.float_from_double(builder.bitcast(word, ir.DoubleType()))
            case "b":
                item = api.bool_from_long(word)
            case "u":
                item = api.long_from_ulonglong(word)
            case _:
                item = api.long_from_longlong(word)
        api.tuple_setitem(boxed, k, item)
    builder.ret(boxed)
    return function
