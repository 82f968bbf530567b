"""Modules as portable artifacts: bytes that StableHLO's consumers of other versions read, too."""

from __future__ import annotations

import functools
from typing import Any

from .bindings import XlaError, bindings, parsed


def to_portable_artifact(text: str, version: str | None = None) -> bytes:
    """The module in the bytecode of a version of StableHLO such as "1.0.0", by default the oldest that is still read
    everywhere.  Functions that are no operations of StableHLO's (CHLO's) are written out.

    XlaError: the module is refused, or holds what that version lacks.
    """
    module = parsed(text)
    from jaxlib.mlir.dialects import stablehlo
    wanted = version or stablehlo.get_minimum_version()
    try:
        _written_out(module)
        return bytes(stablehlo.serialize_portable_artifact(module, wanted))
    except (*bindings().refusals, bindings().ir.MLIRError) as refused:
        raise XlaError(f"StableHLO {wanted} cannot hold the module: {refused}") from None


def from_portable_artifact(artifact: bytes) -> str:
    """The module's text.  XlaError: the bytes are no such artifact."""
    ir, context = bindings().ir, bindings().make_context()
    from jaxlib.mlir.dialects import stablehlo
    try:
        with context:
            return str(stablehlo.deserialize_portable_artifact(context, artifact))
    except (ir.MLIRError, *bindings().refusals) as refused:
        raise XlaError(f"this is no portable artifact: {refused}") from None


def _written_out(module: Any) -> None:
    """CHLO's operations in StableHLO's own."""
    _register_passes()
    from jaxlib.mlir.passmanager import PassManager
    with module.context:
        PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)


@functools.cache
def _register_passes() -> None:
    from jaxlib.mlir.dialects import stablehlo
    stablehlo.register_stablehlo_passes()
