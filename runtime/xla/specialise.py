"""One specialisation of one function for a device of XLA's: traced at sizes that are numbers, compiled, called.

    call ─► describe arguments ─► trace ─► pipeline ─► StableHLO ─► XLA ─► DeviceArrays

StableHLO knows static shapes alone, so each shape is compiled for itself; ints that sizes depend on are static, too.

A call returns before its results are computed, except where it writes to an array of NumPy's: then it waits, since
anybody may read that array.  What the program raises is raised where a result is first read, or, of a function that
writes to its arguments and may raise, at once; its arguments then stay as they were.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ..arguments import Described
from ..array import Array
from ..device_array import DeviceArray, Outcome
from ..half_precision import half_of_all
from ..overlap import same_arrays
from ..specialise import python_kind, run_time, statics_hold
from ..target import Target
from ..to_stablehlo import raising, to_be_known
from ..transpiler.emit.hlo_sizes import specialise as with_sizes
from ..transpiler.errors import error
from ..transpiler.frontend.trace import Trace, leaves_of, trace
from ..transpiler.frontend.trees import LeafNode, Structure, TreeNode, build, python_object
from ..transpiler.frontend.values import Leaf
from ..transpiler.ir.dims import symbols_of
from ..transpiler.ir.library import Program, each_func, main_of
from ..transpiler.ir.nodes import Func, Var
from ..transpiler.raise_loops.findings import Finding
from ..transpiler.stack import deep_stack
from ..transpiler.transforms.batch_dependence import Parts, parting
from .ahead import CompiledForTpu, compile_for_tpu
from .program import DeviceProgram, Place


@dataclass(eq=False)
class DeviceSpecialisation:
    """What one trace compiled to.

    fixed: run-time ints that must be known while compiling, with the values that it was compiled for.  captured_as:
    what captured values were like.  same: as in `Specialisation`.
    """

    name: str
    trace: Trace
    program: DeviceProgram
    described: Described
    fixed: Sequence[tuple[Leaf, Any]]
    captured_as: Sequence[Any]
    seconds: dict[str, float]
    same: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weak = weak_leaves(self.trace.out_tree)
        self.sizes = _named_sizes(self.trace)
        self.is_one = isinstance(self.trace.out_tree, LeafNode)

    @property
    def source(self) -> str:
        """The module's text."""
        return self.program.text

    def compile_for_tpu(self, topology: str = "v5e:2x2") -> CompiledForTpu:
        """Compile ahead of time for one chip; no TPU is needed."""
        return compile_for_tpu(self.source, topology)

    @property
    def func(self) -> Program:
        """The IR that was written."""
        return self.program.func

    @property
    def leaves(self) -> list[Leaf]:
        return self.described.leaves

    def serves(self, described: Described) -> bool:
        """Whether the call may be answered by this specialisation."""
        return (self.described.key == described.key and statics_hold(self.trace, self.leaves, described.values)
                and self._fixed_hold(described.values) and all(g.holds() for g in self.trace.static_guards)
                and self.captures_hold() and self.sizes_hold(described.values) and self._sharing_holds(described))

    def sizes_hold(self, values: Sequence[Any]) -> bool:
        """Whether what the trace took for granted of ints holds for these arguments."""
        guards = self.trace.shape_guards
        if not guards:
            return True
        asked = {name for guard in guards for name in symbols_of(guard.dim)}
        ints = {param.name: int(value) for param, value in zip(main_of(self.trace.func).params, self.flat(values))
                if param.name in asked and not param.type.shape and param.type.kind in "iu"}
        return all(guard.holds({**self.sizes, **ints}) for guard in guards)

    def _fixed_hold(self, values: Sequence[Any]) -> bool:
        index = {id(leaf): k for k, leaf in enumerate(self.leaves)}
        return all(_int(values[index[id(leaf)]]) == value for leaf, value in self.fixed)

    def captures_hold(self) -> bool:
        """Whether captured values are like those that it was compiled for."""
        try:
            return all(_like(capture.get()) == like for capture, like in zip(self.trace.captures, self.captured_as))
        except (LookupError, AttributeError, ValueError, TypeError):
            return False

    def _sharing_holds(self, described: Described) -> bool:
        return not self.trace.written or sharing(self.trace, self.flat(described.values)) == self.same

    def fits(self, values: Sequence[Any]) -> bool:
        """Sizes are part of what `serves` compares."""
        return True

    def flat(self, values: Sequence[Any]) -> list[Any]:
        """What the program takes: run-time leaves, then captures read now."""
        fixed = {id(leaf) for leaf, _ in self.fixed}
        kept = [v for leaf, v in zip(self.leaves, values, strict=True) if id(leaf) not in fixed]
        leaves = [leaf for leaf in self.leaves if id(leaf) not in fixed]
        return run_time(self.trace, leaves, kept) + [capture.get() for capture in self.trace.captures]

    # --- calls -----------------------------------------------------------------------------------------------------

    def call(self, described: Described) -> Any:
        """The user's result, of DeviceArrays, which are computed later."""
        flat = self.flat(described.values)
        results, pending = self.program.called(flat, copied=self.same)
        count = len(self.program.func.returned)
        for k, buffer in zip(self.program.written, results[count:], strict=True):
            _write(flat[k], buffer, pending)
        for original, copy in described.copied:
            if any(flat[k] is copy for k in self.program.written):
                original[...] = copy
        return self._built(results[:count], pending)

    def result(self, flat: Sequence[Any]) -> Any:
        """The same of a program that writes to no arguments, for what it takes."""
        return self._built(*self.program.called(flat))

    def _built(self, results: Sequence[Any], pending: Sequence[Outcome]) -> Any:
        device = self.program.target.device
        spread = self.program.place.is_spread
        made = [DeviceArray(b, device, weak=weak, outcomes=pending, spread=spread)
                for b, weak in zip(results, self.weak, strict=True)]
        return made[0] if self.is_one else rebuilt(self.trace.out_tree, made)

