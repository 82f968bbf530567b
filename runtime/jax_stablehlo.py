"""Functions as StableHLO inside of modules that JAX makes: `gradsmith.jax.function(f, via="stablehlo")`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import transforms
from .to_stablehlo import stablehlo


def called_in_module(context: Any, args: Sequence[Any], fun: Callable[..., Any], leaves: Sequence[Any],
                     known: Sequence[int]) -> list[Any]:
    """Put `fun` into the module that JAX is writing (`context` is its lowering rule's) and call it there.

    leaves: the arguments of `fun`, arrays as their shapes and dtypes; `known` says which of them are Python's own, and
    no arguments of the call.  Results have the dtypes that JAX expects.
    """
    from jax.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func
    from jaxlib.mlir.dialects import stablehlo as dialect
    text = stablehlo(transforms.jit(fun, static_argnums=tuple(known)))(*leaves)
    destination = context.module_context
    with destination.context:
        main: Any = ir.SymbolTable(ir.Module.parse(text).operation)["main"]
    name_here = f"gradsmith_{getattr(fun, '__name__', 'call')}"
    main.attributes["sym_name"] = ir.StringAttr.get(name_here, destination.context)
    main.attributes["sym_visibility"] = ir.StringAttr.get("private", destination.context)
    main.operation.detach_from_parent()
    destination.module.body.append(main)
    name = destination.symbol_table.insert(main)            # another name where that one is taken
    call = func.CallOp(main.type.results, ir.FlatSymbolRefAttr.get(name.value, destination.context), list(args))
    wanted = [ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(aval.dtype)) for aval in context.avals_out]
    return [found if found.type == type else dialect.convert(type, found)
            for found, type in zip(call.results, wanted, strict=True)]
