"""A func compiled by XLA for one device, and how it is run.

    func ─► StableHLO text ─► executable ─► buffers in, buffers out, before they are computed

Params that the func writes to give their memory to the results that hold what they are afterwards.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from ..device_array import DeviceArray, Outcome
from ..half_precision import rounded_results, stored_params
from ..log import logger
from ..raising import users_exception
from ..target import Target, dtype_named
from ..transpiler import pipeline
from ..transpiler.emit.hlo_blocks import Failure
from ..transpiler.emit.hlo_cast import half_of, in_single_precision
from ..transpiler.emit.stablehlo import Emitted, Marks, emit_module
from ..transpiler.errors import RuleError, error, placed
from ..transpiler.frontend.texts import Raised
from ..transpiler.frontend.values import Leaf
from ..transpiler.ir.library import Program, main_of
from ..transpiler.ir.nodes import Const, Func, Let
from ..transpiler.ir.walk import all_statements
from ..transpiler.raise_loops.findings import Finding
from .bindings import XlaError, bindings
from .compiler import Build, compiled
from .transfer import place_of, upload

WIDE_FLOATS = frozenset({"float64", "complex128"})


class Place(Protocol):
    """Where a program runs: on one device, or divided among those of a mesh."""

    build: Build
    is_spread: bool         # over several devices

    def devices(self) -> Sequence[Any]:
        """jax's, one for each partition."""

    def marks(self, func: Func, checked: bool) -> Marks:
        """What the module says of it."""

    def aliased(self, func: Func) -> Mapping[int, int]:
        """Params whose memory results may take."""

    def put(self, k: int, value: Any, dtype: np.dtype[Any], own: bool, shared: bool) -> Any:
        """The buffer of the k-th argument; `own`: which nobody else holds, `shared`: whether somebody may hold it."""

    def execute(self, executable: Any, buffers: Sequence[Any]) -> list[Any]:
        """Buffers of the results."""


class OneDevice:
    """A place that is one device."""

    build = Build(stored=True)
    is_spread = False

    def __init__(self, target: Target) -> None:
        self.target, self.device = target, target.device

    @cached_property
    def place(self) -> Any:
        """jax's device, which need not be there to write modules for it."""
        return place_of(self.device)

    def devices(self) -> Sequence[Any]:
        return (self.place,)

    def marks(self, func: Func, checked: bool) -> Marks:
        return Marks()

    def aliased(self, func: Func) -> Mapping[int, int]:
        returned = len(func.returned)
        return {func.params.index(p): returned + k for k, p in enumerate(func.effects)}

    def put(self, k: int, value: Any, dtype: np.dtype[Any], own: bool, shared: bool) -> Any:
        if type(value) is not DeviceArray:
            return upload(np.asarray(value, dtype), self.place)
        if not value.is_on(self.device) or value.dtype != dtype:
            return upload(np.asarray(value, dtype), self.place)
        buffer = value.buffer(lambda x: upload(x, self.place))
        return upload(buffer, self.place) if own and shared else buffer

    def execute(self, executable: Any, buffers: Sequence[Any]) -> list[Any]:
        return executable.execute(buffers)  # type: ignore[no-any-return]


