"""Calls of functions with rules of their own: `custom_vjp` and `custom_jvp`.

Where no derivative is taken, such a function is called like any other.  Under a derivative it becomes a func of its
own with a rule (`ir.nodes.Rule`), made of the user's rule functions, which are traced here: what they read of the code
around is what it is at the call.

`Interpreter.orders` counts the derivatives that are taken around a call.  Inside of its own rule a function is
differentiated once less, so a rule that calls its function comes to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import RuleError, TranspileError, error
from ..ir.build import const, current
from ..ir.dims import DimExpr, symbols_of
from ..ir.library import library
from ..ir.nodes import Block, Call, Func, Rule, Value, Var
from ..ir.types import I64, Type
from ..ir.walk import all_statements
from ..ops.spelling import Weak, as_value, cast, describe, is_value
from ..transforms.rules import parted
from .guards import Access
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero, may_be_perturbed, zero_of
from .transform_tracing import argument_names, definition_of, numbers_of, positional
from .trees import LeafNode, StaticNode, Structure, TreeNode, flatten, leaf_values, unflatten
from .values import ArrayRef, Closure, Instance, Native, TransformValue

RULED = frozenset({"custom_vjp", "custom_jvp"})
DEFINING = frozenset({"defvjp", "defjvp", "defjvps"})
PARTS = ("fwd", "bwd", "jvp", "jvps")


def rules_given(kind: str, name: str, functions: Sequence[Any], named: dict[str, Any],
                numbers: Sequence[Any]) -> dict[str, Any]:
    """What a call of `defvjp`, `defjvp` or `defjvps` defines, by the names in PARTS.  RuleError for what it may not."""
    named = dict(named)
    named.pop("optimize_remat", None)           # what is not needed is dropped anyway
    zeros = bool(named.pop("symbolic_zeros", False))
    if name == "defvjp":
        found = dict(zip(("fwd", "bwd"), functions)) | named
        wanted = {"fwd", "bwd"}
    elif name == "defjvp":
        found = dict(zip(("jvp",), functions)) | named
        wanted = {"jvp"}
    else:
        if numbers:
            raise RuleError("defjvps is for functions without nondiff_argnums", code="E411", kind=TypeError,
                            help="give one rule for all arguments with defjvp")
        return {"jvps": tuple(functions)}
    if found.keys() != wanted or len(functions) > len(wanted):
        raise RuleError(f"{name} of a gradsmith.{kind} function takes {' and '.join(sorted(wanted, reverse=True))}",
                        code="E411", kind=TypeError)
    return found | {"zeros_in_fwd" if name == "defvjp" else "zeros_in_jvp": zeros}


def define_rule(value: TransformValue, name: str, it: Any, *functions: Any, **named: Any) -> Any:
    """`f.defvjp(fwd, bwd)` in interpreted code."""
    value.kwargs.update(rules_given(value.kind, name, functions, named, _nondiff(value)))
    return functions[0] if name == "defjvp" and functions else None


def _nondiff(value: TransformValue) -> tuple[Any, ...]:
    found = value.args[0] if value.args else value.kwargs.get("nondiff_argnums", ())
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def ruled_call(it: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """Call a function with a rule."""
    left = it.orders - it.within[id(value.fun)]
    if left <= 0:
        return it.call(value.fun, args, kwargs, loc)
    it.at(loc)
    return _RuledCall(it, value, all_arguments(it, value.fun, args, kwargs)).emit()


def all_arguments(it: Any, fun: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """All arguments in the order of the parameters, with default values."""
    found, rest = positional(fun, args, kwargs)
    if rest:
        raise RuleError(f"a function with a custom rule takes {', '.join(map(repr, rest))} by position", code="E411",
                        kind=TypeError)
    if isinstance(fun, Closure):
        defaults, count = fun.defaults, len(fun.node.args.posonlyargs) + len(fun.node.args.args)
    else:
        values = getattr(fun, "__defaults__", None) or ()
        defaults = tuple(it.captures.take(v, Access(fun, (("attr", "__defaults__"), ("item", k))))
                         for k, v in enumerate(values))
        count = fun.__code__.co_argcount if defaults else 0
    missing = count - len(found)
    return (*found, *defaults[len(defaults) - missing:]) if 0 < missing <= len(defaults) else tuple(found)


@contextmanager
def differentiated(it: Any, orders: int, inside: Any = None) -> Iterator[None]:
    """What is interpreted is differentiated so often; inside: it is a rule of that function."""
    before, it.orders = it.orders, orders
    it.within[id(inside)] += 1
    try:
        yield
    finally:
        it.orders = before
        it.within[id(inside)] -= 1


@dataclass
class _Traced:
    """A func; `inner` are its first params, the others are values of the code around."""

    func: Func
    out: Structure
    inner: int

    @property
    def outer(self) -> tuple[Var, ...]:
        return self.func.params[self.inner:]


class _RuledCall:
    """One call: its func, and the funcs of the rule."""

    def __init__(self, it: Any, value: TransformValue, args: tuple[Any, ...]) -> None:
        self.it, self.value, self.args, self.fun = it, value, args, value.fun
        name = value.kwargs.get("name") or getattr(self.fun, "__name__", None) or getattr(self.fun, "name", None)
        self.name = name if isinstance(name, str) and name.isidentifier() else "inner"
        numbers = _nondiff(value)
        names = argument_names(self.fun, len(args))
        for number in numbers:
            if number not in names if isinstance(number, str) else not -len(args) <= number < len(args):
                raise RuleError(f"nondiff_argnums of `{self.name}` has {number!r}, and the call has the arguments "
                                f"{', '.join(names)}", code="E402", kind=ValueError)
        numbers = numbers_of(tuple(names.index(n) if isinstance(n, str) else n for n in numbers), len(args), value.kind)
        self.fixed = tuple(args[k] for k in sorted(set(numbers)))
        self.numbers = numbers
        self.moving = tuple(a for k, a in enumerate(args) if k not in numbers)
        leaves, _ = flatten(args, sizes_are_static=True)
        self.leaves, self.values = leaves, leaf_values(leaves)
        mine, self.structure = flatten(self.moving, sizes_are_static=True)
        ids = {id(leaf) for leaf in mine}
        self.wrt = tuple(k for k, (leaf, v) in enumerate(zip(leaves, self.values, strict=True))
                         if id(leaf) in ids and v.type.is_inexact)
        self.mine = [v.type for v in leaf_values(mine)]
        stands = it.stands | dict.fromkeys(it.captures.params)
        perturbed = dict(zip(map(id, leaves), may_be_perturbed(self.values, stands), strict=True))
        self.perturbed = [perturbed[id(leaf)] for leaf in mine]

    def emit(self) -> Any:
        it = self.it
        with differentiated(it, 0):
            plain = self._trace(self._called, self.args, self.name)
        self.out = _with_leaves(plain.out)
        results = self._results_of(plain)
        if not any(r.type.is_inexact for r in results):
            return it.call(self.fun, self.args, {}, it.here)
        code = None
        if any(v.type.is_inexact for v in plain.outer) and self.value.kwargs.get("by_code", True):
            code = self._trace(self._called, self.args, f"{self.name}_code")
            code.func = _with_results(code.func, self._results_of(code))
        self.types = [r.type for r in results]
        rule, parts = self._rule()
        extras = tuple(dict.fromkeys(v for part in (plain, *parts, *((code,) if code else ())) for v in part.outer))
        _refuse_inner_sizes(plain.func, results, self.name)
        if code is not None:
            rule["code"] = code.func
        count = len(self.leaves)
        named = {kind: _added(func if kind in ("push", "pull") else _with_params(func, (*func.params[:count], *extras)))
                 for kind, func in rule.items()}
        whole = _with_results(plain.func, results)
        name = _added(replace(whole, params=(*whole.params[:count], *extras),
                              rule=Rule(self.wrt, named["forward"], named.get("push"), named.get("pull"),
                                        named.get("ahead"), named.get("code"))))
        targets = tuple(current().var(type, r.name if isinstance(r, Var) else "t")
                        for type, r in zip(self.types, results, strict=True))
        it.leave_probe()
        current().stmts.append(Call(targets, name, (*self.values, *extras), it.here))
        return unflatten(self.out, targets)

    # --- the funcs ---------------------------------------------------------------------------------------------

    def _trace(self, run: Callable[..., Any], args: tuple[Any, ...], name: str, keeps_args: bool = True) -> _Traced:
        func, out, outer = self.it.subtrace(Native(run), (args,), {}, name, keeps_args=keeps_args)
        return _Traced(func, out, len(func.params) - len(outer))

    def _called(self, it: Any, args: Any) -> Any:
        return it.call(self.fun, args, {}, it.here)

    def _results_of(self, traced: _Traced) -> list[Value]:
        """All results that are leaves of `out`: those known while transpiling are constants."""
        return _numbers(traced.out, self.out, iter(traced.func.results))

    def _rule(self) -> tuple[dict[str, Func], list[_Traced]]:
        """The funcs of the rule, and the traces that they come from."""
        given = self.value.kwargs
        found: dict[str, Func] = {}
        traces: list[_Traced] = []
        with differentiated(self.it, self.it.orders, self.fun):
            if given.get("fwd") is not None:
                found["forward"], found["pull"] = self._reverse(given["fwd"], given["bwd"], traces)
            if given.get("jvp") is not None or given.get("jvps") is not None:
                found["ahead" if found else "forward"], found["push"] = self._forward(traces)
            if not found:
                what = "defvjp(fwd, bwd)" if self.value.kind == "custom_vjp" else "defjvp(rule)"
                raise RuleError(f"`{self.name}` is a gradsmith.{self.value.kind} function without a rule, and is "
                                "differentiated", code="E411", kind=AttributeError, help=f"call {self.name}.{what}")
        return found, traces

    # --- a rule for the reverse mode ---------------------------------------------------------------------------

    def _reverse(self, fwd: Any, bwd: Any, traces: list[_Traced]) -> tuple[Func, Func]:
        count = len(self.types)

        def run_fwd(it: Any, args: Any) -> Any:
            pair = it.call(fwd, self._told(args) if self.value.kwargs.get("zeros_in_fwd") else args, {}, it.here)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise self._wrong(fwd, f"the forward function `{_name(fwd)}` of `{self.name}` must return a pair "
                                  f"(result, residuals), not {_text(pair)}")
            return tuple(self._fitting(pair[0], self.out, self.types, fwd, "result")), pair[1]

        forward = self._trace(run_fwd, self.args, f"{self.name}_forward")
        assert isinstance(forward.out, TreeNode)
        saved = forward.func.results[count:]
        residuals = unflatten(forward.out.children[1], [_like(v) for v in saved])
        cts = tuple(_abstract(_like(Var("ct", t))) for t in self.types if t.is_inexact)

        def run_bwd(it: Any, args: Any) -> Any:
            fixed, kept, given = args
            ct = self._filled(self.out, self.types, given)
            bars = it.call(bwd, (*fixed, kept, ct), {}, it.here)
            if not isinstance(bars, (tuple, list)) or len(bars) != len(self.moving):
                raise self._wrong(bwd, f"the backward function `{_name(bwd)}` of `{self.name}` must return a tuple "
                                  f"with the cotangent of each of {len(self.moving)} argument"
                                  f"{'s' if len(self.moving) != 1 else ''}, not {_text(bars)}")
            found = self._fitting(tuple(bars), self.structure, self.mine, bwd, "cotangent")
            return tuple(x for x in found if x.type.is_inexact)

        backward = self._trace(run_bwd, (self.fixed, residuals, cts), f"{self.name}_pull", keeps_args=False)
        traces += [forward, backward]
        fixed, _ = flatten(self.fixed, sizes_are_static=True)
        where = {id(leaf): k for k, leaf in enumerate(self.leaves)}
        again = [forward.func.params[where[id(leaf)]] for leaf in fixed]
        params = backward.func.params
        late = params[backward.inner - len(cts):backward.inner]
        kept = (*params[:backward.inner - len(cts)], *backward.outer)
        carriers = _carriers(forward.func.params[:forward.inner], (*kept, *late), self.mine)
        pull = _with_params(backward.func, (*kept, *map(_like, carriers), *late))
        results = (*forward.func.results[:count], *again, *saved, *backward.outer, *carriers)
        return _with_results(forward.func, results), pull

    # --- a rule for the forward mode ---------------------------------------------------------------------------

    def _forward(self, traces: list[_Traced]) -> tuple[Func, Func]:
        rule, rules = self.value.kwargs.get("jvp"), self.value.kwargs.get("jvps")
        about = rule if rule is not None else next((r for r in rules or () if r is not None), None)
        tangents = tuple(_abstract(_like(v)) for v in leaf_values(flatten(self.moving, sizes_are_static=True)[0])
                         if v.type.is_inexact)

        def run(it: Any, args: Any) -> Any:
            everything, given = args
            fixed = tuple(a for k, a in enumerate(everything) if k in self.numbers)
            primals = tuple(a for k, a in enumerate(everything) if k not in self.numbers)
            told = bool(self.value.kwargs.get("zeros_in_jvp"))
            moving = self._filled(_tangents_of(self.structure, told), self.mine, given, told)
            if rules is not None and rule is None:
                pair = self._sum_of_rules(it, rules, primals, moving)
            else:
                pair = it.call(rule, (*fixed, primals, moving), {}, it.here)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise self._wrong(about, f"the rule `{_name(about)}` of `{self.name}` must return a pair (result, "
                                  f"tangent), not {_text(pair)}")
            result = self._fitting(pair[0], self.out, self.types, about, "result")
            slope = self._fitting(pair[1], self.out, self.types, about, "tangent")
            return (*result, *(t for t in slope if t.type.is_inexact))

        traced = self._trace(run, (self.args, tangents), f"{self.name}_push")
        traces.append(traced)
        first, params = len(self.leaves), traced.func.params
        late = [first <= k < traced.inner for k in range(len(params))]
        forward, push = parted(traced.func, late, len(self.types))
        before = len(push.params) - len(tangents)
        carriers = _carriers(params[:first], (*push.params[:before], *(Var("t", t) for t in self.types)), self.mine)
        push = _with_params(push, (*push.params[:before], *map(_like, carriers), *push.params[before:]))
        return replace(forward, name=f"{self.name}_forward", body=Block(
            forward.body.stmts, (*forward.results, *carriers))), push

    def _filled(self, structure: Structure, types: Sequence[Type], moving: Sequence[Any], told: bool = False) -> Any:
        """Tangents or cotangents as a tree, with zeros for what has no derivative; told: of tangents, as such."""
        rest = iter(moving)
        whole = [next(rest) if t.is_inexact else const(0, t) for t in types]
        return unflatten(structure, [zero_of(t) if told and not moves else x for x, t, moves in zip(
            whole, types, self.perturbed if told else types, strict=True)])

    def _told(self, args: Any) -> tuple[Any, ...]:
        """The arguments, each leaf with whether it may be perturbed."""
        marks = iter(self.perturbed)
        told: list[Any] = []
        for k, arg in enumerate(args):
            if k in self.numbers:
                told.append(arg)
                continue
            leaves, structure = flatten(arg, sizes_are_static=True)
            marked = [CustomVJPPrimal(leaf, next(marks)) for leaf in leaves]
            told.append(CustomVJPPrimal(arg, False) if isinstance(structure, StaticNode) and isinstance(
                structure.value, (int, float, complex, np.number)) else unflatten(structure, marked))
        return tuple(told)

    def _sum_of_rules(self, it: Any, rules: Sequence[Any], primals: tuple[Any, ...], tangents: Any) -> tuple[Any, Any]:
        """`defjvps`: one rule for each argument, (tangent, result, *primals) -> tangent."""
        result = it.call(self.value, primals, {}, it.here)
        total: list[Value] | None = None
        for rule, tangent in zip(rules, tangents, strict=False):
            if rule is None:
                continue
            slope = it.call(rule, (tangent, result, *primals), {}, it.here)
            part = self._fitting(slope, self.out, self.types, rule, "tangent")
            total = part if total is None else [a + b if a.type.is_inexact else a
                                                for a, b in zip(total, part, strict=True)]
        return result, unflatten(self.out, [const(0, t) for t in self.types] if total is None else total)

    # --- what rules return -------------------------------------------------------------------------------------

    def _fitting(self, tree: Any, structure: Structure, types: Sequence[Type], rule: Any, what: str) -> list[Value]:
        """The leaves of what a rule returned, which must have this structure and these types."""
        pending = iter(types)
        none_is_zero = what != "result"

        def wrong(path: str, expected: str, found: str) -> TranspileError:
            return self._wrong(rule, f"the {what}{path} that `{_name(rule)}` returns for `{self.name}` must be "
                               f"{expected}, not {found}")

        def visit(node: Structure, got: Any, path: str) -> Iterator[Value]:
            if isinstance(node, StaticNode):
                return
            if isinstance(node, LeafNode):
                yield self._leaf(got, next(pending), partial(wrong, path), none_is_zero, what)
                return
            parts = [None] * len(node.children) if got is None and none_is_zero else _parts(node, got)
            if parts is None:
                raise wrong(path, f"a {node.kind} of {len(node.children)}", _text(got))
            keys = node.keys or range(len(node.children))
            for key, child, part in zip(keys, node.children, parts, strict=True):
                yield from visit(child, part, f"{path}[{key!r}]")

        return list(visit(structure, tree, ""))

    def _leaf(self, got: Any, type: Type, wrong: Callable[[str, str], TranspileError], none_is_zero: bool,
              what: str) -> Value:
        if what != "result" and not type.is_inexact:
            return const(0, type)                   # of an int or bool, there is no derivative
        if (got is None or isinstance(got, SymbolicZero)) and none_is_zero:
            return const(0, type)
        is_pythons = isinstance(got, (bool, int, float, complex, DimExpr)) and not isinstance(got, np.generic)
        if isinstance(got, ArrayRef):
            value = got.read()
        elif isinstance(got, Weak) or is_pythons or isinstance(got, np.generic) or is_value(got):
            value = as_value(got)
        else:
            raise wrong(f"a number or an array of type {type}", _text(got))
        are_equal = self.it.assumptions.are_equal
        if value.rank != type.rank or not all(are_equal(a, b) for a, b in zip(value.shape, type.shape)):
            raise wrong(f"of shape {_shape(type)}", f"of shape {_shape(value.type)}")
        if value.dtype != type.dtype:
            fits = np.can_cast(value.type.numpy, type.numpy, "same_kind") or value.type.kind in "biu"
            if not ((is_pythons or isinstance(got, Weak)) and fits):
                raise wrong(f"of dtype {type.dtype}", f"of dtype {value.dtype}")
        return cast(value, type.dtype)

    def _wrong(self, rule: Any, message: str) -> TranspileError:
        return error("E410", message, definition_of(self.it, rule) or self.it.here, kind=TypeError,
                     label=f"the rule, for the call at {self.it.here}")


# --- trees -------------------------------------------------------------------------------------------------------


def _with_leaves(node: Structure) -> Structure:
    """Floats known while transpiling are results like others."""
    if isinstance(node, StaticNode):
        if type(node.value) in (float, complex):
            return LeafNode("weak", type(node.value))
        if isinstance(node.value, np.inexact):
            return LeafNode("scalar")
        if type(node.value) is tuple and node.value:
            parts = tuple(_with_leaves(StaticNode(v)) for v in node.value)
            return node if all(isinstance(p, StaticNode) for p in parts) else TreeNode("tuple", tuple, (), parts)
        return node
    if isinstance(node, TreeNode):
        return TreeNode(node.kind, node.cls, node.keys, tuple(map(_with_leaves, node.children)))
    return node


def _numbers(node: Structure, like: Structure, leaves: Iterator[Value]) -> list[Value]:
    """The leaves of `like`, which are leaves or known numbers in `node`."""
    if isinstance(like, StaticNode):
        return []
    if isinstance(like, LeafNode):
        return [as_value(node.value) if isinstance(node, StaticNode) else next(leaves)]
    children = [StaticNode(v) for v in node.value] if isinstance(node, StaticNode) else node.children   # type: ignore
    return [x for a, b in zip(children, like.children, strict=True) for x in _numbers(a, b, leaves)]


def _tangents_of(node: Structure, told: bool) -> Structure:
    """The structure of tangents: numbers known while transpiling do not move; told: as zeros that can be told."""
    if isinstance(node, StaticNode):
        value = node.value
        if isinstance(value, (tuple, list)):
            return StaticNode(type(value)(_tangents_of(StaticNode(v), told).value for v in value))  # type: ignore
        if isinstance(value, (int, float, complex, np.number)):
            return StaticNode(SymbolicZero((), np.result_type(value)) if told else 0.0)
        return node
    if isinstance(node, TreeNode):
        return TreeNode(node.kind, node.cls, node.keys, tuple(_tangents_of(c, told) for c in node.children))
    return node


def _parts(node: TreeNode, got: Any) -> list[Any] | None:
    """The parts of a container of the same form; None for anything else."""
    if node.kind == "dict":
        return [got[k] for k in node.keys] if isinstance(got, dict) and got.keys() == set(node.keys) else None
    if node.kind == "object":
        fits = isinstance(got, Instance) and got.fields.keys() == set(node.keys)
        return [got.fields[k] for k in node.keys] if fits else None
    fits = isinstance(got, tuple if node.kind in ("tuple", "namedtuple") else list) and len(got) == len(node.children)
    return list(got) if fits else None


def _like(value: Value) -> Var:
    """A variable of the type of a value."""
    return Var(value.name if isinstance(value, Var) else "t", value.type)


def _abstract(var: Var) -> Any:
    return ArrayRef(var) if var.type.shape else var


def _carriers(params: Sequence[Var], there: Sequence[Var], types: Sequence[Type]) -> list[Var]:
    """Those of the params that have sizes of the types which nothing that is there has."""
    bound = {str(d) for v in there for d in v.type.shape} | {v.name for v in there if v.type == I64}
    found = []
    for size in sorted({s for t in types for d in t.shape for s in symbols_of(d)} - bound):
        carrier = next((p for p in params if p.name == size or size in map(str, p.type.shape)), None)
        if carrier is not None and carrier not in found:
            found.append(carrier)
    return found


def _with_params(func: Func, params: Sequence[Var]) -> Func:
    return replace(func, params=tuple(params))


def _added(func: Func) -> str:
    """Into the library."""
    name = library().reserve(func.name)
    library().add(replace(func, name=name))
    return name


def _with_results(func: Func, results: Sequence[Value]) -> Func:
    return Func(func.name, func.params, Block(func.body.stmts, tuple(results)))


def _refuse_inner_sizes(func: Func, results: Sequence[Value], name: str) -> None:
    inner = {t.name for stmt in all_statements(func.body) for t in stmt.targets if t.type == I64}
    if any(s in inner for r in results for d in r.type.shape for s in symbols_of(d)):
        raise RuleError(f"the shape of what `{name}` returns is decided while it runs, and it has a custom rule",
                        code="E311", kind=NotImplementedError,
                        help="let its size follow from the sizes of the arguments")


def _name(fun: Any) -> str:
    return str(getattr(fun, "__name__", None) or getattr(fun, "name", None) or describe(fun))


def _text(got: Any) -> str:
    if isinstance(got, (tuple, list)):
        return f"a {type(got).__name__} of {len(got)}"
    if isinstance(got, ArrayRef):
        return f"an array of shape {_shape(got.type)}"
    return "None" if got is None else describe(got)


def _shape(type: Type) -> str:
    return "(" + ", ".join(map(str, type.shape)) + ("," if type.rank == 1 else "") + ")"
