"""What must hold of every program: its value is Python's, its derivatives are those of the complex step, forward and
reverse mode agree at first and second order, `vmap` is a loop, and the emitted text means the same.

Everything is compared through the IR's evaluator, or the emitted text run as plain Python; `compiled` goes through
Numba, as users do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradsmith.transpiler import pipeline
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.frontend.trace import Trace, trace
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.marking import marking
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap

from .oracle import Oracle, Slopes, flat, nudged
from .writer import TRIPS, Program

LARGE, STEEP = 1e4, 1e6         # beyond these rounding decides; the program is left out
MARGIN = 1e-9                   # comparisons as close as this may come out otherwise after rounding
SECOND_STEP = 1e-5              # of central differences of the complex step
LANES = 3


class Disagreement(AssertionError):
    """gradsmith is wrong about a program."""


class Unsuitable(Exception):
    """A program that tests nothing: it overflows, or sits at a kink."""


@dataclass
class Outcome:
    """How far a program was compared.  refused: the code of the TranspileError; raised: by Python, at some trip count;
    points: trip counts at which derivatives were compared."""

    refused: str = ""
    message: str = ""
    raised: int = 0
    points: int = 0
    done: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Traced:
    """The program as a func at one set of arguments, and which of its params are differentiated."""

    trace: Trace
    fixed: dict[int, Any]       # arguments that were made static, by position
    kept: list[int]             # positions of the arguments that are params

    @property
    def func(self) -> Func:
        return self.trace.func

    def serves(self, args: Sequence[Any]) -> bool:
        """Whether the func is right for these arguments: what was taken for granted holds."""
        if not all(args[k] == value for k, value in self.fixed.items()):
            return False
        sizes = {}
        for param, value in zip(self.func.params, self.values(args), strict=True):
            if not param.type.shape and param.type.kind == "i":
                sizes[param.name] = int(value)
            sizes.update({str(d): size for d, size in zip(param.type.shape, np.shape(value), strict=True)})
        return all(guard.holds(sizes) for guard in self.trace.shape_guards)

    def values(self, args: Sequence[Any]) -> list[Any]:
        """The func's arguments: the program's, then captures."""
        return [a for k, a in enumerate(args) if k not in self.fixed] + [c.get() for c in self.trace.captures]

    def moving(self, tangents: Sequence[Any]) -> tuple[list[bool], list[Any]]:
        """Which params move, and along which tangents."""
        mine = [t for k, t in enumerate(tangents) if k not in self.fixed] + [None] * len(self.trace.captures)
        return [t is not None for t in mine], [t for t in mine if t is not None]


def leaf(value: Any, name: str, fixed: bool) -> Leaf:
    """An argument as the runtime describes it."""
    if isinstance(value, np.ndarray):
        shape = tuple(size if fixed else symbol(f"{name}_n{axis}") for axis, size in enumerate(value.shape))
        return Leaf(Type(value.dtype.name, shape), example=value)
    return Leaf(Type(np.asarray(value).dtype.name), weak=True, example=value)


def traced(program: Program, oracle: Oracle, args: Sequence[Any], effects: bool) -> Traced:
    leaves = [leaf(a, name, program.fixed) for a, name in zip(args, "xAcnq", strict=True)]
    found = trace(oracle.function, tuple(leaves), keeps_effects=effects)
    verify(found.func)
    place = {id(one): k for k, one in enumerate(leaves)}
    fixed = {place[id(one)]: value for one, value in found.static_args}
    return Traced(found, fixed, [k for k in range(len(args)) if k not in fixed])


def close(expected: Sequence[Any], actual: Sequence[Any], what: str, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    if len(expected) != len(actual):
        raise Disagreement(f"{what}: {len(actual)} results for {len(expected)}")
    for e, a in zip(expected, actual, strict=True):
        if np.shape(e) != np.shape(a):
            raise Disagreement(f"{what}: shape {np.shape(a)} for {np.shape(e)}")
        scale = atol * max(1.0, float(np.max(np.abs(e), initial=0.0)))
        if not np.allclose(a, e, rtol=rtol, atol=scale, equal_nan=True):
            raise Disagreement(f"{what}:\n  {a}\ninstead of\n  {e}")


def rounding_decides(oracle: Oracle, args: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether Python's own value is another one where numbers differ in their last bits."""
    other = oracle.rounded_otherwise(args)
    try:
        close(expected, [] if other is None else other, "nudged", 1e-10, 1e-10)
    except Disagreement:
        return True
    return False


