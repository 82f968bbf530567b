"""`gradsmith doctor`: what this installation has, and what stands in its way."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterator
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path

import typer

PACKAGES = ("gradsmith", "numpy", "numba", "llvmlite", "scipy", "gast", "astor", "optree", "platformdirs", "typer",
            "rich")
EXTRAS = {"jax": "xla", "jaxlib": "xla", "libtpu": "tpu", "numba-cuda": "cuda", "nvmath-python": "cuda",
          "rocket-fft": "fft"}


@dataclass(frozen=True)
class Finding:
    """One line.  problem: what does not work because of it."""

    topic: str
    text: str
    problem: bool = False


def command() -> None:
    """Report versions, BLAS, threads, devices and the cache.  Status 1 if something is missing or broken."""
    from .console import is_terminal
    findings = list(examine())
    width = max(len(finding.topic) for finding in findings) + 2
    for finding in findings:
        text = typer.style(finding.text, fg="red") if finding.problem and is_terminal(sys.stdout) else finding.text
        print(f"{finding.topic:<{width}}{text}")
    problems = sum(finding.problem for finding in findings)
    if problems:
        print(f"{problems} problem{'s' if problems != 1 else ''}", file=sys.stderr)
        raise typer.Exit(1)


def examine() -> Iterator[Finding]:
    """Everything, in the order in which it is printed."""
    yield Finding("python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.machine()}, "
                            f"{platform.system()})")
    yield from map(_package, PACKAGES)
    for package, extra in EXTRAS.items():
        version = _version(package)
        yield Finding(package, version or f'not installed (pip install "gradsmith[{extra}]")')
    for topic, look in (("blas", _blas), ("numba threads", _threads), ("cuda", _cuda), ("xla", _xla),
                        ("tpu", _tpu), ("cache", _cache)):
        yield _safely(topic, look)


def _safely(topic: str, look: Callable[[], Finding]) -> Finding:
    """A look into foreign libraries may fail in any way; that is then the finding."""
    try:
        return look()
    except Exception as fault:
        return Finding(topic, f"{type(fault).__name__}: {fault}", problem=True)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _package(name: str) -> Finding:
    version = _version(name)
    return Finding(name, version or "not installed", problem=version is None)


def _blas() -> Finding:
    """The BLAS that generated code calls is SciPy's."""
    import scipy
    from scipy.linalg import cython_blas
    config = scipy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {}) if isinstance(config, dict) else {}
    name = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    if "dgemm" not in cython_blas.__pyx_capi__:
        return Finding("blas", f"{name}, without dgemm", problem=True)
    count = _blas_threads(Path(scipy.__file__).parent.parent / "scipy.libs")
    return Finding("blas", f"{name} (scipy's){f', {count} threads' if count else ''}")


def _blas_threads(folder: Path) -> int | None:
    """How many threads the OpenBLAS in SciPy's wheel uses; None where that cannot be asked."""
    for library in sorted(folder.glob("*openblas*")):
        loaded = ctypes.CDLL(str(library))
        for name in ("scipy_openblas_get_num_threads", "openblas_get_num_threads", "scipy_openblas_get_num_threads64_"):
            if hasattr(loaded, name):
                return int(getattr(loaded, name)())
    return None


def _threads() -> Finding:
    import numba
    layers = [layer for layer, module in (("tbb", "tbbpool"), ("omp", "omppool"), ("workqueue", "workqueue"))
              if _loads(f"numba.np.ufunc.{module}")]
    chosen = getattr(numba.config, "THREADING_LAYER", "unknown")
    return Finding("numba threads", f"{numba.get_num_threads()} of {os.cpu_count()} cores, layer {chosen} "
                                    f"(there are {', '.join(layers) or 'none'})", problem=not layers)


def _loads(module: str) -> bool:
    try:
        return importlib.import_module(module) is not None
    except ImportError:
        return False


def _cuda() -> Finding:
    driver = find_library("cuda") or find_library("nvcuda")
    if driver is None:
        return Finding("cuda", "no driver")
    loaded = ctypes.CDLL(driver)
    count = ctypes.c_int()
    if loaded.cuInit(0) != 0 or loaded.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return Finding("cuda", "a driver, but no device")
    usable = "" if _version("numba-cuda") else ', for which numba-cuda is missing (pip install "gradsmith[cuda]")'
    return Finding("cuda", f"{count.value} device{'s' if count.value != 1 else ''}{usable}")


def _xla() -> Finding:
    if importlib.util.find_spec("jaxlib") is None:
        return Finding("xla", "not there: StableHLO can be written, not run")
    return Finding("xla", f"jaxlib {_version('jaxlib')}")


def _tpu() -> Finding:
    if importlib.util.find_spec("libtpu") is None:
        return Finding("tpu", "no libtpu")
    devices = [path for path in ("/dev/accel0", "/dev/vfio/0") if os.path.exists(path)]
    return Finding("tpu", f"libtpu {_version('libtpu')}, {'a device' if devices else 'no device'}")


def _cache() -> Finding:
    from gradsmith.cache import folder
    place = folder()
    existing = place
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    works = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    why = "" if works else f", which cannot be written: {existing} is {'read-only' if existing.is_dir() else 'a file'}"
    return Finding("cache", f"{place}{why}", problem=not works)
