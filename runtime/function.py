"""What `jit`, `grad` and the other transforms return: a callable that specialises itself to its arguments.

A call goes to the fast path of the latest specialisation; if that does not serve (other types, sizes of 0 or 1,
changed static values), to any other that does; else a new one is made.  First calls may come from many threads.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

from numba.core.compiler_lock import global_compiler_lock

from . import cache
from .arguments import NOTHING_STATIC, Described, Static, describe
from .fast import fast_path
from .kernels.guard import Miss
from .overlap import Raised
from .specialise import Specialisation, specialise
from .target import HERE, Target
from .transpiler.errors import TranspileError, error
from .transpiler.frontend.batch_axes import tells_keywords
from .transpiler.frontend.trace import Trace

if TYPE_CHECKING:
    from .xla.specialise import DeviceSpecialisation

making = threading.RLock()      # held while anything is made; Numba compiles one at a time anyway
MAX_SPECIALISATIONS = 64        # of one function; the one that was not used for longest goes


def _before_fork() -> None:
    for lock in LOCKS:
        lock.acquire()


def _after_fork() -> None:
    for lock in reversed(LOCKS):
        lock.release()


# A child that is forked while another thread makes something must not find the locks taken for ever.
LOCKS: tuple[Any, ...] = (making, cache.lock, global_compiler_lock)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def is_itself_alone(fun: Callable[..., Any]) -> bool:
    """Whether no other object is equal to this one; equal callables may hold different numbers."""
    equality: Any = type(fun).__eq__
    return isinstance(fun, MethodType) or equality is object.__eq__


def _nothing_yet(*args: Any) -> Any:
    raise Miss


class Function:
    """A transformed function.  `fun` is the user's (or another Function), `kind` the transform's name.

    source: its text, where Python has not kept it.  static: what `jit` was told to know while compiling.  target: where
    it runs.
    Errors: TranspileError, with the user's line, for code that cannot be transpiled; what the user's code raises.
    """

    def __init__(self, kind: str, fun: Callable[..., Any], args: tuple[Any, ...] = (),
                 kwargs: dict[str, Any] | None = None, *, source: str | None = None,
                 static: Static = NOTHING_STATIC, target: Target = HERE) -> None:
        self.target = target
        self.__gradsmith_transformed__ = (kind, fun, args, dict(kwargs or {}))
        functools.update_wrapper(self, fun, updated=())
        self.source_text, self._static = source, static
        self.derive: Callable[[Trace, Described], Trace] | None = None     # makes another function of the traced one
        self._fast: Callable[..., Any] = _nothing_yet
        self._specialisations: list[Any] = []       # all are Specialisations, or all are DeviceSpecialisations
        self._takes_arrays = False          # an Array has come: the fast path is to take such, too

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = self._positional(args, kwargs)
        if not kwargs:
            try:
                return self._fast(*args)
            except (Miss, TypeError):       # TypeError: another number of arguments, or nothing that Numba knows
                pass
            except Raised as found:
                raise found.error from None
            except Exception as problem:    # whatever the user's program raises
                self._tell_lane(problem, args, kwargs)
                raise
        try:
            return self._slow(args, kwargs)
        except TranspileError:
            raise
        except Exception as problem:
            self._tell_lane(problem, args, kwargs)
            raise

    def _tell_lane(self, problem: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise what a loop over the lanes of a batch would raise in the place of `problem`, if that is another."""
        if self.has_batches:
            from .lanes import in_first_lane
            found = in_first_lane(self, problem, args, kwargs)
            if found is not None:
                raise found from None

    @property
    def has_batches(self) -> bool:
        """Whether something in it is computed for the lanes of a batch."""
        return any(spec.trace.has_batches for spec in self._specialisations)

    @property
    def writes(self) -> bool:
        """Whether it writes to arrays of its caller."""
        return any(spec.trace.written for spec in self._specialisations)

    @property
    def raises_in_order(self) -> bool:
        """Whether the lane that an exception tells is the first of a batch that raises one."""
        from .lanes import raises_in_order
        return all(raises_in_order(spec.trace) for spec in self._specialisations)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Keyword arguments that follow on the positional ones take their places; others stay."""
        if self._tells_keywords:
            return args, kwargs
        rest = dict(kwargs)
        more = []
        for name in self.parameters[len(args):]:
            if name not in rest:
                break
            more.append(rest.pop(name))
        return (*args, *more), rest

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A Function in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        kind, fun, *_ = self.__gradsmith_transformed__
        return f"<gradsmith.{kind} of {getattr(fun, '__qualname__', fun)!s}>"

    # --- the slow path -----------------------------------------------------------------------------------------

    def _slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        described = self.described(args, kwargs)
        for spec in list(self._specialisations):
            if spec.serves(described):
                try:
                    result = spec.call(described)
                except Miss:
                    continue
                self._prefer(spec, described.has_arrays)
                return result
        try:
            return self.specialisation(described).call(described)
        except Miss:
            raise error("E608", f"what {self.generated_name()} was compiled for these arguments does not accept them",
                        None, help="please report this with the function and the arguments") from None

    def described(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Described:
        """The arguments of a call, taken apart."""
        args, kwargs = self._positional(args, kwargs)
        return describe(args, kwargs, self.parameters, self._static, exact=self.target.is_xla)

    def specialisation(self, described: Described) -> Specialisation | DeviceSpecialisation:
        """The specialisation for such a call, made if need be."""
        with making:
            for spec in self._specialisations:
                if spec.serves(described) and spec.fits(described.values):
                    return spec
            spec = self._specialised(described)
            self._prefer(spec, described.has_arrays)
            return spec

    def _specialised(self, described: Described) -> Specialisation | DeviceSpecialisation:
        name, reason = self.generated_name(), self._reason(described)
        if not self.target.is_xla:
            return specialise(self, described, name=name, reason=reason, source=self.source_text, derive=self.derive)
        from .xla.specialise import specialise_for
        return specialise_for(self, described, target=self.target, name=name, reason=reason, source=self.source_text,
                              derive=self.derive)

    def _prefer(self, spec: Specialisation | DeviceSpecialisation, has_arrays: bool) -> None:
        """Try this one first from now on."""
        with making:
            others = [known for known in self._specialisations if known is not spec]
            self._specialisations = [spec, *others[:MAX_SPECIALISATIONS - 1]]
            self._takes_arrays = self._takes_arrays or has_arrays
            if isinstance(spec, Specialisation):
                path = fast_path(spec, self._takes_arrays)
            else:
                from .xla.quick import quick_path
                path = quick_path(spec)
            if path is not None:
                self._fast = path

    def _reason(self, described: Described) -> str:
        if not self._specialisations:
            return "first call"
        if self.target.is_xla:
            return "new shapes, types or static values"
        if all(spec.described.key != described.key for spec in self._specialisations):
            return "new argument types or sizes of 0 or 1"
        return "static values or size relations changed"

    def generated_name(self) -> str:
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
    def for_numba(self) -> Any:
        """What Numba takes this for in people's own compiled code."""
        from .from_numba import ForNumba
        return ForNumba(self)

    @functools.cached_property
    def _tells_keywords(self) -> bool:
        """Whether an argument given by its name is another than the same by its position."""
        return tells_keywords(self)

    @functools.cached_property
    def parameters(self) -> list[str]:
        """The names that positional arguments have."""
        try:
            parameters = inspect.signature(self).parameters.values()
        except (TypeError, ValueError):
            return []
        return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    # --- for people ----------------------------------------------------------------------------------------------

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The generated source, or StableHLO text, that serves these arguments, which are described as in a call but
        not used (see `lower`)."""
        return self.lower(*args, **kwargs).source

    def lower(self, *args: Any, **kwargs: Any) -> Specialisation | DeviceSpecialisation:
        """What these arguments are served by: its `trace` and `func` (the IR before and after lowering), its `source`
        and the `seconds` that each stage took.  For XLA's devices they may be types, such as "f32[128,784]"."""
        if self.target.is_xla:
            from .to_stablehlo import described, has_types
            if has_types((args, kwargs)):
                given, named = self._positional(args, kwargs)
                found = described(given, named, self.parameters, self._static)
                return self._specialised(Described(found.args, found.kwargs, found.leaves, found.values, None))
        return self.specialisation(self.described(args, kwargs))

    def stages(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """What each stage of making the specialisation for these arguments took, in seconds: "trace", "pipeline",
        "emit", "compile"."""
        return dict(self.lower(*args, **kwargs).seconds)