def _write(target: Any, buffer: Any, outcomes: Sequence[Outcome]) -> None:
    """What the func has made of an argument goes into it: at once into an array of NumPy's, which anybody may read."""
    if isinstance(target, DeviceArray):
        target.replace(buffer, outcomes)
        return
    for outcome in outcomes:
        outcome.require()
    target[...] = np.asarray(buffer)


def sharing(traced: Trace, flat: Sequence[Any]) -> dict[int, int]:
    """Flat arguments that are the same array as an earlier one that the function writes to (`same_arrays`)."""
    names = [param.name for param in main_of(traced.func).params]
    count = len(flat) - len(traced.captures)
    here = [v.view(np.ndarray) if type(v) is Array else v for v in flat]
    found = same_arrays(traced.written, here, names, count)
    for w in traced.written:
        twice = [k for k, v in enumerate(flat) if v is flat[w] and isinstance(v, DeviceArray)]
        if len(twice) > 1 and twice[-1] >= count:
            raise error("E127", f"{names[w]}, which the function writes to, is {names[twice[-1]]}, too", None,
                        kind=ValueError, help="pass a copy of one of them")
        found.update((k, twice[0]) for k in twice[1:])
    return found


def _int(value: Any) -> int:
    return int(value)


def _like(x: Any) -> Any:
    """What of a captured value is compiled in: all but its elements."""
    if isinstance(x, (np.ndarray, DeviceArray)):
        return ("array", np.dtype(x.dtype).name, tuple(x.shape))
    return python_kind(x)


