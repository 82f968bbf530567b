"""Whether there is as much memory: `fits_in_memory(bytes)`, for what must not grow without end.

Three quarters of what is left, so that there is something for everything else.  Compiled code asks through a function
whose address each process gives a name of its own (`symbols` says why).
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

SYMBOL = "gradsmith_fits_in_memory"
CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNKNOWN = 2**40
SMALL = 2**22           # bytes that are not asked about: asking takes as long as filling them


def fits_in_memory(size: int) -> bool:
    """Whether arrays of that many bytes may be allocated."""
    return size <= SMALL or bool(size <= min(_limits(), default=UNKNOWN) * 3 // 4)


def _limits() -> Iterator[int]:
    """What is left of the machine's memory, of the container's, and of the addresses that the process may use."""
    try:
        yield 1024 * int(re.findall(r"MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text())[0])
    except (OSError, IndexError):
        if hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= os.sysconf_names.keys():
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in CONTAINER:
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            yield int(text)
    try:
        import resource
    except ImportError:         # Windows
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield soft - _mapped()


def _mapped() -> int:
    """Bytes of addresses that the process uses, as far as the system tells."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


# It is called seldom, when a tape is full; Python's lock is taken for it.
_callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int64)(lambda size: fits_in_memory(size))
llvmlite.binding.add_symbol(SYMBOL, ctypes.cast(_callback, ctypes.c_void_p).value)


class _Template(AbstractTemplate):
    key = fits_in_memory

    def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
        is_size = len(arguments) == 1 and isinstance(arguments[0], types.Integer)
        return Signature(types.boolean, (types.int64,), None) if is_size and not keywords else None


infer_global(fits_in_memory, types.Function(_Template))


@lower_builtin(fits_in_memory, types.int64)
def _lowered(context: Any, builder: Any, signature: Signature, arguments: tuple[Any, ...]) -> Any:
    found = builder.module.globals.get(SYMBOL)
    if found is None:
        found = ir.Function(builder.module, ir.FunctionType(ir.IntType(8), [ir.IntType(64)]), SYMBOL)
    is_small = builder.icmp_signed("<=", arguments[0], ir.IntType(64)(SMALL))
    before = builder.block
    with builder.if_then(builder.not_(is_small)):
        fits = builder.icmp_unsigned("!=", builder.call(found, arguments), ir.IntType(8)(0))
        asked = builder.block
    result = builder.phi(ir.IntType(1))
    result.add_incoming(is_small, before)
    result.add_incoming(fits, asked)
    return result
