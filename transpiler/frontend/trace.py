"""From a Python function and abstract arguments to a func in IR.

Tracing may find that a run-time int is needed while transpiling, or that two named sizes must be one: it then starts
again, knowing that.  What it took for granted is in the `Trace`, for the run time to check at every call.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from .. import ops
from ..errors import RuleError, TranspileError, error
from ..ir import dims
from ..ir.build import Names, building
from ..ir.dims import DimExpr
from ..ir.library import Program, collecting
from ..ir.nodes import Block, Func, Var
from ..ir.types import I64, map_dims
from ..ops.spelling import Weak
from ..report import Report
from ..stack import deep_stack
from .captures import Captures
from .grown import settle
from .guards import Assumptions, Capture, NeedStatic, ShapeGuard, StaticGuard, Unify
from .interpreter import Interpreter
from .layout import of_array
from .outside import Outside, keeping_of
from .pytrees import REGISTRY, Node, fields_of
from .recursion import Recurs, Unrolls
from .source import FunctionSource
from .texts import Raised, in_this_call
from .trees import Structure, flatten, leaf_values, refuse_inner
from .values import ArrayRef, Instance, Leaf, OuterDict, OuterList, from_numpy

MAX_RESTARTS = 60


@dataclass(frozen=True)
class Trace:
    """A traced function.

    func: params are the run-time leaves of the arguments in tree order, then the captures; a module where it calls
        recursive funcs.
    out_tree: builds the Python result from the func's results (`trees.rebuild`).
    leaves: the arguments' leaves that are params, in order; static_args: those made static, with their values.
    sizes: named sizes that were found to be other dimensions; leaf types have them replaced.
    report: what transforms told of what they did, where it was asked for.
    written: the params of func that are arrays it writes to (`Func.effects`), as positions.
    raises: exceptions that are more than a built-in class and a text, by the texts (with places) that the func raises.
    has_batches: whether a vmap is in it.
    """

    func: Program
    out_tree: Structure
    captures: tuple[Capture, ...]
    static_guards: tuple[StaticGuard, ...]
    shape_guards: tuple[ShapeGuard, ...]
    static_args: tuple[tuple[Leaf, Any], ...]
    leaves: tuple[Leaf, ...]
    sources: tuple[FunctionSource, ...]
    sizes: Mapping[str, Any] = field(default_factory=dict)
    report: Report | None = None
    written: tuple[int, ...] = ()
    raises: Mapping[str, Raised] = field(default_factory=dict)
    has_batches: bool = False


@dataclass
class _Knowledge:
    """What earlier attempts found out."""

    static: dict[int, Leaf] = field(default_factory=dict)
    static_captures: set[tuple[Any, ...]] = field(default_factory=set)
    sizes: dict[str, Any] = field(default_factory=dict)
    pinned: dict[str, int] = field(default_factory=dict)
    recursive: dict[Any, str] = field(default_factory=dict)
    unrolled: dict[Any, TranspileError] = field(default_factory=dict)


def trace(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *,
          source: str | None = None, sizes: Mapping[str, int] | None = None, name: str | None = None,
          keeps_effects: bool = True, same: Mapping[int, int] | None = None, reporting: bool = False,
          orders: int = 0) -> Trace:
    """Trace `fn` at arguments that are trees of `Leaf`s (run-time values) and static Python objects.

    source: the text of fn, where it cannot be found.  sizes: example sizes of the symbols in leaf types, beyond those
    that the leaves' own examples give.  keeps_effects: arrays that fn writes to are changed for the caller, else fn
    has copies.  same: by identities of Leafs, those that are the same array as another one.  reporting: the trace
    comes with a `Report`.  orders: how often the trace will be differentiated.  TranspileError: the function
    cannot be transpiled at these arguments.
    """
    ops.load_table()
    kwargs = dict(kwargs or {})
    knowledge = _Knowledge()
    with deep_stack():
        for count in itertools.count():
            attempt = _Attempt(fn, args, kwargs, source, sizes or {}, knowledge, name, keeps_effects, same or {},
                               Report() if reporting else None)
            attempt.it.orders = orders
            token = dims.deciding.set(attempt.assumptions)
            try:
                return attempt.run()
            except NeedStatic as need:
                _make_static(need, knowledge, attempt)
            except Unify as found:
                _unify(found, knowledge, attempt)
            except Recurs as found:
                knowledge.recursive[found.key] = found.why
            except Unrolls as found:
                knowledge.recursive.pop(found.key)
                knowledge.unrolled[found.key] = found.problem
            finally:
                dims.deciding.reset(token)
            # Each restart settles a size or an argument, so there may be as many as there are of those.
            known = len(knowledge.recursive) + 2 * len(knowledge.unrolled)
            if count > MAX_RESTARTS + known + len(attempt.assumptions.sizes) + len(attempt.variables):
                raise error("E608", "tracing does not come to an end", attempt.it.here)
    raise AssertionError("the loop ends by return or raise")


def _make_static(need: NeedStatic, knowledge: _Knowledge, attempt: _Attempt) -> None:
    for origin in need.sources:
        if isinstance(origin, Capture):
            knowledge.static_captures.add(origin.access.key)
            continue
        if origin.example is None:
            raise error("E117", f"the argument `{attempt.names_of[id(origin)]}` must be known while transpiling",
                        attempt.it.here, help="pass it as a static argument (static_argnums)")
        knowledge.static[id(origin)] = origin


def _unify(found: Unify, knowledge: _Knowledge, attempt: _Attempt) -> None:
    by_name = {var.name: leaf for leaf, var in attempt.variables}
    for size_name, dim in found.sizes.items():
        leaf = by_name.get(size_name)
        if leaf is not None and not leaf.type.shape:
            _make_static(NeedStatic(frozenset({leaf})), knowledge, attempt)
            continue
        one = {size_name: dim}
        knowledge.sizes = {k: dims.substitute(v, one) for k, v in knowledge.sizes.items()}
        knowledge.sizes[size_name] = dim


class _Attempt:
    """One go at tracing."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], source: str | None,
                 sizes: Mapping[str, int], knowledge: _Knowledge, name: str | None, keeps_effects: bool,
                 same: Mapping[int, int], report: Report | None) -> None:
        self.keeps_effects, self.same = keeps_effects, same
        self.fn, self.args, self.kwargs, self.knowledge = fn, args, kwargs, knowledge
        self.name = name or _name_of(fn)
        self.variables: list[tuple[Leaf, Var]] = []
        self.names_of: dict[int, str] = {}
        self._made: dict[int, Any] = {}
        self.names = Names()
        found = [leaf for tree in (args, kwargs) for leaf in leaves_of(tree)]
        self.assumptions = Assumptions(self._example_sizes(found, sizes))
        self.names.taken.update(self.assumptions.sizes)
        captures = Captures(self.names, self.assumptions, knowledge.sizes, frozenset(knowledge.static_captures),
                            Outside(keeps_effects))
        self.it = Interpreter(self.names, self.assumptions, captures, report)
        self.it.recursive, self.it.unrolled = knowledge.recursive, knowledge.unrolled
        inner = _function_of(fn)
        if source is not None and inner is not None:
            self.it.given_sources[inner] = source

    def _example_sizes(self, leaves: list[Leaf], given: Mapping[str, int]) -> dict[str, int | None]:
        sizes: dict[str, int | None] = {}
        for leaf in leaves:
            example = np.shape(leaf.example) if leaf.example is not None else (None,) * leaf.type.rank
            for dim, size in zip(leaf.type.shape, example):
                for size_name in dims.symbols_of(dim):
                    sizes.setdefault(size_name, None)
                    if str(dim) == size_name and size is not None:
                        sizes[size_name] = int(size)
        return {**sizes, **given}

    def run(self) -> Trace:
        it = self.it
        with collecting(report=it.report) as funcs, building(self.names) as builder, keeping_of(it.outside.now):
            names = _parameter_names(self.fn, len(self.args))
            args = tuple(self.abstract(a, n) for a, n in zip(self.args, names))
            kwargs = {k: self.abstract(v, k) for k, v in self.kwargs.items()}
            it.params = [var for _, var in self.variables]
            if not it.orders:
                it.stands.update(dict.fromkeys(it.params))
            try:
                result = it.call(self.fn, args, kwargs)
                settle(it, result)
                leaves, out_tree = flatten(result)
                refuse_inner(out_tree)
                results = tuple(leaf_values(leaves))
            except RuleError as problem:
                raise problem.at(it.here) from None
            except TranspileError as problem:
                told = in_this_call(problem, self._known)
                if told is problem:
                    raise
                raise told from told.__cause__
            effects = it.outside.effects()
        params = tuple([var for _, var in self.variables] + it.captures.params)
        func = Func(self.name, params, Block(tuple(builder.stmts), (*results, *effects.values())),
                    effects=tuple(effects))
        static = tuple((leaf, leaf.example) for leaf in self.knowledge.static.values())
        return Trace(funcs.program(func), out_tree, tuple(it.captures.captures), tuple(it.captures.guards.values()),
                     tuple(self.assumptions.guards), static, tuple(leaf for leaf, _ in self.variables),
                     tuple(it.sources.values()), dict(self.knowledge.sizes), it.report,
                     tuple(k for k, param in enumerate(params) if param in effects), dict(it.raises),
                     it.has_batches)

    def _known(self, value: Any) -> Any:
        """A size or scalar argument in this call; None for what is computed."""
        if isinstance(value, Weak):
            value = value.value
        if isinstance(value, DimExpr):
            return self.assumptions.example(value)
        if isinstance(value, Var) and value in self.it.sizes:
            return self.assumptions.example(self.it.sizes[value])
        return next((leaf.example for leaf, var in self.variables if var is value and not var.type.shape), None)

    def abstract(self, value: Any, name: str) -> Any:
        """An argument as the interpreter sees it."""
        if isinstance(value, Leaf):
            return self._leaf(value, name)
        if isinstance(value, tuple) and hasattr(value, "_make") and hasattr(value, "_fields"):
            return type(value)._make(self.abstract(v, f"{name}_{k}") for k, v in zip(value._fields, value))
        if type(value) is tuple:
            return tuple(self.abstract(v, f"{name}_{k}") for k, v in enumerate(value))
        if isinstance(value, list):
            return OuterList(self.abstract(v, f"{name}_{k}") for k, v in enumerate(value))
        if isinstance(value, dict):
            made = OuterDict({k: self.abstract(v, f"{name}_{k}") for k, v in value.items()})
            made.cls = type(value)
            return made
        if isinstance(value, Node):
            return self._node(value, name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            own = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}
            if any(leaves_of(v) for v in own.values()):
                return Instance(type(value), {k: self.abstract(v, f"{name}_{k}") for k, v in own.items()}, outer=True)
        made = from_numpy(value)
        if isinstance(made, ArrayRef):
            made.owner = "argument"
        return made

    def _node(self, node: Node, name: str) -> Any:
        """An object of a registered class, put together by what was registered for it."""
        how = REGISTRY[node.cls]
        if how.data is not None:
            own = fields_of(node, how)
            return Instance(node.cls, {k: self.abstract(v, f"{name}_{k}") for k, v in own.items()}, outer=True)
        children = tuple(self.abstract(v, f"{name}_{k}") for k, v in enumerate(node.children))
        return self.it.call(how.unflatten, (from_numpy(node.aux), children), {}, self.it.here)

    def _leaf(self, leaf: Leaf, name: str) -> Any:
        if id(leaf) in self._made:
            return self._made[id(leaf)]
        name = name if name.isidentifier() else "".join(c if c.isalnum() else "_" for c in f"x_{name}")
        self.names_of[id(leaf)] = name
        other = self.same.get(id(leaf))
        if other is not None and other in self._made:
            self.variables.append((leaf, Var(self.names.fresh(name), leaf.type)))       # a parameter that nobody reads
            self._made[id(leaf)] = self._made[other]
            return self._made[other]
        if id(leaf) in self.knowledge.static:
            made = leaf.example if leaf.weak else from_numpy(np.asarray(leaf.example, leaf.type.dtype))
        else:
            made = self._variable(leaf, name)
        self._made[id(leaf)] = made
        return made

    def _variable(self, leaf: Leaf, name: str) -> Any:
        sizes = self.knowledge.sizes
        type_ = map_dims(leaf.type, lambda s: sizes.get(s.name, dims.symbol(s.name, s.low))) if sizes else leaf.type
        var = Var(self.names.fresh(name), type_)
        self.variables.append((leaf, var))
        if type_.kind in "biu" and not type_.shape:
            self.it.origins[var] = frozenset({leaf})
        if type_ == I64:
            self.it.sizes[var] = dims.symbol(var.name, 0)
            self.assumptions.sizes[var.name] = None if leaf.example is None else int(leaf.example)
            self.assumptions.fixed.add(var.name)
        if type_.shape:
            order = leaf.layout or ("A" if leaf.example is None else of_array(np.asarray(leaf.example)))
            if not self.keeps_effects:
                return ArrayRef(var, layout=order)
            made = ArrayRef(var, owner="argument" if leaf.writable else "read-only", layout=order)
            self.it.outside.add(var, made)
            return made
        if self.keeps_effects and isinstance(leaf.example, np.ndarray):
            self.it.outside.numbers.add(var)
        return Weak(var) if leaf.weak else var


