"""jax, jaxlib and MLIR's Python bindings, imported when first needed, and the devices of XLA's clients."""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..transpiler.errors import error

# What libtpu asks a machine for; said beforehand, it neither complains nor asks a cloud where there is no TPU, and
# compiles ahead of time.
_NO_TPU_HERE: Mapping[str, str] = {
    "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
# Our names of platforms, and jax's.
PLATFORMS: Mapping[str, str] = {"xla": "cpu", "tpu": "tpu"}


class XlaError(RuntimeError):
    """The module was refused, or failed while it ran; the message is XLA's own."""


@dataclass(frozen=True)
class Bindings:
    """jax, `jaxlib.xla_client` and `jaxlib.mlir.ir`."""

    jax: Any
    client: Any
    ir: Any
    make_context: Any

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """What XLA raises where it refuses something."""
        return (ValueError, self.client.XlaRuntimeError)


@functools.cache
def bindings() -> Bindings:
    """ImportError with the line to install what is missing."""
    if not has_tpu():
        for name, value in _NO_TPU_HERE.items():
            os.environ.setdefault(name, value)
    try:
        import jax
        from jax._src.interpreters import mlir
        from jaxlib import xla_client
        from jaxlib.mlir import ir
    except ImportError as missing:
        raise error("E605", f"running StableHLO needs jaxlib ({missing})", None, kind=ImportError,
                    help="pip install gradsmith[xla]") from None
    return Bindings(jax, xla_client, ir, mlir.make_ir_context)


def has_tpu() -> bool:
    """Whether this machine shows a TPU to its programs."""
    return bool(glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"))


def require_libtpu() -> None:
    """ImportError with the line to install it."""
    try:
        import libtpu  # noqa: F401
    except ImportError as missing:
        raise error("E605", f"compiling for TPU needs libtpu ({missing})", None, kind=ImportError,
                    help="pip install gradsmith[tpu]") from None


def devices(platform: str) -> list[Any]:
    """jax's devices of one of our platforms.  TranspileError (E611): there are none."""
    jax = bindings().jax
    if platform == "tpu":
        require_libtpu()
    try:
        return list(jax.local_devices(backend=PLATFORMS[platform]))
    except RuntimeError as problem:
        if platform != "tpu":
            raise
        raise error("E604", "there is no TPU here to run on", None, kind=RuntimeError, help=(
            'compile for one ahead of time, gradsmith.xla.compile_for_tpu(text), or run it here with target="xla"'
        )) from problem


def device(platform: str, index: int) -> Any:
    """One of them.  TranspileError (E611): there are fewer."""
    found = devices(platform)
    if index >= len(found):
        raise error("E604", f"there is no device {platform}:{index}, only {len(found)} of {platform}", None,
                    kind=ValueError, help=f'{platform}:0 is the first' if platform == "tpu" else (
                        f"XLA_FLAGS=--xla_force_host_platform_device_count={index + 1} makes so many of this CPU"))
    return found[index]


@contextmanager
def sixty_four_bits() -> Iterator[None]:
    """jax keeps float64 and int64 as they are."""
    with bindings().jax.enable_x64(True):
        yield


def parsed(text: str) -> Any:
    """The text as an MLIR module.  XlaError: the parser's or the verifier's words."""
    ir = bindings().ir
    context = bindings().make_context()
    try:
        with context:
            module = ir.Module.parse(text)
            module.operation.verify()
            return module
    except ir.MLIRError as refused:
        raise XlaError(str(refused)) from None