def rounding_turns(oracle: Oracle, args: Sequence[Any], tangents: Sequence[Any], expected: Slopes) -> bool:
    """Whether the complex step itself gives other slopes where arguments differ in their last bits."""
    try:
        close(expected.tangents, oracle.along([nudged(a) for a in copy.deepcopy(args)], tangents).tangents, "nudged", 1e-10, 1e-10)
    except Disagreement:
        return True
    return False


def dot(a: Sequence[Any], b: Sequence[Any]) -> float:
    return float(sum(np.sum(np.multiply(x, y)) for x, y in zip(a, b, strict=True)))


def plain_python(func: Func, parallel: bool = False) -> Callable[..., tuple[Any, ...]]:
    """The emitted text, run without Numba.  Arguments must not change.  parallel: the parallel version, with the trips
    of its parallel loops from the last to the first."""
    scope: dict[str, Any] = {"prange": lambda *bounds: reversed(range(*bounds))}
    stages = pipeline.PARALLEL_STAGES if parallel else pipeline.STAGES
    text = emit(pipeline.run(func, stages=stages), name="emitted", decorator=False, comments=False, parallel=parallel)
    exec(compile(text, "<emitted>", "exec"), scope)

    def run(*args: Any) -> tuple[Any, ...]:
        before = copy.deepcopy(args)
        with np.errstate(all="ignore"):
            found = scope["emitted"](*args)
        close(before, args, "arguments of the emitted text", 0.0, 0.0)
        return found if len(func.results) != 1 else (found,)

    return run


