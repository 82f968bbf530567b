"""Numba's reference counts, in place: what Numba links into each module from a library of its own.

    NRT_incref, NRT_decref      count references to a MemInfo, which may be null
    NRT_MemInfo_data_fast       where its data is

Numba keeps the first two out of line for a pass that removes pairs of them.  Here none are written that such a pass
would remove.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..kernels.kernel import Definition

POINTER = ir.IntType(8).as_pointer()

TEXTS = {
    "NRT_incref": """define linkonce_odr void @NRT_incref(i8* %info) noinline nounwind {
  %absent = icmp eq i8* %info, null
  br i1 %absent, label %done, label %count
count:
  %place = bitcast i8* %info to i64*
  %before = atomicrmw add i64* %place, i64 1 monotonic
  br label %done
done:
  ret void
}""",
    "NRT_decref": """define linkonce_odr void @NRT_decref(i8* %info) noinline nounwind {
  %absent = icmp eq i8* %info, null
  br i1 %absent, label %done, label %count
count:
  fence release
  %place = bitcast i8* %info to i64*
  %before = atomicrmw sub i64* %place, i64 1 monotonic
  %last = icmp eq i64 %before, 1
  br i1 %last, label %free, label %done
free:
  fence acquire
  call void @NRT_MemInfo_call_dtor(i8* %info)
  br label %done
done:
  ret void
}""",
    "NRT_MemInfo_data_fast": """define linkonce_odr i8* @NRT_MemInfo_data_fast(i8* %info) alwaysinline nounwind {
  %field = getelementptr i8, i8* %info, i64 24
  %place = bitcast i8* %field to i8**
  %data = load i8*, i8** %place
  ret i8* %data
}""",
}


def define(module: ir.Module) -> None:
    """Give those of the functions that the module declares their bodies."""
    if "NRT_decref" in module.globals and "NRT_MemInfo_call_dtor" not in module.globals:
        ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "NRT_MemInfo_call_dtor")
    for name, text in TEXTS.items():
        declared: Any = module.globals.get(name)
        if declared is not None and not isinstance(declared, Definition):
            defined = Definition.__new__(Definition)
            defined.__dict__.update(declared.__dict__)
            defined.text = text
            module.globals[name] = defined


def count(builder: Any, name: str, meminfo: Any) -> None:
    """A call of NRT_incref or NRT_decref."""
    builder.call(declared(builder.module, name), [meminfo])


def declared(module: ir.Module, name: str) -> Any:
    """NRT_incref or NRT_decref; `define` gives it a body."""
    found = module.globals.get(name)
    return found if found is not None else ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), name)
