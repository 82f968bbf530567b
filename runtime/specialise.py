"""One specialisation of one function: traced, lowered, emitted, compiled; and how to call it.

    call ─► describe arguments ─► trace ─► pipeline ─► emit ─► cache ─► Numba
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numba import typeof

from . import cache
from .arguments import Described
from .array import Array, as_array, captured
from .compile import Entry, compile_entry, function_of, numba_type
from .log import logger
from .overlap import same_arrays
from .raising import explaining
from .transpiler import pipeline
from .transpiler.emit.effects import sharing_conditions
from .transpiler.emit.python import emit
from .transpiler.errors import error
from .transpiler.frontend.trace import Trace, trace
from .transpiler.frontend.trees import LeafNode, Structure, TreeNode, rebuild
from .transpiler.frontend.values import Leaf
from .transpiler.ir.dims import substitute, symbols_of
from .transpiler.ir.library import Program
from .transpiler.ir.nodes import Var
from .transpiler.stack import deep_stack

GUARD_IMPORT = "from gradsmith.kernels.guard import Miss"


@dataclass(eq=False)
class Specialisation:
    """What one trace compiled to.

    entry: takes flat leaves, then captures; raises Miss for other types and for sizes that its guards refuse.
    same: flat arguments that are the same array as an earlier one, where the function writes to them.
    seconds: what each stage took.
    """

    name: str
    trace: Trace
    func: Program
    source: str
    entry: Entry
    described: Described
    seconds: dict[str, float]
    same: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.converters = converters(self.trace.out_tree, self.func)
        self.array_converters = converters(self.trace.out_tree, self.func, arrays=True)
        self.kinds = [python_kind(captured(capture.get())) for capture in self.trace.captures]

    @property
    def leaves(self) -> list[Leaf]:
        return self.described.leaves

    @property
    def signature(self) -> tuple[Any, ...]:
        """The Numba types of the entry's arguments."""
        return tuple(next(iter(self.entry.overloads)))

    def serves(self, described: Described) -> bool:
        """Whether the call may be answered by this specialisation (sizes are left to the entry's own guards)."""
        return (self.described.key == described.key and self.statics_hold(described.values) and self.guards_hold()
                and self.captures_hold() and self.sharing_holds(described))

    def sharing_holds(self, described: Described) -> bool:
        """Whether the arrays of the call share memory as those did that it was made for.  ValueError where no
        specialisation can be right."""
        return not self.trace.written or sharing(self.trace, self.leaves, self.flat(described.values)) == self.same

    def captures_hold(self) -> bool:
        """Captured values must have the types that they had; their sizes are left to the entry's guards."""
        types = self.signature[len(self.signature) - len(self.kinds):]
        for capture, kind, type in zip(self.trace.captures, self.kinds, types, strict=True):
            try:
                value = captured(capture.get())
            except (LookupError, AttributeError, ValueError, TypeError):
                return False
            if python_kind(value) is not kind or (not np.isscalar(value) and not isinstance(value, np.ndarray)):
                return False
            if typeof(value) != type:
                return False
        return True

    def statics_hold(self, values: Sequence[Any]) -> bool:
        """Run-time leaves that the trace was specialised on must have the same values."""
        return statics_hold(self.trace, self.leaves, values)

    def guards_hold(self) -> bool:
        return all(guard.holds() for guard in self.trace.static_guards)

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether the entry's own guards on sizes would let these arguments in."""
        flat = self.flat(values)
        named = {p.name: int(v) for p, v in zip(self.func.params, flat) if not p.type.shape and p.type.kind in "iu"}
        sizes = dict(named)
        for param, value in zip(self.func.params, flat, strict=True):
            if len(param.type.shape) != np.ndim(value):
                return False
            for dim, size in zip(param.type.shape, np.shape(value)):
                name = str(dim)
                if name in symbols_of(dim) and name not in sizes:
                    sizes[name] = size
                    if size < symbols_of(dim)[name].low:
                        return False
                elif substitute(dim, sizes) != size:
                    return False
        return all(guard.holds(sizes) for guard in self.trace.shape_guards)

    def flat(self, values: Sequence[Any]) -> list[Any]:
        """What the entry takes: run-time leaves, then captures read now."""
        kept = run_time(self.trace, self.leaves, values)
        return kept + [captured(capture.get()) for capture in self.trace.captures]

    def captures_arrays(self) -> bool:
        """Whether an Array is among the captures now: results are Arrays then, as if it had been an argument."""
        return any(type(capture.get()) is Array for capture in self.trace.captures)

    def finish(self, result: Any, arrays: bool = False) -> Any:
        """The user's result from the entry's; `arrays`: with Arrays in it."""
        chosen = self.array_converters if arrays else self.converters
        flat = [value if convert is None else convert(value)
                for value, convert in zip(_results(result, len(self.func.returned)), chosen, strict=True)]
        return rebuild(self.trace.out_tree, flat)

    def parallel_entry(self) -> Callable[..., Any] | None:
        """Compile the parallel version; None where no loop can be parallel.

        If something is raised in a parallel loop, the call is made again by the serial version, which raises it: so
        such loops are parallel only where nothing of the caller's is written to.
        """
        func = pipeline.run(self.trace.func, stages=pipeline.PARALLEL_STAGES)
        name = f"{self.name}_parallel"
        flat, notes = self.flat(self.described.values), not self.trace.written
        text = emit(func, name=name, doc=_doc(self.trace, name), zero_d=_zero_d(func, flat), notes=notes,
                    guards=entry_guards(func, self.trace), imports=[GUARD_IMPORT], parallel=True, quick=True)
        if "prange(" not in text:
            return None
        start = perf_counter()
        entry = function_of(text, cache.load(text, name, "parallel version", str(self.signature)))
        signature = (*self.signature, typeof(np.zeros(1, np.bool_))) if notes else self.signature
        try:
            table = compile_entry(entry, signature, text)
        except AssertionError:
            # Numba's own, about names of parameters that look like its versions of each other.
            logger.warning("Numba cannot compile %s: calls stay serial", name, exc_info=True)
            return None
        logger.info("compiled %s(%s) in %.0f ms: calls take long", name, ", ".join(map(str, self.signature)),
                    1000 * (perf_counter() - start))
        return _or_serial(table, self.entry) if notes else table

    def call(self, described: Described) -> Any:
        arrays = described.has_arrays or self.captures_arrays()
        flat = self.flat(described.values)
        try:
            return self.finish(explaining(self.entry, self.trace)(*flat), arrays)
        finally:
            for original, copy in described.copied:
                if any(flat[k] is copy for k in self.trace.written):
                    original[...] = copy


