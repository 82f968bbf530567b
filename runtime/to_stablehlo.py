"""StableHLO text of any function, transformed or not, at given shapes and dtypes.

    text = gradsmith.stablehlo(gradsmith.grad(loss))(w, "f32[128,784]")

Arguments are arrays and numbers, whose values play no part, or what only says shape and dtype: a string as in
signatures, `gradsmith.f64["3,4"]`, a `ShapeDtypeStruct`, or anything with `shape` and `dtype`; in containers, too.
An int that a size, a recursion or an unrolled loop needs is known while compiling and is no parameter of the module:
pass it as a number.  Arrays and numbers that the function reads from its surroundings are constants of the module, as
they are now (`captures="parameters"`: parameters after the arguments).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arguments import DTYPES, NOTHING_STATIC, Static, _Maker
from .array import captured
from .half_precision import half_of_all, rounded_results, stored_params
from .transpiler import pipeline
from .transpiler.emit.hlo_blocks import Failure
from .transpiler.emit.hlo_cast import half_of, in_single_precision, shorter
from .transpiler.emit.hlo_inline import calls_itself
from .transpiler.emit.hlo_sizes import specialise
from .transpiler.emit.hlo_types import HALVES
from .transpiler.emit.stablehlo import emit_module
from .transpiler.errors import RuleError, error
from .transpiler.frontend.preparing import before_transforms
from .transpiler.frontend.trace import Trace, trace
from .transpiler.frontend.trees import LeafNode, StaticNode, Structure, TreeNode, rebuild
from .transpiler.frontend.values import Leaf
from .transpiler.ir.build import const
from .transpiler.ir.dims import symbols_of
from .transpiler.ir.library import Program, each_func, main_of
from .transpiler.ir.nodes import Block, Func, Module, Value, Var
from .transpiler.ir.types import I64, Type
from .transpiler.ir.walk import (
    all_statements,
    blocks,
    definitions,
    operands,
    reads,
    replacement,
    sizes_used,
    substituted,
    with_body,
)
from .transpiler.raise_loops.findings import Finding
from .transpiler.raise_loops.nests import has_loops
from .transpiler.signature import ArraySpec, ScalarSpec, built, meant_spec
from .transpiler.stack import deep_stack
from .transpiler.transforms.batch_dependence import Parts, parting
from .tree import leaves as leaves_of_tree

PRECISIONS = ("highest", "high", "default")


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """What an array argument is like, without its elements.  Sizes other than numbers are refused when it is used."""

    shape: tuple[Any, ...]
    dtype: Any = "float64"

    def __post_init__(self) -> None:
        shape = (self.shape,) if isinstance(self.shape, (int, str)) else self.shape
        object.__setattr__(self, "shape", tuple(d if d is None or isinstance(d, str) else int(d) for d in shape))
        object.__setattr__(self, "dtype", str(self.dtype) if isinstance(self.dtype, str) else np.dtype(self.dtype).name)


@dataclass(frozen=True)
class Options:
    """checked: the last result is an int32, 0 or the code of the first check that failed.  locations: lines end with
    the user's.  captures: "constants" or "parameters".  cast: a float type ("f32") that all floats become, complex
    numbers likewise.  raise_loops: loops over elements become operations on whole arrays where they can."""

    checked: bool = False
    locations: bool = True
    captures: str = "constants"
    cast: str | None = None
    max_trips: int | None = None
    raise_loops: bool = True
    mask_lanes: bool = True
    precision: str = "highest"
    name: str = "main"

    def __post_init__(self) -> None:
        half_of(self.cast)
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision is one of {', '.join(PRECISIONS)}, not {self.precision!r}")
        if self.captures not in ("constants", "parameters"):
            raise ValueError(f'captures is "constants" or "parameters", not {self.captures!r}')


@dataclass(frozen=True)
class Lowered:
    """A function as a StableHLO module.

    text: the module.  arguments, results: what people call the parameters and results of @main, in order.
    failures: what the error flag may say.  func: the IR that was written.  leaves: one for each parameter of @main
    that is an argument; the captures in `trace.captures` follow where they are parameters.  written: the parameters
    that the function writes to, as positions; what they hold in the end are results after the returned ones.
    loops: what became of each loop, before and after derivatives were taken, with the reason where it was kept.
    """

    text: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    failures: tuple[Failure, ...]
    func: Any
    trace: Trace
    options: Options
    leaves: tuple[Leaf, ...]
    values: tuple[Any, ...] = field(repr=False, default=())
    loops: tuple[Finding, ...] = ()

    @property
    def written(self) -> tuple[int, ...]:
        return tuple(self.func.params.index(p) for p in self.func.effects)

    def arrays(self) -> list[Any]:
        """What @main takes, of the arguments that this was made for and the surroundings now.

        ValueError: an argument had no value, but only a shape.
        """
        found = list(self.values)
        for name, value in zip(self.arguments, found):
            if value is None:
                raise ValueError(f"{name} was given as a shape and dtype, without elements")
        if self.options.captures == "parameters":
            found += [captured(capture.get()) for capture in self.trace.captures]
        return [np.asarray(v, None if str(getattr(v, "dtype", "")) in HALVES else p.type.dtype)
                for v, p in zip(found, self.func.params)]

    def rebuilt(self, results: Sequence[Any]) -> Any:
        """The user's own result from the results of @main."""
        count = len(self.func.returned)
        made = [np.asarray(r) if np.ndim(r) else np.asarray(r)[()] for r in results[:count]]
        return rebuild(self.trace.out_tree, made)


