"""The function that CPython calls: arguments taken from a tuple, the result made a Python object.

Numba builds one of several hundred instructions, whose optimisation takes as long as that of a small gradient.  This
one is written as text, is not optimised, and shares what follows an error:

    take 1 ─► take 2 ─► call ─► release arguments ─► box ─► return
      │ fails   │ fails             │ error
      ▼         ▼                   ▼
     null ◄─ release 1 ◄─ ...     raise ─► null

Arrays are given to the caller straight from where the function has put them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import types
from numba.np.numpy_support import as_dtype

from ..kernels.kernel import Definition
from . import memory
from .exceptions import has_numbers
from .numbers import FLOATS, LLVM
from .values import TYPES, NotCovered, items_of

_RAISE = """define internal void @gradsmith_raise(ptr %info) noinline optnone {
  call void @PyErr_Clear()
  %place = getelementptr i8, ptr %info, i64 8
  %length = load i32, ptr %place
  %place2 = getelementptr i8, ptr %info, i64 16
  %data = load ptr, ptr %info
  %hash = load ptr, ptr %place2
  %exception = call ptr @numba_unpickle(ptr %data, i32 %length, ptr %hash)
  %absent = icmp eq ptr %exception, null
  br i1 %absent, label %done, label %raise
raise:
  call void @numba_do_raise(ptr %exception)
  br label %done
done:
  ret void
}"""

_RAISE_WITH_NUMBERS = """define internal void @gradsmith_raise(ptr %info) noinline optnone {
  %place = getelementptr i8, ptr %info, i64 32
  %count = load i32, ptr %place
  %numbers = icmp sgt i32 %count, 0
  br i1 %numbers, label %built, label %static
static:
  call void @gradsmith_raise_static(ptr %info)
  ret void
built:
  call void @PyErr_Clear()
  %place1 = getelementptr i8, ptr %info, i64 8
  %length = load i32, ptr %place1
  %size = sext i32 %length to i64
  %data = load ptr, ptr %info
  %pickled = call ptr @PyBytes_FromStringAndSize(ptr %data, i64 %size)
  %place2 = getelementptr i8, ptr %info, i64 16
  %words = load ptr, ptr %place2
  %place3 = getelementptr i8, ptr %info, i64 24
  %boxing = load ptr, ptr %place3
  %values = call ptr %boxing(ptr %words)
  call void @NRT_Free(ptr %info)
  %exception = call ptr @numba_runtime_build_excinfo_struct(ptr %pickled, ptr %values)
  %absent = icmp eq ptr %exception, null
  br i1 %absent, label %done, label %raise
raise:
  call void @numba_do_raise(ptr %exception)
  br label %done
done:
  ret void
}"""

_DECLARED = {
    "PyErr_Clear": "void ()", "numba_unpickle": "ptr (ptr, i32, ptr)", "numba_do_raise": "void (ptr)",
    "PyBytes_FromStringAndSize": "ptr (ptr, i64)", "numba_runtime_build_excinfo_struct": "ptr (ptr, ptr)",
    "NRT_Free": "void (ptr)",
    "PyArg_UnpackTuple": "i32 (ptr, ptr, i64, i64, ...)", "NRT_adapt_ndarray_from_python": "i32 (ptr, ptr)",
    "NRT_adapt_ndarray_to_python_acqref": "ptr (ptr, ptr, i32, i32, ptr)", "NRT_decref": "void (ptr)",
    "PyEval_SaveThread": "ptr ()", "PyEval_RestoreThread": "void (ptr)", "PyErr_SetString": "void (ptr, ptr)",
    "PyErr_Occurred": "ptr ()", "PyFloat_AsDouble": "double (ptr)", "PyFloat_FromDouble": "ptr (double)",
    "PyNumber_Long": "ptr (ptr)", "Py_DecRef": "void (ptr)", "Py_IncRef": "void (ptr)",
    "PyLong_AsLongLong": "i64 (ptr)",
    "PyLong_AsUnsignedLongLong": "i64 (ptr)", "PyLong_FromLongLong": "ptr (i64)",
    "PyLong_FromUnsignedLongLong": "ptr (i64)", "PyObject_IsTrue": "i32 (ptr)", "PyBool_FromLong": "ptr (i64)",
    "PyTuple_New": "ptr (i64)", "PyTuple_SetItem": "i32 (ptr, i64, ptr)", "PyList_GetItem": "ptr (ptr, i64)",
}
_MISMATCH = "can't unbox array from PyObject into native value.  The object maybe of a different type"


def covers(kind: Any) -> bool:
    """Whether arguments and results of the type are taken and made here."""
    return (type(kind) is types.Array and kind.dtype in _ELEMENTS) or kind in LLVM


def covers_result(kind: Any) -> bool:
    """A tuple of such, or None, can be returned, too."""
    return kind == TYPES.none or all(map(covers, items_of(kind)))


_ELEMENTS = {*LLVM, TYPES.complex64, TYPES.complex128}


class Wrapper:
    """The wrapper of one function; `write` puts it into the module."""

    def __init__(self, context: Any, module: Any, function: Any, fndesc: Any, environment: Any) -> None:
        self.context, self.module, self.function, self.fndesc = context, module, function, fndesc
        self.environment = environment
        self.lines: list[str] = []
        self.used: set[str] = set()
        self.count = 0
        self.constants = ""             # the environment's list of them

    def write(self) -> None:
        """NotCovered: a type that Numba's own wrapper is for."""
        kinds = list(self.fndesc.argtypes)
        results = items_of(self.fndesc.restype)
        if not all(map(covers, kinds)) or not covers_result(self.fndesc.restype):
            raise NotCovered("a wrapper for other types")
        name = self.fndesc.llvm_cpython_wrapper_name
        self.lines.append(f'define ptr @"{name}"(ptr %closure, ptr %args, ptr %names) noinline optnone {{')
        self._body(kinds, results)
        self.lines.append("}")
        _text(self.module, name, "\n".join(self.lines))
        if "gradsmith_raise" in self.used:
            self.used |= {"PyErr_Clear", "numba_unpickle", "numba_do_raise"}
            if has_numbers(self.module):
                self.used |= {"PyBytes_FromStringAndSize", "numba_runtime_build_excinfo_struct", "NRT_Free"}
                static = "gradsmith_raise_static"
                _text(self.module, static, _RAISE.replace("gradsmith_raise", static))
                _text(self.module, "gradsmith_raise", _RAISE_WITH_NUMBERS)
            else:
                _text(self.module, "gradsmith_raise", _RAISE)
        for external in sorted(self.used & _DECLARED.keys()):
            if external not in self.module.globals:
                result, _, parameters = _DECLARED[external].partition(" ")
                if external in memory.TEXTS:
                    memory.declared(self.module, external)
                    continue
                _text(self.module, external, f"declare {result} @{external}{parameters}")

    # --- writing -------------------------------------------------------------------------------------------------

    def put(self, line: str) -> None:
        self.lines.append("  " + line)

    def let(self, instruction: str) -> str:
        self.count += 1
        self.put(f"%v{self.count} = {instruction}")
        return f"%v{self.count}"

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def call(self, function: str, *operands: str) -> str:
        """A call of one of `_DECLARED`; operands with their types."""
        self.used.add(function)
        result, _, parameters = _DECLARED[function].partition(" ")
        signature = f"{result} {parameters}" if "..." in parameters else result
        text = f"call {signature} @{function}({', '.join(operands)})"
        if result == "void":
            self.put(text)
            return ""
        return self.let(text)

    def string(self, text: str) -> str:
        """A constant."""
        data = text.encode() + b"\0"
        name = f"gradsmith.text.{len(self.module.globals)}"
        escaped = "".join(f"\\{byte:02X}" for byte in data)
        _text(self.module, name, f'@"{name}" = private constant [{len(data)} x i8] c"{escaped}"')
        return f'@"{name}"'

    def constant(self, value: Any) -> str:
        """A Python object that the environment keeps, as a borrowed reference."""
        held = self.environment.consts
        index = next((k for k, other in enumerate(held) if other is value), len(held))
        if index == len(held):
            held.append(value)
        return self.call("PyList_GetItem", f"ptr {self.constants}", f"i64 {index}")

    # --- the parts -----------------------------------------------------------------------------------------------

    def _body(self, kinds: Sequence[Any], results: Sequence[Any]) -> None:
        self.structs = {k: str(self.context.get_value_type(kind)) for k, kind in enumerate(kinds)
                        if isinstance(kind, types.Array)}
        result = str(self.context.data_model_manager[self.fndesc.restype].get_return_type())
        self.put(f"%result = alloca {result}")
        self.put("%info = alloca ptr")
        for k in range(len(kinds)):
            self.put(f"%object{k} = alloca ptr")
            if k in self.structs:
                self.put(f"%array{k} = alloca {self.structs[k]}")
        count = f"i64 {len(kinds)}"
        taken = self.call("PyArg_UnpackTuple", "ptr %args", f"ptr {self.string(self.fndesc.qualname)}", count, count,
                          *(f"ptr %object{k}" for k in range(len(kinds))))
        self.put(f"br i1 {self.let(f'icmp ne i32 {taken}, 0')}, label %take0, label %null")
        scalars = {}
        for k, kind in enumerate(kinds):
            self.label(f"take{k}")
            object_ = self.let(f"load ptr, ptr %object{k}")
            if k in self.structs:
                self._take_array(k, kind, object_)
            else:
                scalars[k] = self._take_scalar(k, kind, object_)
        self.label(f"take{len(kinds)}")
        self._call(kinds, scalars)
        self._failures(len(kinds))
        self.label("box")
        self._box(results, result)

    def _take_array(self, k: int, kind: Any, object_: str) -> None:
        code = self.call("NRT_adapt_ndarray_from_python", f"ptr {object_}", f"ptr %array{k}")
        place = self.let(f"getelementptr {self.structs[k]}, ptr %array{k}, i32 0, i32 3")
        itemsize = self.let(f"load i64, ptr {place}")
        fails = self.let(f"icmp ne i32 {code}, 0")
        differs = self.let(f"icmp ne i64 {itemsize}, {as_dtype(kind.dtype).itemsize}")
        self.put(f"br i1 {self.let(f'or i1 {fails}, {differs}')}, label %mismatch{k}, label %take{k + 1}")
        self.label(f"mismatch{k}")
        self.call("PyErr_SetString", f"ptr {self._exception('PyExc_TypeError')}", f"ptr {self.string(_MISMATCH)}")
        self.put(f"br label %failed{k}")

    def _exception(self, name: str) -> str:
        """An exception class: Numba gives its symbol the address of the class itself."""
        if name not in self.module.globals:
            _text(self.module, name, f"@{name} = external global i8")
        return f"@{name}"

    def _take_scalar(self, k: int, kind: Any, object_: str) -> str:
        if kind in FLOATS:
            value = self.call("PyFloat_AsDouble", f"ptr {object_}")
            suspicious = self.let(f"fcmp oeq double {value}, -1.0")
        elif kind == TYPES.boolean:
            truth = self.call("PyObject_IsTrue", f"ptr {object_}")
            suspicious = self.let(f"icmp slt i32 {truth}, 0")
            value = self.let(f"zext i1 {self.let(f'icmp ne i32 {truth}, 0')} to i8")
        else:
            number = self.call("PyNumber_Long", f"ptr {object_}")
            self.put(f"br i1 {self.let(f'icmp eq ptr {number}, null')}, label %failed{k}, label %long{k}")
            self.label(f"long{k}")
            reader = "PyLong_AsLongLong" if kind.signed else "PyLong_AsUnsignedLongLong"
            value = self.call(reader, f"ptr {number}")
            self.call("Py_DecRef", f"ptr {number}")
            suspicious = self.let(f"icmp eq i64 {value}, -1")
        if kind == TYPES.float32:
            value = self.let(f"fptrunc double {value} to float")
        elif kind in LLVM and kind not in FLOATS and kind != TYPES.boolean and kind.bitwidth < 64:
            value = self.let(f"trunc i64 {value} to i{kind.bitwidth}")
        self.put(f"br i1 {suspicious}, label %suspicious{k}, label %take{k + 1}")
        self.label(f"suspicious{k}")
        error = self.call("PyErr_Occurred")
        self.put(f"br i1 {self.let(f'icmp ne ptr {error}, null')}, label %failed{k}, label %take{k + 1}")
        return value

    def _call(self, kinds: Sequence[Any], scalars: dict[int, str]) -> None:
        operands = [f"{argument.type} " for argument in self.function.args[2:]]
        given: list[str] = []
        for k, kind in enumerate(kinds):
            if k not in self.structs:
                given.append(scalars[k])
                continue
            for member in [f"i32 {j}" for j in range(5)] + [f"i32 {j}, i32 {axis}" for j in (5, 6)
                                                          for axis in range(kind.ndim)]:
                place = self.let(f"getelementptr {self.structs[k]}, ptr %array{k}, i32 0, {member}")
                given.append(self.let(f"load {operands[len(given)]}, ptr {place}"))
        thread = self.call("PyEval_SaveThread")
        arguments = ["ptr %result", "ptr %info", *(kind + value for kind, value in zip(operands, given, strict=True))]
        code = self.let(f'call i32 @"{self.fndesc.llvm_func_name}"({", ".join(arguments)})')
        self.call("PyEval_RestoreThread", f"ptr {thread}")
        for k in self.structs:
            self._release(f"%array{k}")
        self.put(f"br i1 {self.let(f'icmp eq i32 {code}, 0')}, label %box, label %error")
        self.label("error")
        self.put(f"br i1 {self.let(f'icmp sgt i32 {code}, 0')}, label %raise, label %null")
        self.label("raise")
        self.used.add("gradsmith_raise")
        info = self.let("load ptr, ptr %info")
        self.put(f"call void @gradsmith_raise(ptr {info})")
        self.put("br label %null")

    def _release(self, struct: str) -> None:
        """Of an array: the pointer to its MemInfo comes first."""
        meminfo = self.let(f"load ptr, ptr {struct}")
        self.call("NRT_decref", f"ptr {meminfo}")

    def _failures(self, count: int) -> None:
        for k in reversed(range(count)):
            self.label(f"failed{k}")
            if k and k - 1 in self.structs:
                self._release(f"%array{k - 1}")
            self.put(f"br label %{f'failed{k - 1}' if k else 'null'}")
        self.label("null")
        self.put("ret ptr null")

    # --- results -------------------------------------------------------------------------------------------------

    def _box(self, results: Sequence[Any], struct: str) -> None:
        if self.fndesc.restype == TYPES.none:
            if "_Py_NoneStruct" not in self.module.globals:
                _text(self.module, "_Py_NoneStruct", "@_Py_NoneStruct = external global i8")
            self.call("Py_IncRef", "ptr @_Py_NoneStruct")
            self.put("ret ptr @_Py_NoneStruct")
            return
        environment = self.context.get_env_name(self.fndesc)
        holder = self.let(f'load ptr, ptr @"{environment}"')
        offset = _dynfunc._impl_info["offsetof_env_body"] + 8           # after the pointer to the globals
        self.constants = self.let(f"load ptr, ptr {self.let(f'getelementptr i8, ptr {holder}, i64 {offset}')}")
        if not isinstance(self.fndesc.restype, types.BaseTuple):
            self.put(f"ret ptr {self._boxed(results[0], '%result')}")
            return
        places = [self.let(f"getelementptr {struct}, ptr %result, i32 0, i32 {k}") for k in range(len(results))]
        made = self.call("PyTuple_New", f"i64 {len(results)}")
        for k, (kind, place) in enumerate(zip(results, places)):
            item = self._boxed(kind, place)
            self.call("PyTuple_SetItem", f"ptr {made}", f"i64 {k}", f"ptr {item}")
        missing = self.call("PyErr_Occurred")
        self.put(f"br i1 {self.let(f'icmp eq ptr {missing}, null')}, label %whole, label %incomplete")
        self.label("incomplete")
        self.call("Py_DecRef", f"ptr {made}")
        self.put("br label %null")
        self.label("whole")
        self.put(f"ret ptr {made}")

    def _boxed(self, kind: Any, place: str) -> str:
        if isinstance(kind, types.Array):
            made = self.call("NRT_adapt_ndarray_to_python_acqref", f"ptr {place}", f"ptr {self.constant(np.ndarray)}",
                             f"i32 {kind.ndim}", f"i32 {int(kind.mutable)}",
                             f"ptr {self.constant(as_dtype(kind.dtype))}")
            self._release(place)
            return made
        llvm = ir.IntType(8) if kind == TYPES.boolean else LLVM[kind]
        value = self.let(f"load {llvm}, ptr {place}")
        if kind in FLOATS:
            return self.call("PyFloat_FromDouble", f"double {self._wide('fpext', llvm, value, 'double')}")
        if kind == TYPES.boolean:
            return self.call("PyBool_FromLong", f"i64 {self.let(f'zext i8 {value} to i64')}")
        maker = "PyLong_FromLongLong" if kind.signed else "PyLong_FromUnsignedLongLong"
        return self.call(maker, f"i64 {self._wide('sext' if kind.signed else 'zext', llvm, value, 'i64')}")

    def _wide(self, cast: str, llvm: Any, value: str, wide: str) -> str:
        return value if str(llvm) == wide else self.let(f"{cast} {llvm} {value} to {wide}")


def _text(module: Any, name: str, text: str) -> None:
    """Something in the module that is given by its text."""
    if name in module.globals:
        raise NotCovered(f"{name} is in the module already")
    Definition(module, ir.FunctionType(ir.VoidType(), ()), name, text)
