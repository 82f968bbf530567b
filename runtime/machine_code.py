"""Numba's files of machine code beside generated modules, read and written without faith in the disk.

Numba takes its cache files as they are: a truncated index ends in an exception, a damaged object file in a crash.
Here every data file begins with a checksum, and whatever cannot be read counts as absent and is written anew.
"""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from .cache import account, without
from .codegen.library import is_direct, register_symbols
from .registries import load_registries

DIGEST = hashlib.sha256().digest_size


class CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and data files; a data file is a digest and what it is the digest of."""

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except Exception:  # damaged pickles raise exceptions of any kind
            return {}

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(content).digest() + content)

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        with open(path, "rb") as file:
            digest, content = file.read(DIGEST), file.read()
        if hashlib.sha256(content).digest() != digest:
            raise OSError(f"{path} is damaged")          # Numba takes it for a file that was removed
        return pickle.loads(content)


class MachineCode(FunctionCache):  # type: ignore[misc]
    """The machine code of one generated function."""

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self._cache_file = CheckedFiles(cache_path=self._cache_path, filename_base=self._impl.filename_base,
                                        source_stamp=self._impl.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except OSError as problem:
            without(problem)
            return None
        account.loaded += found is not None
        return found

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """Numba's registries, which it takes long to read, are read only for code that Numba has made."""
        if not self._enabled:
            return None
        data = self._cache_file.load(self._index_key(sig, target_context.codegen()))
        if data is None:
            return None
        if not is_direct(data[1]):
            load_registries()
            target_context.refresh()
        register_symbols()
        return self._impl.rebuild(target_context, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        account.compiled += 1
        try:
            super().save_overload(sig, data)
        except OSError as problem:
            without(problem)
