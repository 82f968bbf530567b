"""Texts compiled to executables, which are kept in memory and on disk.

    text ─► memory, by text and device ─► disk, by a hash of all that has a say ─► XLA

On disk an executable is what XLA serialises, behind a checksum, in the folder of the other generated modules.  It
holds machine code, so the processor's name and features are part of its key.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from .. import cache
from .bindings import XlaError, bindings, parsed

KEPT = 256                                              # executables in memory
DIGEST = hashlib.sha256().digest_size
_executables: OrderedDict[Any, Any] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True)
class Build:
    """How to compile.  optimise=False is quicker, for a large module that runs once.  partitions: devices that the
    module is divided among, by XLA's partitioner.  stored: whether the disk is used."""

    optimise: bool = True
    partitions: int = 1
    stored: bool = False


def compiled(text: str, devices: Sequence[Any], build: Build = Build()) -> Any:
    """The loaded executable of a module for these devices (jax's own), one for each partition.

    XlaError: the compiler refuses it.
    """
    key = (text, tuple(devices), build.optimise, build.partitions)
    with _lock:
        if key in _executables:
            _executables.move_to_end(key)
            return _executables[key]
    made = _from_disk_or_compiler(text, devices, build)
    with _lock:
        _executables[key] = made
        while len(_executables) > KEPT:
            _executables.popitem(last=False)
    return made


def options_for(build: Build) -> Any:
    """XLA's options."""
    client = bindings().client
    options = client.CompileOptions()
    inner = options.executable_build_options
    if not build.optimise:
        inner.debug_options.xla_backend_optimization_level = 0
        inner.debug_options.xla_llvm_disable_expensive_passes = True
    options.num_replicas, options.num_partitions = 1, build.partitions
    options.device_assignment = client.DeviceAssignment.create(
        np.arange(build.partitions, dtype=np.int32).reshape(1, build.partitions))
    if build.partitions > 1:
        inner.use_spmd_partitioning = inner.use_shardy_partitioner = True
        inner.allow_spmd_sharding_propagation_to_output = [True]
    return options


def _from_disk_or_compiler(text: str, devices: Sequence[Any], build: Build) -> Any:
    client = devices[0].client
    path = _place(text, devices, build) if build.stored else None
    if path is not None:
        found = _read(path)
        if found is not None:
            made = _loaded(found, devices, build)
            if made is not None:
                cache.account.loaded += 1
                return made
    try:
        made = client.compile_and_load(parsed(text), bindings().client.DeviceList(tuple(devices)), options_for(build))
    except bindings().refusals as refused:
        raise XlaError(str(refused)) from None
    if path is not None:
        cache.account.compiled += 1
        _save(path, client, made)
    return made


def _place(text: str, devices: Sequence[Any], build: Build) -> Path | None:
    import jaxlib
    from llvmlite import binding
    device = devices[0]
    parts = [bindings().jax.__version__, jaxlib.__version__, device.platform, device.device_kind,
             device.client.platform_version,
             " ".join(str(d.id) for d in devices), repr(build), os.environ.get("XLA_FLAGS", ""),
             binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return cache.place_of(cache.key_of(text, "\n".join(["xla", *parts]))) / "module.xla"


def _read(path: Path) -> bytes | None:
    """What was stored; None where there is nothing, or nothing whole."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        cache.without(problem)
        return None
    digest, body = content[:DIGEST], content[DIGEST:]
    return body if hashlib.sha256(body).digest() == digest else None


def _loaded(body: bytes, devices: Sequence[Any], build: Build) -> Any:
    """The executable; None where this XLA does not take it, which then is compiled anew."""
    client = bindings().client
    try:
        return devices[0].client.deserialize_executable(body, client.DeviceList(tuple(devices)), options_for(build))
    except client.XlaRuntimeError:
        return None


def _save(path: Path, client: Any, executable: Any) -> None:
    """Nothing is stored where this client cannot serialise."""
    try:
        body = bytes(client.serialize_executable(executable))
    except bindings().client.XlaRuntimeError:
        return
    cache.save(path, hashlib.sha256(body).digest() + body)