class Check:
    """The comparisons of one program.  derived: its derivatives, made when first needed."""

    def __init__(self, program: Program, name: str = "<program>") -> None:
        self.program, self.outcome = program, Outcome()
        self.oracle = Oracle(program.source, name)
        self.rng = np.random.default_rng(program.seed)
        self._traced: dict[bool, list[Traced]] = {True: [], False: []}
        self._derived: dict[tuple[int, str], Func] = {}

    def at(self, args: Sequence[Any], effects: bool = False) -> Traced:
        """The trace that serves these arguments; with the effects on them, as `jit` has it, or without."""
        for one in self._traced[effects]:
            if one.serves(args):
                return one
        self._traced[effects].append(traced(self.program, self.oracle, args, effects))
        return self._traced[effects][-1]

    def derivative(self, one: Traced, kind: str) -> Func:
        """"j" is jvp, "v" vjp, "jv" jvp of vjp; with respect to the float arguments of the program alone."""
        key = id(one), kind
        if key not in self._derived:
            func = one.func if len(kind) == 1 else self.derivative(one, kind[1:])
            wrt, _ = one.moving(self.program.tangents())
            wrt = wrt + [False] * (len(func.params) - len(wrt))
            made = jvp(func, wrt) if kind[0] == "j" else vjp(func, wrt)
            verify(made)
            self._derived[key] = made
        return self._derived[key]

    # --- values ----------------------------------------------------------------------------------------------------

    def value(self, args: Sequence[Any]) -> list[Any] | None:
        """Python's value, which is also the traced function's; None where both raise the same exception."""
        expected, raised = self.oracle.value(args)
        if expected is not None and not all(np.all(np.abs(e) < LARGE) for e in expected):
            raise Unsuitable("large values")
        try:
            one = self.at(args)
        except TranspileError as problem:
            if raised is not None and isinstance(problem, type(raised)) and problem.code not in ("E121", "E122"):
                self.outcome.raised += 1
                return None
            raise
        try:
            actual = evaluate(one.func, *one.values(args))
        except Exception as problem:
            if raised is None or not isinstance(problem, type(raised)):
                raise Disagreement(f"{problem!r}, Python gives {expected if raised is None else repr(raised)}") from problem
            self.outcome.raised += 1
            return None
        if raised is not None:
            raise Disagreement(f"{actual}, Python raises {raised!r}")
        assert expected is not None
        try:
            close(expected, self.rebuilt(one, actual), "value")
        except Disagreement:
            if rounding_decides(self.oracle, args, expected):
                raise Unsuitable("rounding decides") from None
            raise
        if self.program.writes:
            self.effects(args)
        return expected

    def effects(self, args: Sequence[Any]) -> None:
        """What is in the arguments afterwards."""
        wanted = copy.deepcopy(args)
        self.oracle.function(*wanted)
        one = self.at(args, effects=True)
        actual = evaluate(one.func, *one.values(args))
        found = list(args)
        first = len(one.func.returned)
        for k, place in enumerate(one.trace.written):
            found[one.kept[place]] = actual[first + k]
        close(wanted, found, "effects on the arguments")
        self.outcome.done.add("effects")

    def rebuilt(self, one: Traced, results: Sequence[Any]) -> list[Any]:
        from gradsmith.transpiler.frontend.trees import rebuild
        return flat(rebuild(one.trace.out_tree, list(results)))

    # --- derivatives -----------------------------------------------------------------------------------------------

    def slopes(self, args: Sequence[Any], tangents: Sequence[Any], values: Sequence[Any]) -> Slopes:
        found = self.oracle.along(args, tangents)
        if found.margin < MARGIN:
            raise Unsuitable("a kink")
        if not all(np.all(np.abs(t) < STEEP) for t in found.tangents):
            raise Unsuitable("large derivatives")
        try:
            close(values, found.values, "the program on complex numbers, which is a fault of the test")
        except Disagreement:
            if rounding_decides(self.oracle, args, values):
                raise Unsuitable("rounding decides") from None
            raise
        return found

    def cotangents(self, results: Sequence[Any]) -> list[Any]:
        return [self.rng.normal(size=np.shape(r)) if np.ndim(r) else np.float64(self.rng.normal()) for r in results]

    def first_order(self, args: Sequence[Any], values: Sequence[Any], run: Callable[..., Any] = evaluate) -> None:
        """Forward mode is the complex step; reverse mode is forward mode transposed."""
        one, tangents = self.at(args), self.program.tangents()
        expected = self.slopes(args, tangents, values)
        inner, (_, along) = one.values(args), one.moving(tangents)
        count = len(one.func.results)
        inexact = [k for k, r in enumerate(one.func.results) if r.type.is_inexact]
        forward = run(self.derivative(one, "j"), *inner, *along)
        found = self.slots(one, forward[:count], forward[count:])
        try:
            close(expected.tangents, found, "forward mode", 1e-8, 1e-8)
        except Disagreement:
            if rounding_turns(self.oracle, args, tangents, expected):
                raise Unsuitable("rounding decides") from None
            raise
        moved = [forward[count + k] for k in range(len(inexact))]
        cts = self.cotangents(moved)
        backward = run(self.derivative(one, "v"), *inner, *cts)
        close(values, self.rebuilt(one, backward[:count]), "value in reverse mode")
        left, right = dot(cts, moved), dot(backward[count:], along)
        if not np.isclose(left, right, rtol=1e-8, atol=1e-8 * (1 + _size(cts, moved) + _size(backward[count:], along))):
            raise Disagreement(f"reverse mode gives {right}, forward mode {left}")
        self.outcome.points += 1

    def slots(self, one: Traced, results: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Tangents in the places of the program's results: those of ints are zero."""
        rest = list(tangents)
        flat_tangents = [rest.pop(0) if r.type.is_inexact else np.zeros(np.shape(v))[()]
                         for r, v in zip(one.func.results, results, strict=True)]
        marked, places = self.rebuilt(one, flat_tangents), self.places(one)
        return [np.zeros(np.shape(t))[()] if p is None else t for t, p in zip(marked, places, strict=True)]

    def places(self, one: Traced) -> list[int | None]:
        """Which of the func's results each of the program's is; None for constants."""
        count = len(one.func.results)
        these, those = (self.rebuilt(one, [float(start + k) for k in range(count)]) for start in (1000, 2000))
        return [None if a == b else int(a) - 1000 for a, b in zip(these, those, strict=True)]

    def second_order(self, args: Sequence[Any], kind: str, run: Callable[..., Any] = evaluate) -> None:
        """A second derivative by two transforms is the difference of the complex step's."""
        one, u, w = self.at(args), self.program.tangents(), self.program.tangents(1)
        if not all(r.type.is_inexact for r in one.func.results):
            return
        inner, (_, along), (_, across) = one.values(args), one.moving(u), one.moving(w)
        cts = self.cotangents(evaluate(one.func, *inner))
        expected = self.difference(one, args, cts, SECOND_STEP)
        wider = self.difference(one, args, cts, 2 * SECOND_STEP)
        if not np.isclose(expected, wider, rtol=1e-6, atol=1e-7):
            raise Unsuitable("steep second derivatives")
        made = run(self.derivative(one, kind), *inner, *self.second_arguments(kind, along, across, cts))
        if kind == "jv":                # (values, bars, tangents of values, tangents of bars)
            actual = dot(made[-len(along):], along)
        elif kind == "vv":              # (values, bars, bars of params)
            actual = dot(made[-len(across):], across)
        else:                           # "vj": (values, tangents, bars of params)
            actual = dot(made[-len(across):], across)
        size = _size(made[-len(along):], along)
        if not np.isclose(expected, actual, rtol=1e-5, atol=1e-6 * (1.0 + size)):
            raise Disagreement(f"second order ({kind}) gives {actual}, differences {expected}")
        self.outcome.done.add(kind)

    def difference(self, one: Traced, args: Sequence[Any], cts: list[Any], step: float) -> float:
        """The second derivative, by a central difference of the complex step."""
        u, w = self.program.tangents(), self.program.tangents(1)
        ahead, behind, here = (self.oracle.along([_plus(a, by, t) for a, t in zip(args, w, strict=True)], u)
                               for by in (step, -step, 0.0))
        if not here.decisions == ahead.decisions == behind.decisions:
            raise Unsuitable("a kink nearby")
        left, right = (dot(cts, self.restored(one, s.tangents)) for s in (ahead, behind))
        return (left - right) / (2 * step)

    def second_arguments(self, kind: str, along: list[Any], across: list[Any], cts: list[Any]) -> list[Any]:
        """What the twice derived func takes after the program's arguments."""
        zeros = [0.0 * c for c in cts]
        if kind == "jv":
            return [*cts, *across]
        if kind == "vv":
            return [*cts, *zeros, *along]
        return [*along, *zeros, *cts]

    def restored(self, one: Traced, tangents: Sequence[Any]) -> list[Any]:
        """The func's results out of the program's: one result may stand in several places."""
        found: dict[int, Any] = {}
        for p, t in zip(self.places(one), tangents, strict=True):
            if p is not None:
                found[p] = found.get(p, 0.0) + t
        return [found[k] for k in range(len(one.func.results))]

    def dependences(self, args: Sequence[Any], kind: str, run: Callable[..., Any] = evaluate) -> None:
        """Marks tell all that a result (of the reverse mode, if kind is "v") depends on: what moves it has its bit."""
        one = self.at(args)
        func = self.derivative(one, kind) if kind else one.func
        flags, along = one.moving(self.program.tangents())
        flags = flags + [False] * (len(func.params) - len(flags))
        inner = one.values(args)
        inner = [*inner, *(self.cotangents(evaluate(one.func, *inner)[:len(func.params) - len(inner)]) if kind else [])]
        ends = np.cumsum([0, *map(np.size, along)])
        numbers = [np.arange(a, b).reshape(np.shape(t)) for a, b, t in zip(ends, ends[1:], along)]
        marked = marking(func, flags)
        verify(marked)
        marks = run(marked, *inner, *[(1 << n % 64)[()] for n in numbers])
        count = len(func.results)
        for k in range(ends[-1]):
            units = [(n == k).astype(float)[()] for n in numbers]
            moved = evaluate(self.derivative(one, "j" + kind), *inner, *units)[count:]
            for mark, slope in zip(marks, moved, strict=True):
                if np.any((slope != 0) & (mark >> k % 64 & 1 == 0)):
                    raise Disagreement(f"input {k} moves a result by {slope}, which is marked {mark}")
        self.outcome.done.add("marks")

    # --- batches and text ------------------------------------------------------------------------------------------

    def batched(self, lanes: Sequence[Sequence[Any]], kind: str, run: Callable[..., Any] = evaluate) -> None:
        """`vmap` over some arguments is a loop."""
        one = self.at(lanes[0])
        if not all(one.serves(args) for args in lanes):
            return
        func = self.derivative(one, kind) if kind else one.func
        inner = [one.values(args) for args in lanes]
        count = len(func.params) - len(inner[0])
        extra = [] if not count else (one.moving(self.program.tangents())[1] if kind == "j" else self.cotangents(
            evaluate(one.func, *inner[0])))
        flags = [bool(self.rng.random() < 0.6) for _ in inner[0]]
        flags[0] = flags[0] or not any(flags)
        if one.trace.captures:
            flags[-len(one.trace.captures):] = [False] * len(one.trace.captures)
        rows = [[row[k] if flag else inner[0][k] for k, flag in enumerate(flags)] for row in inner]
        mapped = vmap(func, flags + [False] * count, LANES)
        verify(mapped)
        try:
            wanted = [evaluate(func, *row, *extra) for row in rows]
        except Exception:
            return                      # what a lane raises, and when, is not compared
        args = [np.stack([row[k] for row in rows]) if flag else rows[0][k] for k, flag in enumerate(flags)]
        found = run(mapped, *args, *extra)
        close([np.stack([w[k] for w in wanted]) for k in range(len(func.results))], found, f"vmap of {kind or 'value'}")
        self.outcome.done.add("vmap" + kind)

    def close(self) -> None:
        self.oracle.close()


def emitted(func: Func, *args: Any) -> tuple[Any, ...]:
    return plain_python(func)(*args)


def emitted_twice(func: Func, *args: Any) -> tuple[Any, ...]:
    """The serial version, which the parallel one agrees with."""
    found = emitted(func, *args)
    close(found, plain_python(func, parallel=True)(*args), "the parallel version", 1e-8, 1e-8)
    return found


def _size(a: Sequence[Any], b: Sequence[Any]) -> float:
    return float(sum(np.sum(np.abs(np.multiply(x, y))) for x, y in zip(a, b, strict=True)))


def _plus(value: Any, step: float, tangent: Any) -> Any:
    return copy.deepcopy(value) if tangent is None else value + step * tangent


def check(program: Program, *, thorough: int = 0, name: str = "<program>") -> Outcome:
    """Compare a program in all ways.  thorough: a number that chooses which of the dear comparisons are made.

    Disagreement, or any exception of gradsmith: a fault.  TranspileErrors are in the outcome.
    """
    one = Check(program, name)
    try:
        with np.errstate(all="ignore"):
            return _compared(one, thorough)
    except TranspileError as problem:
        one.outcome.refused, one.outcome.message = problem.code, str(problem)
        return one.outcome
    except Unsuitable as reason:
        one.outcome.message = str(reason)
        return one.outcome
    finally:
        one.close()


def _compared(one: Check, thorough: int) -> Outcome:
    program = one.program
    run = emitted_twice if thorough % 20 == 0 else emitted if thorough % 5 == 0 else evaluate
    differentiated = {TRIPS[(thorough + k) % 5] for k in (0, 1, 3)}
    for trips in TRIPS:
        args = program.arguments(trips)
        values = one.value(args)
        if values is not None and trips in differentiated:
            one.first_order(args, values, run if trips == TRIPS[(thorough + 1) % 5] else evaluate)
    trips = TRIPS[1 + thorough % 4]
    args = program.arguments(trips)
    if one.oracle.value(args)[1] is None:
        if thorough % 6 == 1:
            one.second_order(args, ("jv", "vv", "vj")[thorough // 6 % 3], run)
        if thorough % 6 == 3 and one.outcome.points:
            one.dependences(args, ("", "v")[thorough // 6 % 2], run)
        if thorough % 6 == 2:
            others = [replace(program, seed=program.seed + lane) for lane in range(LANES)]
            lanes = [p.arguments(TRIPS[(thorough + lane) % 4]) for lane, p in enumerate(others)]
            if one.oracle.value(lanes[0])[1] is None:
                one.batched(lanes, ("", "v", "j")[thorough // 6 % 3], run)
    return one.outcome