def _or_serial(parallel: Entry, serial: Entry) -> Callable[..., Any]:
    """The parallel version, and the serial one for calls in which something is raised."""

    def call(*args: Any) -> Any:
        failed = np.zeros(1, np.bool_)
        result = parallel(*args, failed)
        return serial(*args) if failed[0] else result

    return call


def sharing(traced: Trace, leaves: Sequence[Leaf], flat: Sequence[Any]) -> dict[int, int]:
    """Flat arguments that are the same array as an earlier one that the function writes to (`same_arrays`)."""
    names = [param.name for param in traced.func.params]
    return same_arrays(traced.written, flat, names, len(flat) - len(traced.captures))


def run_time(traced: Trace, leaves: Sequence[Leaf], items: Sequence[Any]) -> list[Any]:
    """Those of `items`, one for each leaf, whose leaf is a run-time parameter."""
    known = {id(leaf) for leaf, _ in traced.static_args}
    return [item for leaf, item in zip(leaves, items, strict=True) if id(leaf) not in known]


def _type_of(value: Any) -> Any:
    """Its Numba type; None where compiled code takes no such value."""
    return typeof(value) if isinstance(value, (np.ndarray, np.generic, float, complex)) else None


def statics_hold(traced: Trace, leaves: Sequence[Leaf], values: Sequence[Any]) -> bool:
    """Whether the leaves that the trace was specialised on have the same values."""
    if not traced.static_args:
        return True
    index = {id(leaf): k for k, leaf in enumerate(leaves)}
    return all(same_value(values[index[id(leaf)]], expected) for leaf, expected in traced.static_args)


def python_kind(x: Any) -> type | None:
    """The class of a number: Python's promote otherwise than NumPy's.  None for arrays, which Numba tells apart."""
    return None if isinstance(x, np.ndarray) and x.ndim else type(x)


def same_value(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a is b or bool(a == b))


def _results(result: Any, count: int) -> Sequence[Any]:
    if count == 0:
        return ()
    return (result,) if count == 1 else result


@deep_stack()
def specialise(fun: Any, described: Described, *, name: str, reason: str, source: str | None = None,
               derive: Callable[[Trace, Described], Trace] | None = None,
               checks_sharing: bool = False) -> Specialisation:
    """Do the whole work for one call.  `derive` makes another function of the traced one.  checks_sharing: the entry
    itself refuses arrays that share memory with what it writes to.  TranspileError for what cannot be done."""
    seconds: dict[str, float] = {}
    start = perf_counter()
    traced = trace(fun, described.args, described.kwargs, source=source, keeps_effects=derive is None,
                   orders=int(derive is not None))
    same: dict[int, int] = {}
    if traced.written:
        traced, same = _shared(fun, traced, described, source)
    if derive is not None:
        traced = derive(traced, described)
    seconds["trace"] = perf_counter() - start
    start = perf_counter()
    func = pipeline.run(traced.func)
    seconds["pipeline"] = perf_counter() - start
    start = perf_counter()
    leaves = run_time(traced, described.leaves, described.leaves)
    values = run_time(traced, described.leaves, described.values)
    text = emit(func, name=name, doc=_doc(traced, name), zero_d=_zero_d(func, values),
                guards=[*entry_guards(func, traced), *(sharing_guards(func) if checks_sharing else ())],
                imports=[GUARD_IMPORT], quick=True)
    seconds["emit"] = perf_counter() - start
    start = perf_counter()
    free = [(capture.type, captured(capture.get())) for capture in traced.captures]
    signature = [numba_type(leaf, value) for leaf, value in zip(leaves, values, strict=True)]
    signature += [numba_type(Leaf(type), value if type.shape else None) for type, value in free]
    entry = function_of(text, cache.load(text, name, reason, str(signature)))
    table = compile_entry(entry, tuple(signature), text)
    seconds["compile"] = perf_counter() - start
    logger.info("compiled %s(%s) in %.0f ms: %s", name, ", ".join(map(str, signature)),
                1000 * sum(seconds.values()), reason)
    return Specialisation(name, traced, func, text, table, described, seconds, same)


