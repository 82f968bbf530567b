"""Generated modules on disk: written once under a name that follows from their text, read by any later process.

    <folder>/<version>/<key[:2]>/<key>/loss_grad.py       generated source
    <folder>/<version>/<key[:2]>/<key>/__pycache__/       Numba's machine code, beside it

The key is a hash of the text and of the versions of everything that has a say in its machine code.  The text follows
from the user's sources, the transforms, the signature and the static values, so a stale module can never be found.
`GRADSMITH_CACHE_DIR` chooses the folder.  Only its owner may read it.  A folder that cannot be written is done
without, with one warning.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import linecache
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import llvmlite
import numba
import numpy as np
import platformdirs

FORMAT = 1          # of what is stored: counts up when an older gradsmith's files must not be read


@dataclass
class Account:
    """What the cache did in this process.

    hits, misses: generated modules that were on disk, or were written.  loaded, compiled: machine code from the disk,
    or from the compiler.  reasons: of the misses.  problem: why the disk is not used.
    """

    hits: int = 0
    misses: int = 0
    loaded: int = 0
    compiled: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    problem: str | None = None

    def __str__(self) -> str:
        lines = [f"folder: {folder()}",
                 f"generated modules found: {self.hits}, written: {self.misses}",
                 f"machine code loaded: {self.loaded}, compiled: {self.compiled}"]
        lines += [f"  {count} x {reason}" for reason, count in self.reasons.most_common()]
        if self.problem:
            lines.append(f"disk not used: {self.problem}")
        return "\n".join(lines)


account = Account()
lock = threading.Lock()


def folder() -> Path:
    """Where generated modules are kept."""
    chosen = os.environ.get("GRADSMITH_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("gradsmith", appauthor=False))


@functools.cache
def versions() -> str:
    """Everything besides its text that decides what a generated module compiles to; our own kernels
    and compiler among it."""
    from . import __version__
    ours = hashlib.sha256()
    for part in ("codegen", "kernels"):
        for path in sorted((Path(__file__).parent / part).glob("*.py")):
            ours.update(path.read_bytes())
    return "\n".join([str(FORMAT), __version__, ours.hexdigest(), numba.__version__, llvmlite.__version__,
                      np.__version__, platform.python_version(), platform.machine(), sys.platform])


def key_of(text: str, signature: str) -> str:
    return hashlib.sha256(f"{versions()}\n{signature}\n{text}".encode()).hexdigest()[:32]


def place_of(key: str) -> Path:
    """The folder of what is stored under a key."""
    return folder() / f"v{FORMAT}" / key[:2] / key


def save(path: Path, content: bytes) -> None:
    """Write a file in the folder of its key, at once or not at all; nothing where the disk cannot be used."""
    try:
        _make_private(path.parent.parent.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, content)
    except OSError as problem:
        without(problem)


def load(text: str, name: str, reason: str, signature: str = "") -> ModuleType:
    """The module whose source is `text`, through the disk where that works; `name` is the file's stem.

    signature: the types that it is compiled for.  Each has a folder of its own, because Numba's index of several can
    mix them up when two processes write it at once.
    """
    key = key_of(text, signature)
    module_name = f"gradsmith_generated.{key}.{name}"
    with lock:
        known = sys.modules.get(module_name)
        if known is not None:
            return known
        path = _stored(text, name, key, reason)
        if path is not None:
            try:
                return _import(path, module_name)
            except (OSError, RuntimeError) as problem:      # gone in between; Numba raises RuntimeError for that
                without(problem)
        return _in_memory(text, module_name)


def _stored(text: str, name: str, key: str, reason: str) -> Path | None:
    """The file that holds the text, written if need be; None where the disk cannot be used."""
    place = place_of(key)
    path = place / f"{name}.py"
    try:
        _make_private(place.parent.parent)
        if _holds(path, text):
            account.hits += 1
        else:
            place.mkdir(parents=True, exist_ok=True)
            _write(path, text.encode())
            account.misses += 1
            account.reasons[reason] += 1
        if not os.access(place, os.W_OK):                   # Numba writes beside the module
            raise PermissionError(f"{place} cannot be written")
    except OSError as problem:
        without(problem)
        return None
    return path


def _make_private(place: Path) -> None:
    """The folder of this version, for its owner alone: what lies there is run.  PermissionError where others may
    write."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.mkdir(exist_ok=True, mode=0o700)
    found = place.stat()
    if hasattr(os, "getuid") and found.st_mode & 0o077:
        if found.st_uid != os.getuid():
            raise PermissionError(f"{place} belongs to somebody else and is open to others")
        place.chmod(0o700)


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except FileNotFoundError:
        return False


def _write(path: Path, content: bytes) -> None:
    """All of the file or nothing, whoever else writes it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def without(problem: Exception) -> None:
    """Say once that the disk is not used, and why."""
    if account.problem is None:
        account.problem = f"{type(problem).__name__}: {problem}"
        warnings.warn(f"gradsmith works without its cache: {problem}", RuntimeWarning, stacklevel=2)


def _import(path: Path, module_name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _in_memory(text: str, module_name: str) -> ModuleType:
    """Without the disk: the same functions, compiled anew in every process."""
    module = ModuleType(module_name)
    module.__file__ = f"<{module_name}>"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    code = compile(text.replace("cache=True, ", ""), module.__file__, "exec")
    sys.modules[module_name] = module
    exec(code, module.__dict__)  # the text is our own
    return module


def _ours() -> list[Path]:
    """The folders of generated modules, of this and older versions, and nothing else that may lie beside them."""
    return [p for p in folder().glob("v[0-9]*/??/*") if re.fullmatch("[0-9a-f]{32,64}", p.name) and p.is_dir()]


def size() -> tuple[int, int]:
    """Number of files and bytes in the cache folder."""
    files = [p for child in _ours() for p in child.rglob("*") if p.is_file()]
    return len(files), sum(p.stat().st_size for p in files)


def clear() -> int:
    """Remove what this and older versions stored; return the number of files."""
    count, _ = size()
    for child in _ours():
        shutil.rmtree(child, ignore_errors=True)
        for parent in (child.parent, child.parent.parent):
            with contextlib.suppress(OSError):          # not empty: something else lies there
                parent.rmdir()
    return count


def explain_cache() -> str:
    """An account of this process's cache: where it is, what was found, what was compiled and why."""
    return str(account)
