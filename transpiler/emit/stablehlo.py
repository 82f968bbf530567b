"""A tensor-level func as a StableHLO module.

    func f(x: f64[3]):             func.func public @main(%x: tensor<3xf64>) -> tensor<3xf64> {
      y = sin(x)                     %y = stablehlo.sine %x : tensor<3xf64>
      return y                       return %y : tensor<3xf64>
                                   }

Sizes must be ints (`specialise`).  Equal input gives equal text.  How statements are written, and what becomes of
checks, is in `hlo_blocks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir.build import Names
from ..ir.library import Program
from ..ir.nodes import Func, Var
from .hlo_blocks import Emitter, Failure
from .hlo_bounds import with_known_sizes
from .hlo_inline import without_calls
from .hlo_printer import Printer
from .hlo_sizes import require_sizes, specialise
from .hlo_text import HloValue, Writer, identifier, without_unused
from .hlo_types import in_half_precision, tensor

__all__ = ["Emitted", "Failure", "emit_module", "emit_stablehlo", "specialise"]


@dataclass(frozen=True)
class Marks:
    """What a compiler is told beside the code: attributes of the module, of parameters and results by their numbers
    (`sdy.sharding = ...`), and lines that stand before the function."""

    module: str = ""
    lines: tuple[str, ...] = ()
    params: Mapping[int, str] = field(default_factory=dict)
    results: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Emitted:
    """text: the module.  failures: what the error flag may say, where it was asked for, by its codes from 1 on."""

    text: str
    failures: tuple[Failure, ...] = ()


def emit_stablehlo(func: Program, *, name: str = "main", locations: bool = False, checked: bool = False) -> str:
    """The text of one module with the one public function `name`; see `emit_module`."""
    return emit_module(func, name=name, locations=locations, checked=checked).text


def emit_module(func: Program, *, name: str = "main", locations: bool = False, checked: bool = False,
                constants: Mapping[Var, Any] | None = None, arguments: Sequence[str] = (),
                results: Sequence[str] = (), aliased: Mapping[int, int] | None = None,
                max_trips: int | None = None, half: str | None = None, marks: Marks = Marks(),
                precision: str = "highest", stored: Mapping[Var, str] | None = None,
                rounded: Mapping[int, str] | None = None) -> Emitted:
    """One module with one public function.

    locations: end lines with the user's own, as MLIR's `loc("file":line:column)`.  checked: an int32 is the last
    result, 0 or the code of the first check that failed.  constants: params that are written as these arrays instead.
    arguments, results: what people call them, written beside.  aliased: by parameters (as numbers among those that
    are left), the results that may take their memory.  max_trips: see `hlo_bounds`.  half: what
    float32 is written as, "float16" or "bfloat16".  marks: attributes for the compiler.  precision: of matrix
    products, "highest", "high" or "default".  stored: params of float32 that come in a shorter dtype.  rounded: results
    of float32, as numbers, that leave in one.

    RuleError: a size that is not known, recursion that run-time values end, or an operation without a StableHLO form;
    where the statement has a location, the TranspileError drawn over it.
    """
    func = with_known_sizes(without_calls(func), max_trips)
    with in_half_precision(half):
        return _emitted(func, Printer(precision), name, locations, checked, constants or {}, arguments, results,
                        aliased or {}, marks, stored or {}, rounded or {})


def _emitted(func: Func, h: Printer, name: str, locations: bool, checked: bool, constants: Mapping[Var, Any],
             arguments: Sequence[str], results: Sequence[str], aliased: Mapping[int, int], marks: Marks,
             stored: Mapping[Var, str], rounded: Mapping[int, str]) -> Emitted:
    for param in func.params:
        require_sizes(param, func.params)
    names = Names()
    emitter = Emitter(h, names, func.params, checked=checked, locations=locations)
    params = []
    for param in func.params:
        if param in constants:
            value = h.array(constants[param], param.type)
        else:
            value = HloValue(param.type.with_dtype(stored.get(param, param.type.dtype)),
                             names.fresh(identifier(param.name)))
            params.append(value)
            value = h.convert(value, param.type.dtype)
        emitter.values[param] = value
    found = [h.convert(r, rounded.get(k, r.type.dtype)) for k, r in enumerate(emitter.func(func.body))]
    labels = [*results, "error"] if results and checked else results
    text = _module(func.name, name, params, h, found, names, arguments, labels, aliased, marks)
    return Emitted(text, tuple(emitter.failures.values()))


def _module(module: str, name: str, params: Sequence[HloValue], h: Printer, results: Sequence[HloValue],
            names: Names, arguments: Sequence[str], labels: Sequence[str], aliased: Mapping[int, int],
            marks: Marks) -> str:
    writer = Writer(tuple(names.taken))
    writer.block(without_unused(h.body, results), "    ")
    declared = []
    for k, param in enumerate(params):
        attributes = _attributes(f"tf.aliasing_output = {aliased[k]} : i32" if k in aliased else "",
                                 marks.params.get(k, ""))
        place = f" loc({_quoted(arguments[k])})" if arguments else ""
        declared.append(f"%{param.name}: {tensor(param.type)}{attributes}{place}")
    types = [tensor(r.type) for r in results]
    infos = [f"jax.result_info = {_quoted(label)}" for label in labels] or [""] * len(types)
    returns = [t + _attributes(info, marks.results.get(k, "")) for k, (t, info) in enumerate(zip(types, infos,
                                                                                              strict=True))]
    shown = returns[0] if returns == types and len(types) == 1 else f"({', '.join(returns)})"
    returned = f"return {', '.join(writer.use(r) for r in results)} : {', '.join(types)}" if results else "return"
    return "\n".join([
        f"module @{identifier(module)}{' attributes {' + marks.module + '}' if marks.module else ''} {{",
        *(f"  {line}" for line in marks.lines),
        f"  func.func public @{identifier(name)}({', '.join(declared)}) -> {shown} {{",
        *writer.lines,
        f"    {returned}",
        "  }",
        "}",
        "",
    ])


def _attributes(*texts: str) -> str:
    given = ", ".join(filter(None, texts))
    return f" {{{given}}}" if given else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if 32 <= ord(c) < 127 else "".join(f"\\{b:02X}" for b in c.encode()) for c in escaped) + '"'