def stablehlo(fun: Callable[..., Any], *, checked: bool = False, locations: bool = True, captures: str = "constants",
              cast: str | None = None, max_trips: int | None = None, raise_loops: bool = True,
              mask_lanes: bool = True, precision: str = "highest", source: str | None = None) -> Emission:
    """The function from arguments to the text of a StableHLO module whose public function `main` does what `fun`
    does.  `fun` may be the result of `jit`, `grad`, `vmap` or any other transform.

    checked: NumPy's exceptions cannot be raised there; an int32 is then the last result, 0 or the code of the first
    check that failed, which `lower(...).failures` explains.  Without it, an index out of range is moved into range by
    a read, and a write there does nothing or is moved likewise; `raise` and `assert` do nothing.  What the function
    prints is left out, always.
    locations: lines end with `loc("file":line:column)`.  captures: "constants" or "parameters", for arrays and numbers
    of the surroundings.  cast: "f32", "f16" or "bf16", which all floats become.
    max_trips: how often a `while` loop runs at most, where its steps are saved for a derivative and nothing else tells;
    should it run more often, the results are NaN.
    raise_loops: loops over elements become operations on whole arrays where no trip needs what another has computed,
    before derivatives are taken and after; `lower(...).loops` tells of each loop.  Sums may then be added in another
    order.
    mask_lanes: loops over lanes of a batch, which branch on values of the lane, become operations on all lanes.
    precision: of matrix products: "highest" is that of their type; a TPU multiplies in bfloat16 at "default".
    TranspileError: what cannot be transpiled or written (E207), with the user's line.
    """
    options = Options(checked, locations, captures, cast, max_trips, raise_loops, mask_lanes, precision)
    return Emission(fun, options, source)


class Emission:
    """What `stablehlo` returns; `lower` gives more than the text."""

    def __init__(self, fun: Callable[..., Any], options: Options, source: str | None = None) -> None:
        self.fun, self.options, self.source = fun, options, source

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        return self.lower(*args, **kwargs).text

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        return lowered(self.fun, args, kwargs, self.options, self.source)


@deep_stack()
def lowered(fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: Options,
            source: str | None = None) -> Lowered:
    """Trace `fun` at these arguments and write it."""
    parameters = list(getattr(fun, "parameters", ())) or _parameters(fun)
    given = described(args, kwargs, parameters, getattr(fun, "_static", NOTHING_STATIC), options.cast)
    return lowered_at(fun, given, options, source)


