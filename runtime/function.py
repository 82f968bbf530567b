"""What `jit`, `grad` and the other transforms return: a callable that specialises itself to its arguments.

A call goes to the fast path of the latest specialisation; if that does not serve (other types, sizes of 0 or 1,
changed static values), to any other that does; else a new one is made.  First calls may come from many threads.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from .arguments import Described, describe
from .fast import fast_path
from .kernels.guard import Miss
from .specialise import Specialisation, specialise


def _nothing_yet(*args: Any) -> Any:
    raise Miss


class Function:
    """A transformed function.  `fun` is the user's (or another Function), `kind` the transform's name.

    Errors: TranspileError, with the user's line, for code that cannot be transpiled; what the user's code raises.
    """

    def __init__(self, kind: str, fun: Callable[..., Any], args: tuple[Any, ...] = (),
                 kwargs: dict[str, Any] | None = None, *, source: str | None = None) -> None:
        self.__gradsmith_transformed__ = (kind, fun, args, dict(kwargs or {}))
        functools.update_wrapper(self, fun, updated=())
        self._source = source
        self._fast: Callable[..., Any] = _nothing_yet
        self._specialisations: list[Specialisation] = []
        self._paths: list[Callable[..., Any]] = []
        self._lock = threading.RLock()
        self._takes_arrays = False          # an Array has come: the fast path is to take such, too

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return self._slow(args, kwargs)
        try:
            return self._fast(*args)
        except (Miss, TypeError):
            pass
        return self._slow(args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A Function in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        kind, fun, *_ = self.__gradsmith_transformed__
        return f"<gradsmith.{kind} of {getattr(fun, '__qualname__', fun)!s}>"

    # --- the slow path -----------------------------------------------------------------------------------------

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        described = describe(args, kwargs, self._signature())
        for spec in list(self._specialisations):
            if spec.serves(described):
                try:
                    result = spec.call(described)
                except Miss:
                    continue
                self._prefer(spec, described.has_arrays)
                return result
        spec = self.specialisation(described)
        return spec.call(described)

    def specialisation(self, described: Described) -> Specialisation:
        """The specialisation for such a call, made if need be."""
        with self._lock:
            for spec in self._specialisations:
                if spec.serves(described) and spec.fits(described.values):
                    return spec
            spec = specialise(self, described, name=self._name(), reason=self._reason(described), source=self._source)
            self._specialisations.insert(0, spec)
            self._prefer(spec, described.has_arrays)
            return spec

    def _prefer(self, spec: Specialisation, has_arrays: bool) -> None:
        self._takes_arrays = self._takes_arrays or has_arrays
        path = fast_path(spec, self._takes_arrays)
        if path is not None:
            self._fast = path

    def _reason(self, described: Described) -> str:
        if not self._specialisations:
            return "first call"
        if all(spec.key != described.key for spec in self._specialisations):
            return "new argument types or sizes of 0 or 1"
        return "static values or size relations changed"

    def _name(self) -> str:
        kinds = []
        fun: Any = self
        while hasattr(fun, "__gradsmith_transformed__"):
            kind, fun, *_ = fun.__gradsmith_transformed__
            if kind != "jit":
                kinds.append(kind)
        stem = getattr(fun, "__name__", type(fun).__name__)
        stem = stem if stem.isidentifier() else "lambda_"
        return "_".join([stem, *reversed(kinds)])

    @functools.cached_property
    def _own_signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.__wrapped__)
        except (TypeError, ValueError, AttributeError):
            return None

    def _signature(self) -> inspect.Signature | None:
        return self._own_signature

    # --- for people ----------------------------------------------------------------------------------------------

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The generated source that serves these arguments."""
        return self.specialisation(describe(args, kwargs, self._signature())).source

    def stages(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """What each stage of making the specialisation for these arguments took, in seconds."""
        return dict(self.specialisation(describe(args, kwargs, self._signature())).seconds)