def rebuilt(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The user's result; Python's numbers stay DeviceArrays, which are not waited for."""
    return build(structure, leaves, lambda node, leaf: leaf, python_object)


def weak_leaves(structure: Structure) -> list[bool]:
    if isinstance(structure, LeafNode):
        return [structure.weak is not None]
    if isinstance(structure, TreeNode):
        return [weak for child in structure.children for weak in weak_leaves(child)]
    return []


# ---------------------------------------------------------------------------------------------------------------
# making one


@deep_stack()
def specialise_for(fun: Any, described: Described, *, target: Target, name: str, reason: str,
                   source: str | None = None,
                   derive: Callable[[Trace, Described], Trace] | None = None,
                   place: Callable[[Trace, Func], Place] | None = None) -> DeviceSpecialisation:
    """Do the whole work for one call, but XLA's.  place: where it is to run, if not on the target's device.
    TranspileError for what cannot be done."""
    seconds: dict[str, float] = {}
    start = perf_counter()

    def traced(arguments: Described, same: Mapping[int, int] | None = None) -> Trace:
        with raising(findings), parting(Parts.NOWHERE):
            return trace(fun, arguments.args, arguments.kwargs, source=source, keeps_effects=derive is None, same=same)

    findings: list[Finding] = []
    fixed: list[tuple[Leaf, Any]] = []
    given = described
    found = traced(given)
    while more := to_be_known(found, guarded=False):
        fixed += [(leaf, _int(leaf.example)) for leaf in more]
        given = dataclasses.replace(described, args=_known(described.args, fixed),
                                    kwargs=_known(described.kwargs, fixed))
        found = traced(given)
    same: dict[int, int] = {}
    if found.written:
        same = sharing(found, _flat(found, described, fixed))
        if same:
            leaves = run_time(found, *(2 * [[x for x in described.leaves if all(x is not leaf for leaf, _ in fixed)]]))
            again = traced(given, {id(leaves[k]): id(leaves[first]) for k, first in same.items()})
            if again.written and sharing(again, _flat(again, described, fixed)) != same:
                raise error("E127", "the same array is passed twice to a function that writes to it", None,
                            kind=ValueError, help="pass a copy of one of them")
            found = again
    if derive is not None:
        found = derive(found, given)
    seconds["trace"] = perf_counter() - start
    halves = found.leaves if target.cast is None else ()
    whole = sized(found.func, [c.get() for c in found.captures])
    program = DeviceProgram(whole, target, name=name, reason=reason, raises=found.raises,
                            place=place(found, main_of(whole)) if place is not None else None, findings=findings,
                            leaves=halves, half=half_of_all(halves) if derive is None else None, weak=[
                                *(leaf.weak for leaf in found.leaves),
                                *(python_kind(c.get()) in (float, complex) for c in found.captures)])
    seconds.update(program.seconds)
    program.seconds = seconds
    made = DeviceSpecialisation(name, found, program, described, fixed, [_like(c.get()) for c in found.captures],
                                seconds, same)
    if described.key is not None and not made.sizes_hold(described.values):
        raise error("E117", "an int on a device must be known while transpiling", None,
                    help="pass it as a Python int")
    return made


def _named_sizes(found: Trace) -> dict[str, int]:
    """The sizes of captured arrays by their names."""
    params = main_of(found.func).params
    return {str(dim): size for param, capture in zip(params[len(params) - len(found.captures):], found.captures)
            for dim, size in zip(param.type.shape, np.shape(capture.get())) if not isinstance(dim, int)}


def _flat(found: Trace, described: Described, fixed: Sequence[tuple[Leaf, Any]]) -> list[Any]:
    known = {id(leaf) for leaf, _ in fixed}
    pairs = [(leaf, v) for leaf, v in zip(described.leaves, described.values, strict=True) if id(leaf) not in known]
    return run_time(found, [leaf for leaf, _ in pairs], [v for _, v in pairs]) + [c.get() for c in found.captures]


def _known(x: Any, fixed: Sequence[tuple[Leaf, Any]]) -> Any:
    """The arguments with these leaves as the ints that they are."""
    if isinstance(x, Leaf):
        return next((value for leaf, value in fixed if leaf is x), x)
    if not leaves_of(x):
        return x
    if isinstance(x, tuple):
        parts = [_known(v, fixed) for v in x]
        return type(x)._make(parts) if hasattr(x, "_make") else type(x)(parts)
    if isinstance(x, list):
        return type(x)(_known(v, fixed) for v in x)
    if isinstance(x, dict):
        made = dict.copy(x)
        made.update((k, _known(v, fixed)) for k, v in x.items())
        return made
    made = object.__new__(type(x))
    for item in dataclasses.fields(x):
        object.__setattr__(made, item.name, _known(getattr(x, item.name), fixed))
    return made


def sized(program: Program, captured: Sequence[Any]) -> Program:
    """The program with the sizes of its last params, of which these are values, as numbers."""
    main = main_of(program)
    return with_values(program, main.params[len(main.params) - len(captured):], captured)


def with_values(program: Program, params: Sequence[Var], values: Sequence[Any]) -> Program:
    """The program with the sizes that these params are named after as they are in these values."""
    main = main_of(program)
    sizes = {str(dim): int(size) for param, value in zip(params, values, strict=True)
             for dim, size in zip(param.type.shape, np.shape(value)) if str(dim) in symbols_of(dim)}
    return each_func(program, lambda f: with_sizes(f, sizes) if f is main else f) if sizes else program
