"""Python expressions of IR values: operands put into templates, indices, sizes, allocations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..ir.dims import symbols_of
from ..ir.index import At, New, Span
from ..ir.nodes import Const, If, Let, Value
from ..ir.types import Type, dims_in
from ..ops.base import RuleError
from . import templates as t
from .access import Role
from .names import Naming
from .plan import Plan

FULL = ast.Slice(None, None, None)


class Expressions:
    """`rewrite` is applied to every template's tree before it is filled: for text that must do without our kernels."""

    def __init__(self, plan: Plan, naming: Naming, rewrite: Callable[[ast.expr], ast.expr] | None = None) -> None:
        self.plan = plan
        self.naming = naming
        self.rewrite = rewrite
        self.numpy_first: Collection[Let] = ()          # operations whose first operand must not be a Python number

    def value(self, value: Value) -> ast.expr:
        value = self.plan.value(value)
        if isinstance(value, Const):
            return self.array(value) if value.type.shape else t.constant(value.value, value.type.dtype)
        if value in self.plan.inlined:
            return self.statement(self.plan.definition[value])
        return t.name(self.naming.of(value))

    def array(self, value: Const) -> ast.expr:
        """A new array of equal elements."""
        return t.filled_array(value.value, value.type, self.shape(value.type))

    def empty(self, type: Type) -> ast.expr:
        return t.allocation("empty", self.shape(type), type.dtype)

    def shape(self, type: Type) -> list[ast.expr]:
        return [self.dimension(d) for d in type.shape]

    def dimension(self, dim: Any) -> ast.expr:
        return t.dimension(dim, lambda node: self._size(node) if node.id not in ("max", "min") else node)

    def _size(self, node: ast.Name) -> ast.expr:
        if node.id in self.plan.int_scalars:
            return self.value(self.plan.int_scalars[node.id])
        return t.name(self.naming.sizes[node.id])

    def statement(self, stmt: Any) -> ast.expr:
        """The expression of a Let's result or of a conditional If."""
        if isinstance(stmt, If):
            then, orelse = self.value(stmt.then.results[0]), self.value(stmt.orelse.results[0])
            return ast.IfExp(self.value(stmt.pred), then, orelse)
        kind = self.plan.roles[stmt]
        if kind is Role.LOAD:
            return self.load(stmt)
        if kind is Role.SLICE:
            return self.place(stmt, stmt.args[0], stmt.args[1:])
        return self.filled(stmt)

    def load(self, let: Let) -> ast.expr:
        array = self.plan.value(let.args[0])
        if isinstance(array, Const):
            return t.constant(array.value, array.type.dtype)
        if not let.params["index"]:
            return ast.Subscript(self.value(array), ast.Tuple([], ast.Load()), ast.Load())
        return self.place(let, array, let.args[1:])

    def filled(self, let: Let, outs: Sequence[ast.expr] = ()) -> ast.expr:
        """The operation's template with operands, parameters and allocated results put in."""
        form = self.plan.template(let)
        sizes = {s for d in (*dims_in(tuple(let.params.values())), *(d for v in (*let.args, *let.targets)
                                                                     for d in v.type.shape)) for s in symbols_of(d)}
        operands = [self.value(arg) for arg in let.args]
        if isinstance(form.tree, ast.Compare):
            operands = [self._compared(arg, operand) for arg, operand in zip(let.args, operands)]
        if let in self.numpy_first:
            operands[0] = t.call(t.dtype_name(let.args[0].type.dtype), operands[0])
        kind = self.plan.roles[let]

        def put(place: str) -> ast.expr:
            if place.isdigit():
                return operands[int(place)]
            if place.startswith("out"):
                return outs[int(place[3:] or 0)]
            if place not in let.params:
                raise RuleError(f"the template of {let.op.name} names {{{place}}}, which is no parameter of it")
            return self._parameter(let.params[place])

        def other(node: ast.Name) -> ast.expr:
            return self._size(node) if node.id in sizes else node

        source = form.tree if self.rewrite is None else self.rewrite(form.tree)
        if kind is Role.SCALAR:
            source = self._with_dtypes(source, let)
        tree = t.Template(source, form.counts, form.text).fill(put, other)
        if kind is not Role.SCALAR:
            return t.plain_allocation(tree)
        return t.tidy(t.typed_result(tree, let.target.type.dtype))

    def _compared(self, arg: Value, operand: ast.expr) -> ast.expr:
        """A constant that something is compared with needs no dtype: its value is exact in the wider one too."""
        arg = self.plan.value(arg)
        if isinstance(arg, Const) and arg.type.dtype in ("float32", *t.NARROW_INTS):
            return t.constant(arg.value, "float64" if arg.type.kind == "f" else "int64")
        return operand

    def _with_dtypes(self, tree: ast.expr, let: Let) -> ast.expr:
        for dtype in (*(a.type.dtype for a in let.args), let.target.type.dtype):
            if dtype in t.LITERAL_WIDENS:
                return t.typed_literals(tree, dtype)  # type: ignore[no-any-return]
        return tree

    def _parameter(self, value: Any) -> ast.expr:
        if isinstance(value, tuple):
            return ast.Tuple([self._parameter(v) for v in value], ast.Load())
        if isinstance(value, (bool, int, float)):
            return t.number(value)
        if value is None:
            return ast.Constant(None)
        return self.dimension(value)

    # --- indices -------------------------------------------------------------------------------------------------

    def place(self, let: Let, array: Value, scalars: Sequence[Value]) -> ast.expr:
        """`x[i, a:b]` for the statement's index."""
        whole = self.value(array)
        dims = iter(array.type.shape)
        rest = iter(scalars)
        items: list[ast.expr] = []
        backwards: list[bool] = []
        for item in let.params["index"]:
            if isinstance(item, New):
                items.append(ast.Constant(None))
                backwards.append(False)
                continue
            size = next(dims)
            if isinstance(item, At):
                items.append(self.value(next(rest)))
                continue
            items.append(self._span(item, size, None if item.start is not None else self.value(next(rest))))
            backwards.append(item.step < 0)
        found: ast.expr = ast.Subscript(whole, _one_or_tuple(items), ast.Load())
        if any(backwards):
            flips: list[ast.expr] = [ast.Slice(None, None, t.number(-1)) if b else FULL for b in backwards]
            while flips[-1] is FULL:
                flips.pop()
            found = ast.Subscript(found, _one_or_tuple(flips), ast.Load())
        return found

    def _span(self, span: Span, size: Any, start: ast.expr | None) -> ast.expr:
        """The slice in increasing order; a negative step is undone by the caller."""
        step = abs(span.step)
        stride = None if step == 1 else t.number(step)
        if start is not None:
            reach = t.number(step * (span.size - 1)) if isinstance(span.size, int) else self.dimension(
                step * (span.size - 1))
            if span.step > 0:
                extent = self.dimension(step * span.size)
                return ast.Slice(start, _sum(start, ast.Add(), extent), stride)
            return ast.Slice(_sum(start, ast.Sub(), reach), _sum(start, ast.Add(), t.number(1)), stride)
        if span.step > 0:
            low, high = span.start, span.start + step * span.size
        else:
            low, high = span.start - step * (span.size - 1), span.start + 1
        reaches_end = high == size
        if isinstance(high, int) and isinstance(size, int):
            reaches_end = high >= size
        return ast.Slice(None if low == 0 else self.dimension(low), None if reaches_end else self.dimension(high),
                         stride)


def _sum(left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
    if isinstance(right, ast.Constant) and right.value == 0:
        return left
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        a, b = int(left.value), int(right.value)  # type: ignore[arg-type]
        return t.number(a + b if isinstance(op, ast.Add) else a - b)
    return ast.BinOp(left, op, right)


def _one_or_tuple(items: list[ast.expr]) -> ast.expr:
    return items[0] if len(items) == 1 else ast.Tuple(items, ast.Load())


def names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def computes(tree: ast.AST) -> bool:
    """Is there arithmetic in it, other than in an index?"""
    match tree:
        case ast.Subscript():
            return computes(tree.value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return False
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.IfExp():
            return True
        case ast.Call():
            if isinstance(tree.func, ast.Attribute) and isinstance(tree.func.value, ast.Name) and (
                    tree.func.value.id == "np"):
                quiet = tree.func.attr in ("empty", "zeros", "ones", "full") or all(
                    isinstance(a, ast.Constant) for a in tree.args)
                return not quiet
            return True
    return any(computes(child) for child in ast.iter_child_nodes(tree))

