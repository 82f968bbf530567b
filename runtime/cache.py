"""Generated modules on disk: written once under a name that follows from their text, read by any later process.

    <folder>/<version>/<key[:2]>/<key>/loss_grad.py       generated source
    <folder>/<version>/<key[:2]>/<key>/__pycache__/       Numba's machine code, beside it

The key is a hash of the text and of the versions of everything that has a say in its machine code.  The text follows
from the user's sources, the transforms, the signature and the static values, so a stale module can never be found.
`GRADSMITH_CACHE_DIR` chooses the folder.  Only its owner may read it.  A folder that cannot be written is done
without, with one warning.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
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
    """What the cache did in this process."""

    hits: int = 0
    misses: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    problem: str | None = None          # why the disk is not used

    def __str__(self) -> str:
        lines = [f"folder: {folder()}", f"generated modules found: {self.hits}, written: {self.misses}"]
        lines += [f"  {count} x {reason}" for reason, count in self.reasons.most_common()]
        if self.problem:
            lines.append(f"disk not used: {self.problem}")
        return "\n".join(lines)


account = Account()
_lock = threading.Lock()


def folder() -> Path:
    """Where generated modules are kept."""
    chosen = os.environ.get("GRADSMITH_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("gradsmith", appauthor=False))


def versions() -> str:
    """Everything besides its text that decides what a generated module compiles to."""
    from . import __version__
    return "\n".join([str(FORMAT), __version__, numba.__version__, llvmlite.__version__, np.__version__,
                      platform.python_version(), platform.machine(), sys.platform])


def key_of(text: str) -> str:
    return hashlib.sha256(f"{versions()}\n{text}".encode()).hexdigest()[:32]


def load(text: str, name: str, reason: str) -> ModuleType:
    """The module whose source is `text`, through the disk where that works; `name` is the file's stem."""
    key = key_of(text)
    module_name = f"gradsmith_generated.{key}.{name}"
    with _lock:
        known = sys.modules.get(module_name)
        if known is not None:
            return known
        path = _stored(text, name, key, reason)
        if path is None:
            return _in_memory(text, name, module_name)
        return _import(path, module_name)


def _stored(text: str, name: str, key: str, reason: str) -> Path | None:
    """The file that holds the text, written if need be; None where the disk cannot be used."""
    place = folder() / f"v{FORMAT}" / key[:2] / key
    path = place / f"{name}.py"
    try:
        if path.is_file() and path.read_text() == text:
            account.hits += 1
            return path if _can_write(place) else None
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chmod(folder(), 0o700)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".", suffix=".py")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    except (OSError, UnicodeDecodeError) as error:
        _without(error)
        return None
    account.misses += 1
    account.reasons[reason] += 1
    return path


def _can_write(place: Path) -> bool:
    """Numba writes its index beside the module even when it finds it there already."""
    if os.access(place, os.W_OK):
        return True
    _without(PermissionError(f"{place} cannot be written"))
    return False


def _without(error: Exception) -> None:
    if account.problem is None:
        account.problem = f"{type(error).__name__}: {error}"
        warnings.warn(f"gradsmith works without its cache: {error}", RuntimeWarning, stacklevel=2)


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


def _in_memory(text: str, name: str, module_name: str) -> ModuleType:
    """Without the disk: the same functions, compiled anew in every process."""
    module = ModuleType(module_name)
    module.__file__ = f"<gradsmith {name}>"
    import linecache
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    code = compile(text.replace("cache=True, ", ""), module.__file__, "exec")
    exec(code, module.__dict__)  # the text is our own
    sys.modules[module_name] = module
    return module


def size() -> tuple[int, int]:
    """Number of files and bytes in the cache folder."""
    files = [p for p in folder().rglob("*") if p.is_file()] if folder().is_dir() else []
    return len(files), sum(p.stat().st_size for p in files)


def clear() -> int:
    """Remove what this and older versions stored; return the number of files."""
    count, _ = size()
    for child in folder().glob("v*"):
        shutil.rmtree(child, ignore_errors=True)
    return count


def explain_cache() -> str:
    """An account of this process's cache: where it is, what was found, what was compiled and why."""
    return str(account)