def _shared(fun: Any, traced: Trace, described: Described, source: str | None) -> tuple[Trace, dict[int, int]]:
    """The trace in which arguments that are the same array are one, where the function writes to it."""
    def found(of: Trace) -> dict[int, int]:
        flat = run_time(of, described.leaves, described.values)
        return sharing(of, described.leaves, [*flat, *(captured(c.get()) for c in of.captures)])

    same = found(traced)
    if not same:
        return traced, same
    leaves = run_time(traced, described.leaves, described.leaves)
    again = trace(fun, described.args, described.kwargs, source=source,
                  same={id(leaves[k]): id(leaves[first]) for k, first in same.items()})
    if run_time(again, described.leaves, described.leaves) != leaves or found(again) != same:
        raise error("E127", "the same array is passed twice to a function that writes to it", None, kind=ValueError,
                    help="pass a copy of one of them")
    return again, same


def _doc(traced: Trace, name: str) -> str:
    files = sorted({s.file.replace("\\", "/").rsplit("/", 1)[-1] for s in traced.sources})
    params = ", ".join(f"{p.name}: {p.type}" for p in traced.func.params)
    return f"{name}({params}), generated by gradsmith from {', '.join(files) or 'no source'}."


def _zero_d(func: Program, values: Sequence[Any]) -> list[str]:
    """Params that arrive as arrays of rank 0."""
    return [p.name for p, v in zip(func.params, values) if isinstance(v, np.ndarray) and v.ndim == 0]


def entry_guards(func: Program, traced: Trace) -> list[tuple[str, str]]:
    """What must hold of the arguments' sizes for this code to be right, as conditions in Python."""
    conditions: list[str] = []
    bound: set[str] = set()
    for param in func.params:
        for axis, dim in enumerate(param.type.shape):
            size = f"{param.name}.shape[{axis}]"
            if str(dim) in symbols_of(dim) and str(dim) not in bound:
                bound.add(str(dim))
                low = symbols_of(dim)[str(dim)].low
                if _is_argument(func.params, str(dim)):
                    conditions.append(f"{size} == {dim}")
                elif low > 0:
                    conditions.append(f"{size} >= {low}")
            else:
                conditions.append(f"{size} == {dim}")
    for guard in traced.shape_guards:
        text = str(guard)
        if text not in conditions:
            conditions.append(text)
    if not conditions:
        return []
    return [(" and ".join(conditions), "Miss")]


def sharing_guards(func: Program) -> list[tuple[str, str]]:
    """For callers that do not look themselves."""
    conditions = sharing_conditions(func)
    message = "arrays share memory, and the function writes to one of them"
    return [(" and ".join(conditions), f'ValueError("{message}")')] if conditions else []


def _is_argument(params: Sequence[Var], name: str) -> bool:
    return any(p.name == name for p in params)


def converters(structure: Structure, func: Program, arrays: bool = False) -> list[Callable[[Any], Any] | None]:
    """For each flat result, what makes it the scalar that NumPy would give, or an Array; None where Numba's result is
    right."""
    found: list[Callable[[Any], Any] | None] = []

    def visit(node: Structure) -> None:
        if isinstance(node, LeafNode):
            type = func.results[len(found)].type
            if node.weak is not None:
                found.append(None)
            elif arrays:
                found.append(as_array if type.shape else _number_maker(type.numpy))
            else:
                found.append(None if type.shape else type.numpy.type)
        elif isinstance(node, TreeNode):
            for child in node.children:
                visit(child)

    visit(structure)
    return found


def _number_maker(dtype: np.dtype[Any]) -> Callable[[Any], Array]:
    return lambda x: as_array(np.asarray(x, dtype))


def result_form(structure: Structure) -> str | None:
    """"one" or "tuple" where flat results are the user's own up to `converters`; None for other trees."""
    if isinstance(structure, LeafNode):
        return "one"
    if isinstance(structure, TreeNode) and structure.kind == "tuple" and len(structure.children) > 1 and all(
            isinstance(c, LeafNode) for c in structure.children):
        return "tuple"
    return None
