"""Compile and run StableHLO text with XLA, through the jaxlib that the extra `xla` installs.

    run(text, x, y)                      results of @main on XLA's CPU client, as NumPy arrays
    parses(text)                         None, or the verifier's complaint
    compile_for_tpu(text, "v5e:2x2")     what the TPU compiler says of it; needs libtpu (extra `tpu`), and no TPU

Nothing here is imported by the rest of gradsmith, and jax only when one of these is called.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np

_KEPT = 256                                             # executables
_executables: OrderedDict[tuple[str, bool], Any] = OrderedDict()
_lock = Lock()

# What libtpu asks a machine for; said beforehand, it compiles where there is no TPU and no cloud to ask.
_NO_TPU_HERE: Mapping[str, str] = {
    "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
}


class XlaError(RuntimeError):
    """The module was refused; the message is the compiler's own."""


def _imported() -> tuple[Any, Any, Any, Any]:
    """jax, jaxlib's client, MLIR's Python bindings, and a context with StableHLO's dialects."""
    try:
        import jax
        from jax._src.interpreters import mlir
        from jaxlib import xla_client
        from jaxlib.mlir import ir
    except ImportError as missing:
        raise ImportError(f"running StableHLO needs jaxlib ({missing}): pip install gradsmith[xla]") from None
    return jax, xla_client, ir, mlir.make_ir_context()


def _module(text: str, ir: Any, context: Any) -> Any:
    try:
        with context:
            module = ir.Module.parse(text)
            module.operation.verify()
            return module
    except ir.MLIRError as refused:
        raise XlaError(str(refused)) from None


def _options(xla_client: Any, optimise: bool = True) -> Any:
    options = xla_client.CompileOptions()
    if not optimise:
        debug = options.executable_build_options.debug_options
        debug.xla_backend_optimization_level = 0
        debug.xla_llvm_disable_expensive_passes = True
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.zeros((1, 1), np.int32))
    return options


def parses(text: str) -> str | None:
    """None if the module parses and verifies, else what is wrong with it."""
    _, _, ir, context = _imported()
    try:
        _module(text, ir, context)
    except XlaError as refused:
        return str(refused)
    return None


def run(text: str, *arrays: Any, optimise: bool = True) -> list[np.ndarray[Any, Any]]:
    """The results of the module's @main.  Executables are kept by their text.

    arrays: NumPy arrays and scalars of the parameters' own dtypes and shapes.  optimise=False compiles faster, for a
    large module that runs once.  XlaError: the module or the arguments are refused.
    """
    jax, xla_client, _, _ = _imported()
    executable = _compiled(text, optimise)
    device = _cpu(jax)
    with jax.enable_x64(True):
        buffers = [jax.device_put(np.asarray(a), device) for a in arrays]
        try:
            return [np.array(r) for r in executable.execute(buffers)]
        except (ValueError, xla_client.XlaRuntimeError) as refused:
            raise XlaError(str(refused)) from None


def _cpu(jax: Any) -> Any:
    return jax.local_devices(backend="cpu")[0]


def _compiled(text: str, optimise: bool) -> Any:
    key = (text, optimise)
    with _lock:
        if key in _executables:
            _executables.move_to_end(key)
            return _executables[key]
    jax, xla_client, ir, context = _imported()
    device = _cpu(jax)
    try:
        made = device.client.compile_and_load(_module(text, ir, context), xla_client.DeviceList((device,)),
                                              _options(xla_client, optimise))
    except xla_client.XlaRuntimeError as refused:
        raise XlaError(str(refused)) from None
    with _lock:
        _executables[key] = made
        while len(_executables) > _KEPT:
            _executables.popitem(last=False)
    return made


def compile_for_tpu(text: str, topology: str = "v5e:2x2") -> dict[str, float]:
    """Compile ahead of time with the real TPU compiler, and return its account of costs ("flops", "bytes accessed",
    ...).  topology: as in "v5e:2x2" or "v4:2x2x1".

    Call it before jax is used in this process: libtpu reads its environment once.
    """
    for name, value in _NO_TPU_HERE.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    _, xla_client, ir, context = _imported()
    try:
        import libtpu  # noqa: F401
    except ImportError as missing:
        raise ImportError(f"compiling for TPU needs libtpu ({missing}): pip install gradsmith[tpu]") from None
    from jax.experimental import topologies

    module = _module(text, ir, context)
    devices: Any = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    try:
        made = devices[0].client.compile(module, xla_client.DeviceList(tuple(devices[:1])), _options(xla_client))
    except (ValueError, xla_client.XlaRuntimeError) as refused:
        raise XlaError(str(refused)) from None
    costs = made.cost_analysis()
    found: dict[str, float] = costs[0] if isinstance(costs, list) else costs
    return found