@deep_stack()
def lowered_at(fun: Callable[..., Any], given: Arguments, options: Options, source: str | None = None,
               name: str | None = None) -> Lowered:
    """The same, at arguments that are taken apart.  name: of the module."""
    findings: list[Finding] = []
    with raising(findings) if options.raise_loops else nullcontext():
        traced, given = _traced(fun, given, source if source is not None else getattr(fun, "source_text", None), name)
    traced = _with_known_results(traced)
    func = _sized(traced)
    if options.captures == "constants":
        func = _with_known_numbers(traced, func)
    if options.cast is not None:
        func = in_single_precision(func)
    stages = pipeline.stablehlo_stages(findings, raises=options.raise_loops, masks=options.mask_lanes,
                                       max_trips=options.max_trips)
    try:
        func = pipeline.run(func, stages=stages)
    except RuleError as problem:
        raise problem.at(None) from None
    return dataclasses.replace(written(traced, func, given, options), loops=tuple(dict.fromkeys(findings)))


def raising(findings: list[Finding]) -> AbstractContextManager[None]:
    """Trace inside with the loops of functions under transforms raised before these."""
    def raised(func: Func) -> Func:
        return pipeline.raise_all(pipeline.tidy(func), findings=findings, keeps=False) if has_loops(func) else func

    return before_transforms(raised)


def written(traced: Trace, func: Program, given: Arguments, options: Options) -> Lowered:
    """The module of a trace whose func has gone through the pipeline up to the stage "dead"."""
    main = main_of(func)
    constants = {}
    labels = list(given.names)
    if options.captures == "constants":
        params = main.params[len(main.params) - len(traced.captures):]
        constants = {p: captured(c.get()) for p, c in zip(params, traced.captures, strict=True)}
    else:
        labels += [str(capture.access) for capture in traced.captures]
    results = (*_labels(traced.out_tree, "result"), *(f"{p.name} (written)" for p in main.effects))
    try:
        made = emit_module(func, name=options.name, locations=options.locations, checked=options.checked,
                           constants=constants, arguments=labels, results=results, max_trips=options.max_trips,
                           half=half_of(options.cast), precision=options.precision,
                           stored=stored_params(main, given.leaves),
                           rounded=rounded_results(main, half_of_all(given.leaves), given.leaves))
    except RuleError as problem:
        raise problem.at(None) from None
    return Lowered(made.text, tuple(labels), results, made.failures, main, traced, options, tuple(given.leaves),
                   tuple(given.values))


# ---------------------------------------------------------------------------------------------------------------
# arguments