def leaves_of(tree: Any) -> list[Leaf]:
    """The run-time leaves of an argument, in order."""
    if isinstance(tree, Leaf):
        return [tree]
    if isinstance(tree, (list, tuple)):
        return [leaf for v in tree for leaf in leaves_of(v)]
    if isinstance(tree, dict):
        return [leaf for v in tree.values() for leaf in leaves_of(v)]
    if isinstance(tree, Node):
        return leaves_of(tree.children)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [leaf for f in dataclasses.fields(tree) for leaf in leaves_of(getattr(tree, f.name, None))]
    return []


def _function_of(fn: Any) -> FunctionType | None:
    """The Python function whose text `source=` is."""
    for _ in range(8):
        if isinstance(fn, FunctionType):
            return fn
        fn = (getattr(fn, "__func__", None) or getattr(fn, "py_func", None) or getattr(fn, "func", None)
              or getattr(fn, "__wrapped__", None) or inspect.getattr_static(type(fn), "__call__", None))
    return None


def _name_of(fn: Any) -> str:
    name = getattr(fn, "__name__", None) or type(fn).__name__
    return name if name.isidentifier() else "f"


def _parameter_names(fn: Any, count: int) -> list[str]:
    """The user's names for positional arguments; those of the function itself under a transform."""
    while hasattr(fn, "__gradsmith_transformed__"):
        fn = fn.__gradsmith_transformed__[1]
    try:
        parameters = list(inspect.signature(fn, follow_wrapped=False).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "x")
    return [*names[:count], *(f"{rest}_{k}" for k in range(count - len(names)))]