class DeviceProgram:
    """func: all of its sizes are numbers.  raises: what the program raises, by the text that a check gives for it.

    findings: what became of its loops so far.  leaves: the arguments among its params, which may come in half
    precision.  half: what float32 results are rounded to.  weak: which params are numbers of Python's.

    text: the module.  failures: what its error flag says.  loops: what became of its loops; those that a TPU runs
    element by element are warned of.  seconds: what each stage took.
    TranspileError: an operation that StableHLO lacks, with the user's line; float64 on a machine without.
    """

    def __init__(self, func: Program, target: Target, *, name: str, reason: str,
                 raises: Mapping[str, Raised] | None = None, place: Place | None = None,
                 findings: Sequence[Finding] = (), leaves: Sequence[Leaf] = (), half: str | None = None,
                 weak: Sequence[bool] = ()) -> None:
        self.target, self.name, self.reason, self.raises = target, name, reason, dict(raises or {})
        self.seconds: dict[str, float] = {}
        self.place = place or OneDevice(target)
        start = perf_counter()
        if target.cast is not None:
            func = in_single_precision(func)
        findings = list(findings)
        try:
            self.whole = pipeline.run(func, stages=pipeline.stablehlo_stages(findings, max_trips=target.max_trips))
        except RuleError as problem:
            raise problem.at(None) from None
        self.func = main_of(self.whole)
        self.seconds["pipeline"] = perf_counter() - start
        self.loops = tuple(dict.fromkeys(findings))
        if target.device.platform == "tpu":
            for finding in filter(lambda f: f.is_slow, self.loops):
                logger.warning("%s", finding)
        start = perf_counter()
        self.written = tuple(self.func.params.index(p) for p in self.func.effects)
        _require_floats(self.func, target, weak)
        self._stored, self._rounded = stored_params(self.func, leaves), rounded_results(self.func, half, leaves)
        self.dtypes = tuple(dtype_named(self._stored[p]) if p in self._stored else target.dtype(p.type)
                            for p in self.func.params)
        emitted = self._emitted(target.checked)
        if target.checked and not emitted.failures:
            emitted = self._emitted(False)
        self.text, self.failures = emitted.text, emitted.failures
        self.seconds["emit"] = perf_counter() - start

    def _emitted(self, checked: bool) -> Emitted:
        try:
            return emit_module(self.whole, checked=checked, aliased=self.place.aliased(self.func),
                               marks=self.place.marks(self.func, checked), max_trips=self.target.max_trips,
                               half=half_of(self.target.cast), stored=self._stored, rounded=self._rounded)
        except RuleError as problem:
            raise problem.at(None) from None

    @cached_property
    def executable(self) -> Any:
        """XlaError: the compiler refuses the module."""
        start = perf_counter()
        found = compiled(self.text, self.place.devices(), self.place.build)
        self.seconds["compile"] = perf_counter() - start
        logger.info("compiled %s(%s) for %s in %.0f ms: %s", self.name,
                    ", ".join(f"{p.name}: {p.type}" for p in self.func.params), self.target.device,
                    1000 * sum(self.seconds.values()), self.reason)
        return found

    def called(self, flat: Sequence[Any], copied: Collection[int] = ()) -> tuple[list[Any], tuple[Outcome, ...]]:
        """(buffers of the results, what may still turn out to have failed), for arrays, numbers and DeviceArrays.

        copied: arguments of which the program gets a copy.  A program that writes to arguments and may fail is waited
        for.
        """
        outcomes = {o: None for v in flat if isinstance(v, DeviceArray) for o in v.unsettled()}
        at_once = bool(self.written and self.failures)
        buffers = []
        for k, (value, dtype) in enumerate(zip(flat, self.dtypes, strict=True)):
            must_copy = k in copied or (k in self.written and at_once)
            shared = must_copy or (isinstance(value, DeviceArray) and value.is_shared)
            buffers.append(self.place.put(k, value, dtype, must_copy or k in self.written, shared))
        results, outcome = self.run(buffers)
        if outcome is not None:
            outcomes[outcome] = None
        if at_once:
            for known in outcomes:
                known.require()
        return results, () if at_once else tuple(outcomes)

    def run(self, buffers: Sequence[Any]) -> tuple[list[Any], Outcome | None]:
        """(results, what became of it); none where nothing can fail.  Buffers of params that the func writes to are
        given away."""
        try:
            results = self.place.execute(self.executable, buffers)
        except bindings().refusals as refused:
            raise XlaError(str(refused)) from None
        if not self.failures:
            return results, None
        flag = results.pop()
        return results, Outcome(flag, _explainer(self.failures, self.raises))


def _require_floats(func: Func, target: Target, weak: Sequence[bool]) -> None:
    """TranspileError (E207): a TPU is to compute in float64 what does not follow from numbers of Python's alone."""
    if target.device.platform != "tpu" or target.cast is not None:
        return
    numbers: set[Any] = {p for p, is_weak in zip(func.params, weak) if is_weak and not p.type.shape}
    params = (p for p in func.params if p not in numbers and p.type.dtype in WIDE_FLOATS)
    found: tuple[str, str, Any] | None = next(((p.type.dtype, f"{p.name} is {p.type}", None) for p in params), None)
    if found is None:
        statements = list(all_statements(func.body))
        for stmt in statements:
            if isinstance(stmt, Let) and all(isinstance(a, Const) or a in numbers for a in stmt.args):
                numbers.update(t for t in stmt.targets if not t.type.shape)
        made = [(t, s.loc) for s in statements for t in s.targets if t.type.dtype in WIDE_FLOATS and t not in numbers]
        made.sort(key=lambda one: one[1] is None)
        found = next(((t.type.dtype, f"a value here is {t.type}", loc) for t, loc in made), None)
    if found is not None:
        raise error("E207", f"a TPU has no {found[0]}, and {found[1]}", found[2], kind=NotImplementedError,
                    help='let all floats become float32: jit(f, target="tpu", cast="f32")')


def _explainer(failures: Sequence[Failure], raises: Mapping[str, Raised]) -> Callable[[Any], BaseException | None]:
    """From a flag to the exception that the program raises."""

    def explain(flag: Any) -> BaseException | None:
        code = int(flag)
        return exception_of(failures[code - 1], raises) if code else None

    return explain


def exception_of(failure: Failure, raises: Mapping[str, Raised]) -> BaseException:
    """The exception of a failed check.  Values that its text would hold are not brought back: "..." is in their
    places."""
    kind = getattr(builtins, failure.kind, None) or getattr(np.linalg, failure.kind)
    plain: BaseException = kind(placed(failure.message, failure.loc))
    wanted = users_exception(plain, raises) if isinstance(plain, Exception) else None
    return plain if wanted is None else wanted