@dataclass(frozen=True)
class Arguments:
    """args, kwargs: trees with Leafs.  leaves, names, values: of the run-time leaves, in order; a value is None where
    only its type is known."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Leaf]
    names: list[str]
    values: list[Any]


def has_types(tree: Any) -> bool:
    """Whether something in it says only what an argument is like."""
    return any(isinstance(x, (ArraySpec, ScalarSpec, ShapeDtypeStruct)) or type(x).__name__ == "ShapeDtypeStruct"
               or (isinstance(x, str) and meant_spec(x) is not None) for x in leaves_of_tree(tree))


def described(args: Sequence[Any], kwargs: Mapping[str, Any], parameters: Sequence[str] = (),
              static: Static = NOTHING_STATIC, cast: str | None = None) -> Arguments:
    """The arguments taken apart, with every size a number.  cast: floats of theirs are in single precision already.
    TranspileError: a size or a dtype that is not known."""
    names = [*parameters[:len(args)], *(f"argument {k}" for k in range(len(parameters), len(args)))]
    maker = _Sized(cast)
    made = tuple(maker.static(a, n) if static.has(k, n, len(args)) else maker.visit(a, n)
                 for k, (a, n) in enumerate(zip(args, names, strict=True)))
    more = {n: maker.static(a, n) if n in static.names else maker.visit(a, n) for n, a in kwargs.items()}
    return Arguments(made, more, maker.leaves, maker.names, maker.values)


class _Sized(_Maker):
    """Makes leaves whose sizes are numbers, also of specs."""

    halves = True

    def __init__(self, cast: str | None = None) -> None:
        super().__init__()
        self.names: list[str] = []
        self.cast = cast

    def visit(self, x: Any, name: str) -> Any:
        if isinstance(x, str) and (meant := meant_spec(x)) is not None:
            x = built(meant, lambda spec: spec)
        if isinstance(x, (ArraySpec, ScalarSpec, ShapeDtypeStruct)):
            return self._spec(x, name)
        if not isinstance(x, (np.ndarray, np.generic, type)) and hasattr(x, "shape") and hasattr(x, "dtype"):
            return self._spec(ShapeDtypeStruct(tuple(x.shape), np.dtype(x.dtype)), name)
        if self.cast is not None and isinstance(x, (np.ndarray, np.generic)):
            dtype = "float32" if x.dtype.name in HALVES else shorter(x.dtype.name)
            x = x.astype(dtype) if x.dtype.name != dtype else x
        mark = len(self.leaves)
        made = super().visit(x, name)
        if len(self.leaves) == mark + 1 and made is self.leaves[mark]:
            self.names.append(name)
        return made

    def _array(self, x: np.ndarray[Any, Any], name: str) -> Leaf:
        if type(x) is not np.ndarray:
            x = self._as_ndarray(x, name)
        return self._leaf(self._typed(x.dtype, x.shape, name, example=x, writable=x.flags.writeable), x, ())

    def _spec(self, spec: Any, name: str) -> Leaf:
        shape = spec.dims if isinstance(spec, ArraySpec) else getattr(spec, "shape", ())
        for dim in shape:
            if not isinstance(dim, int):
                raise error("E207", f"StableHLO needs every size as a number, and {name} is {spec}", None,
                            help=f"give a number for {'`:`' if dim is None else f'`{dim}`'} in the type of `{name}`")
        dtype, stored = str(spec.dtype), None
        if dtype in HALVES:
            dtype, stored = "float32", dtype if self.cast is None else None
        elif self.cast is not None:
            dtype = shorter(dtype)
        if dtype not in DTYPES:
            raise error("E307", f"{name} has dtype {spec.dtype}, which is not supported", None, kind=TypeError)
        self.names.append(name)
        return self._leaf(Leaf(Type(dtype, tuple(shape)), False, None, layout="C" if shape else None, stored=stored),
                          None, ())


def _parameters(fun: Callable[..., Any]) -> list[str]:
    try:
        found = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _traced(fun: Any, given: Arguments, source: str | None, name: str | None) -> tuple[Trace, Arguments]:
    """The trace in which ints that give sizes are known, and those that may end a recursion, and the arguments that are
    left."""
    while True:
        with parting(Parts.NOWHERE):
            found = trace(fun, given.args, given.kwargs, source=source, name=name)
        known = {id(leaf) for leaf, _ in found.static_args}
        fixed = to_be_known(found)
        if not fixed:
            return found, _without(given, known)
        given = _with_known(given, {id(leaf) for leaf in fixed})


def _with_known_results(found: Trace) -> Trace:
    """Numbers that are known while transpiling are results, too, as constants."""
    returned = iter(found.func.returned)
    leaves: list[Value] = []

    def visit(structure: Structure) -> Structure:
        if isinstance(structure, TreeNode):
            return dataclasses.replace(structure, children=tuple(map(visit, structure.children)))
        if isinstance(structure, LeafNode):
            leaves.append(next(returned))
            return structure
        value = structure.value
        if type(value) in (tuple, list) and value:
            children = tuple(visit(StaticNode(part)) for part in value)
            return TreeNode(type(value).__name__, type(value), (), children)
        if not isinstance(value, (bool, int, float, complex, np.bool_, np.number)):
            return structure
        known = np.asarray(value)
        leaves.append(const(known.item(), Type(known.dtype.name)))
        return LeafNode("scalar") if isinstance(value, np.generic) else LeafNode("weak", type(value))

    tree = visit(found.out_tree)
    if tree == found.out_tree:
        return found
    main = main_of(found.func)
    results = (*leaves, *main.results[len(main.returned):])
    main = dataclasses.replace(main, body=dataclasses.replace(main.body, results=results), result_names=())
    rest = found.func.funcs[1:] if isinstance(found.func, Module) else ()
    return dataclasses.replace(found, func=Module((main, *rest)) if rest else main, out_tree=tree)


def to_be_known(found: Trace, guarded: bool = True) -> list[Leaf]:
    """Int arguments that must be known while compiling: that sizes follow from, or that may end a recursion.

    guarded: also those about which the trace took something for granted, where nobody will look whether it holds.
    """
    sizes, recursive = _ints_in_sizes(found, guarded), calls_itself(found.func)
    return [leaf for leaf, param in zip(found.leaves, main_of(found.func).params)
            if (param in sizes or (recursive and param.type == I64)) and leaf.example is not None]


def _ints_in_sizes(found: Trace, guarded: bool) -> set[Var]:
    """Params, ints, that sizes (or guards) follow from: they are one, or one is computed from them."""
    main = main_of(found.func)
    names = {n for guard in found.shape_guards for n in symbols_of(guard.dim)} if guarded else set()
    names |= {n for stmt in all_statements(main.body) for n in sizes_used(stmt)}
    names |= {n for r in main.results for d in r.type.shape for n in symbols_of(d)}
    made = definitions(main.body)
    pending: list[Var] = [v for v in (*main.params, *made) if v.type == I64 and v.name in names]
    seen: set[Var] = set()
    while pending:
        var = pending.pop()
        if var in seen:
            continue
        seen.add(var)
        stmt = made.get(var)
        if stmt is not None:
            inner = [v for block in blocks(stmt) for v in reads(block)]
            pending += [v for v in (*operands(stmt), *inner) if isinstance(v, Var)]
    return {p for p in main.params if p in seen and p.type == I64}


def _without(given: Arguments, known: set[int]) -> Arguments:
    kept = [k for k, leaf in enumerate(given.leaves) if id(leaf) not in known]
    return dataclasses.replace(given, leaves=[given.leaves[k] for k in kept], names=[given.names[k] for k in kept],
                               values=[given.values[k] for k in kept])


def _with_known(given: Arguments, known: set[int]) -> Arguments:
    """The arguments with these leaves as what they are."""
    def visit(x: Any) -> Any:
        if isinstance(x, Leaf):
            return x.example if id(x) in known else x
        if isinstance(x, tuple) and hasattr(x, "_make"):
            return type(x)._make(map(visit, x))
        if isinstance(x, (tuple, list)):
            return type(x)(map(visit, x))
        if isinstance(x, dict):
            for key in x:
                x[key] = visit(x[key])
            return x
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            for item in dataclasses.fields(x):
                object.__setattr__(x, item.name, visit(getattr(x, item.name)))
        return x

    return dataclasses.replace(_without(given, known), args=tuple(map(visit, given.args)),
                               kwargs={k: visit(v) for k, v in given.kwargs.items()})


def _sized(traced: Trace) -> Program:
    """The traced func with the sizes of captured arrays, which are known now, as numbers."""
    main = main_of(traced.func)
    sizes: dict[str, int] = {}
    params = main.params[len(main.params) - len(traced.captures):]
    for param, capture in zip(params, traced.captures, strict=True):
        for dim, size in zip(param.type.shape, np.shape(captured(capture.get()))):
            if str(dim) in symbols_of(dim):
                sizes[str(dim)] = size
    return each_func(traced.func, lambda f: specialise(f, sizes) if f is main else f) if sizes else traced.func


def _with_known_numbers(traced: Trace, func: Program) -> Program:
    """With what captured numbers are in the places of their params."""
    main = main_of(func)
    params = main.params[len(main.params) - len(traced.captures):]
    known: dict[Var, Value] = {p: const(captured(c.get()), p.type)
                               for p, c in zip(params, traced.captures, strict=True) if not p.type.shape}
    if not known:
        return func
    body = Block(tuple(substituted(s, known) for s in main.body.stmts),
                 tuple(replacement(r, known) for r in main.body.results))
    return each_func(func, lambda f: with_body(f, body) if f is main else f)


# ---------------------------------------------------------------------------------------------------------------
# results


def _labels(structure: Structure, path: str) -> list[str]:
    """What people would write for each leaf of the result."""
    if isinstance(structure, LeafNode):
        return [path]
    if not isinstance(structure, TreeNode):
        return []
    names = [f"{path}.{k}" if structure.kind == "object" else f"{path}[{k!r}]"
             for k in (structure.keys or range(len(structure.children)))]
    return [label for child, name in zip(structure.children, names, strict=True) for label in _labels(child, name)]
