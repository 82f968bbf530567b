"""Expressions: each gives a `Value`, and code where the function's builder stands."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba.np.numpy_support import as_dtype

from ..kernels import allocation
from . import arrays, values
from .aliases import Aliases
from .calls import Caller, dtype_of, type_of
from .numbers import BIT, FLOATS, LLVM, arithmetic, cast, comparison, is_plain, literal, negated, unsigned
from .values import BOOL, FLOAT, INT, TYPES, Array, Known, NotCovered, Number, Other, Value, array, number

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}
# Of what Numba types only with literals or compiles as a function of its own, the whole is left to it.
_LEFT_TO_NUMBA = (ast.Pow,)
_FILLED = (np.ones, np.full)
LIGHT = 24              # nodes of an expression's tree that take less than a branch, at most


class Expressions:
    """Expressions of one function.  A subclass knows its variables (`read`) and how it raises (`raising`)."""

    builder: Any
    context: Any
    caller: Caller
    aliases: Aliases
    names: Mapping[str, Any]            # the module's

    def __init__(self) -> None:
        self.temporaries: list[Array] = []      # owned arrays of the statement at hand
        self.outside: list[Array] = []          # those of the expression around an arm that may be left out
        self.trips_apart = False                # whether this is in a loop over `abreast`

    def read(self, name: str) -> Value | None:
        raise NotImplementedError

    def value(self, tree: ast.expr) -> Value:
        match tree:
            case ast.Constant(value=x) if isinstance(x, (bool, int, float)):
                return literal(x)
            case ast.Constant(value=x) if x is None or isinstance(x, str):
                return Known(x)
            case ast.Name():
                return self._name(tree.id)
            case ast.BinOp():
                return self.binary(tree.op, self.value(tree.left), self.value(tree.right))
            case ast.UnaryOp():
                return self._unary(tree)
            case ast.Compare():
                return self._compare(tree)
            case ast.BoolOp():
                return self._connected(tree)
            case ast.IfExp():
                return self._conditional(tree)
            case ast.Subscript():
                return self._subscript(tree)
            case ast.Attribute():
                return self._attribute(tree)
            case ast.Call():
                return self._call(tree)
            case ast.Tuple():
                return values.Sequence([self.value(item) for item in tree.elts])
        raise NotCovered(f"the expression {type(tree).__name__}")

    def _name(self, name: str) -> Value:
        found = self.read(name)
        if found is not None:
            return found
        if name in self.names:
            return self._constant(self.names[name])
        if hasattr(builtins, name):
            return Known(getattr(builtins, name))
        raise NotCovered(f"the name {name}")

    def _constant(self, x: Any) -> Value:
        return literal(x) if isinstance(x, (bool, int, float)) else Known(x)

    def truth(self, tree: ast.expr) -> Any:
        """The bit of a condition."""
        return cast(self.builder, number(self.value(tree)), BOOL).llvm

    # --- operators -----------------------------------------------------------------------------------------------

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(left, values.Sequence) and isinstance(right, values.Sequence) and isinstance(op, ast.Add):
            return values.Sequence([*left.items, *right.items])
        if isinstance(op, _LEFT_TO_NUMBA):
            raise NotCovered("powers")
        if isinstance(left, Number) and isinstance(right, Number):
            found = arithmetic(self.builder, op, left, right)
            if found is not None:
                return found
        return self._by_numba(_OPERATORS.get(type(op)), left, right)

    def _by_numba(self, function: Any, *operands: Value) -> Value:
        if function is None or not all(isinstance(x, Number | Other) for x in operands):
            raise NotCovered(f"{function} of {', '.join(type(x).__name__ for x in operands)}")
        return self.caller.by_numba(self.builder, function, operands, {})

    def _unary(self, tree: ast.UnaryOp) -> Value:
        if isinstance(tree.op, ast.Not):
            return Number(BOOL, self.builder.xor(self.truth(tree.operand), BIT(1)))
        operand = self.value(tree.operand)
        if isinstance(operand, Number) and isinstance(tree.op, ast.USub):
            found = negated(self.builder, operand)
            if found is not None:
                return found
        return self._by_numba(_OPERATORS.get(type(tree.op)), operand)

    def _compare(self, tree: ast.Compare) -> Value:
        if len(tree.ops) != 1:
            raise NotCovered("a chain of comparisons")
        left, right = self.value(tree.left), self.value(tree.comparators[0])
        if isinstance(left, Number) and isinstance(right, Number):
            found = comparison(self.builder, tree.ops[0], left, right)
            if found is not None:
                return found
        return self._by_numba(_OPERATORS.get(type(tree.ops[0])), left, right)

    def _connected(self, tree: ast.BoolOp) -> Value:
        """`and` and `or` of bools; what costs nothing and cannot fail is computed in any case."""
        total = self._bool(tree.values[0])
        for operand in tree.values[1:]:
            if _is_quick(operand):
                combine = self.builder.and_ if isinstance(tree.op, ast.And) else self.builder.or_
                total = combine(total, self._bool(operand))
                continue
            before, decided = self.builder.block, BIT(int(isinstance(tree.op, ast.Or)))
            more, after = self.block("more"), self.block("connected")
            self.builder.cbranch(total, *((more, after) if isinstance(tree.op, ast.And) else (after, more)))
            self.builder.position_at_end(more)
            with self.passing():
                rest = self._bool(operand)
            end = self.builder.block
            self.builder.branch(after)
            self.builder.position_at_end(after)
            phi = self.builder.phi(BIT)
            phi.add_incoming(decided, before)
            phi.add_incoming(rest, end)
            total = phi
        return Number(BOOL, total)

    def _bool(self, tree: ast.expr) -> Any:
        found = number(self.value(tree))
        if found.type != BOOL:
            raise NotCovered(f"and, or of {found.type}")
        return found.llvm

    def block(self, name: str) -> Any:
        return self.builder.append_basic_block(name)

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Temporary arrays of what is computed inside are released inside: it may be left out."""
        before, outside = self.temporaries, self.outside
        self.temporaries, self.outside = [], outside + before
        yield
        self.release_temporaries()
        self.temporaries, self.outside = before, outside

    def release_temporaries(self) -> None:
        raise NotImplementedError

    def selected(self, tree: ast.expr) -> Value:
        """What is handed on to a loop's next trip: without branches, if that costs little, for LLVM vectorises the loop
        only if it is no choice of blocks."""
        if isinstance(tree, ast.IfExp) and _is_cheap(tree.body) and _is_cheap(tree.orelse):
            return self._chosen(self.truth(tree.test), self.value(tree.body), self.value(tree.orelse))
        return self.value(tree)

    def _conditional(self, tree: ast.IfExp) -> Value:
        test = self.truth(tree.test)
        if all(map(_is_light if self.trips_apart else _is_there, (tree.body, tree.orelse))):
            return self._chosen(test, self.value(tree.body), self.value(tree.orelse))
        blocks = [self.block(name) for name in ("chosen", "otherwise", "either")]
        self.builder.cbranch(test, blocks[0], blocks[1])
        found, ends = [], []
        for arm, start in zip((tree.body, tree.orelse), blocks):
            self.builder.position_at_end(start)
            with self.passing():
                found.append(self.value(arm))
            ends.append(self.builder.block)
            self.builder.branch(blocks[2])
        self.builder.position_at_end(blocks[2])
        for k, (one, other) in enumerate((found, found[::-1])):
            self.builder.position_before(ends[k].terminator)
            found[k] = self._widened(one, other)
        self.builder.position_at_end(blocks[2])
        left, right = self._alike(*found)
        phi = self.builder.phi(left.llvm.type)
        for one, end in zip((left, right), ends):
            phi.add_incoming(one.llvm, end)
        return Number(left.type, phi) if left.type in LLVM else Other(left.type, phi)

    def _chosen(self, test: Any, then: Value, orelse: Value) -> Value:
        """Both are computed."""
        left, right = self._alike(self._widened(then, orelse), self._widened(orelse, then))
        chosen = self.builder.select(test, left.llvm, right.llvm)
        return Number(left.type, chosen) if left.type in LLVM else Other(left.type, chosen)

    def _widened(self, value: Value, other: Value) -> Value:
        """A float beside a complex number is one, too."""
        if isinstance(value, Number) and value.type == FLOAT and isinstance(other, Other) and (
                other.type == TYPES.complex128):
            return self._complex(value, Number(FLOAT, LLVM[FLOAT](0.0)))
        return value

    def _alike(self, left: Value, right: Value) -> tuple[Number | Other, Number | Other]:
        if not isinstance(left, Number | Other) or not isinstance(right, Number | Other) or left.type != right.type:
            raise NotCovered("a conditional expression of two types")
        return left, right

    # --- arrays --------------------------------------------------------------------------------------------------

    def _subscript(self, tree: ast.Subscript) -> Value:
        whole = self.value(tree.value)
        if isinstance(whole, values.Sequence):
            index = number(self.value(tree.slice))
            if index.literal is None or not -len(whole.items) <= index.literal < len(whole.items):
                raise NotCovered("an item of a tuple by a run-time index")
            return whole.items[index.literal]
        items = self.indices(tree.slice)
        if any(isinstance(item, ast.Slice) for item in items) or len(items) != array(whole).type.ndim:
            return self._sliced(array(whole), items)
        pointer = arrays.place(self.builder, array(whole), [number(self.value(item)) for item in items])
        return arrays.load(self.builder, self.context, self.aliases, array(whole), pointer)

    def indices(self, tree: ast.expr) -> Sequence[ast.expr]:
        return tree.elts if isinstance(tree, ast.Tuple) else [tree]

    def _sliced(self, whole: Array, items: Sequence[ast.expr]) -> Value:
        parts: list[Value] = []
        for item in items:
            if isinstance(item, ast.Slice):
                bounds = [Known(None) if bound is None else self.value(bound)
                          for bound in (item.lower, item.upper, item.step)]
                if item.step is None:
                    bounds.pop()
                parts.append(self.caller.by_numba(self.builder, slice, bounds, {}))
            else:
                parts.append(self.value(item))
        index = parts[0] if len(parts) == 1 else values.Sequence(parts)
        return self.new_temporary(self.caller.by_numba(self.builder, operator.getitem, [whole, index], {}))

    def new_temporary(self, value: Value) -> Value:
        """Remember the owned arrays in it, to be released after the statement unless it keeps them."""
        match value:
            case Array(owned=True):
                self.temporaries.append(value)
            case values.Sequence():
                for item in value.items:
                    self.new_temporary(item)
        return value

    def _attribute(self, tree: ast.Attribute) -> Value:
        owner = self.value(tree.value)
        if isinstance(owner, Known):
            if owner.value is None:
                raise NotCovered("an attribute of None")
            return self._constant(getattr(owner.value, tree.attr))
        if isinstance(owner, Array):
            match tree.attr:
                case "shape":
                    return values.Sequence([arrays.size_of(owner, axis) for axis in range(owner.type.ndim)])
                case "T":
                    return arrays.transposed(owner)
                case "ndim":
                    return literal(owner.type.ndim)
                case "size":
                    return Number(INT, owner.nitems, natural=True)
        if isinstance(owner, Other) and owner.type in (TYPES.complex64, TYPES.complex128) and (
                tree.attr in ("real", "imag")):
            part = self.builder.extract_value(owner.llvm, 0 if tree.attr == "real" else 1)
            return Number(owner.type.underlying_float, part)
        raise NotCovered(f"the attribute {tree.attr}")

    # --- calls ---------------------------------------------------------------------------------------------------

    def _call(self, tree: ast.Call) -> Value:
        keywords = {}
        for keyword in tree.keywords:
            if keyword.arg is None:
                raise NotCovered("** in a call")
            keywords[keyword.arg] = self.value(keyword.value)
        if isinstance(tree.func, ast.Attribute):
            owner = self.value(tree.func.value)
            if not isinstance(owner, Known):
                return self._method(owner, tree.func.attr, [self.value(arg) for arg in tree.args], keywords)
        function = self.value(tree.func)
        if not isinstance(function, Known):
            raise NotCovered("a call of a run-time value")
        match tree.args:
            case [ast.Constant(value=int(x))] if function.value is np.uint64 and 2**63 <= x < 2**64:
                return unsigned(x)
        args = [self.value(arg) for arg in tree.args]
        return self.call(function.value, args, keywords)

    def call(self, function: Any, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        if function is np.iinfo and len(args) == 1 and isinstance(args[0], Known):
            return Known(np.iinfo(args[0].value))
        if function in (allocation.empty, allocation.zeros) and not keywords:
            return self._allocated(args, function is allocation.zeros)
        if function in _FILLED and not keywords:
            return self._filled(function, args)
        if function is np.ascontiguousarray and len(args) == 1 and isinstance(args[0], Array) and args[0].type.ndim:
            return args[0] if args[0].type.layout == "C" else self._copied(args[0])
        if not keywords:
            found = self._converted(function, args) or self._simple(function, args)
            if found is not None:
                return found
        return self.new_temporary(self.caller.call(self.builder, function, args, keywords))

    def _allocated(self, args: Sequence[Value], clear: bool) -> Value:
        sizes = args[0].items if isinstance(args[0], values.Sequence) else [args[0]]
        dtype = FLOAT
        if len(args) == 2:
            dtype = dtype_of(args[1].value) if isinstance(args[1], Known) else None
        if dtype is None or not all(isinstance(number(size).type, TYPES.Integer) for size in sizes):
            raise NotCovered("an allocation")
        made = arrays.new(self, self.builder, self.context, dtype, [number(size) for size in sizes], clear)
        return self._new(made)

    def _filled(self, function: Any, args: Sequence[Value]) -> Value:
        """`np.ones(shape, dtype)` and `np.full(shape, value, dtype)`."""
        shape, *rest = args
        element = rest.pop(0) if function is np.full else literal(1.0)
        dtype = rest or ([Known(as_dtype(TYPES.unliteral(type_of(element))).type)] if function is np.full else [])
        made = array(self._allocated([shape, *dtype], clear=False))
        arrays.fill(self.builder, self.context, made, element)
        return made

    def _copied(self, value: Array) -> Value:
        return self._new(arrays.copied(self, self.builder, self.context, value))

    def _new(self, made: Array) -> Value:
        """Note that the array has memory of its own."""
        made.root = self.aliases.new_root()
        return self.new_temporary(made)

    def _converted(self, function: Any, args: Sequence[Value]) -> Value | None:
        """`np.float32(x)`, `float(x)` and the like of one number."""
        if len(args) != 1 or not isinstance(args[0], Number) or not is_plain(args[0]):
            return None
        to = dtype_of(function) if isinstance(function, type) else None
        if to not in LLVM or (function in (int, float) and args[0].type not in (INT, FLOAT, BOOL)):
            return None
        return cast(self.builder, args[0], to)

    def _simple(self, function: Any, args: Sequence[Value]) -> Value | None:
        """What is one instruction."""
        if function is np.sqrt and len(args) == 1 and isinstance(args[0], Number) and args[0].type in FLOATS:
            x = args[0].llvm
            return Number(args[0].type, self.builder.call(self.builder.module.declare_intrinsic(
                "llvm.sqrt", [x.type]), [x]))
        if function is complex and len(args) == 2 and all(
                isinstance(arg, Number) and arg.type == FLOAT for arg in args):
            return self._complex(*(number(arg) for arg in args))
        if function in (max, min) and len(args) == 2 and all(
                isinstance(arg, Number) and arg.type == INT for arg in args):
            left, right = (number(arg) for arg in args)
            sign = ">" if function is max else "<"
            first = self.builder.icmp_signed(sign, left.llvm, right.llvm)
            return Number(INT, self.builder.select(first, left.llvm, right.llvm),
                          natural=(any if function is max else all)((left.natural, right.natural)))
        return None

    def _complex(self, real: Number, imag: Number) -> Value:
        kind = TYPES.complex128
        struct: Any = ir.Constant(self.context.get_value_type(kind), ir.Undefined)
        for k, part in enumerate((real, imag)):
            struct = self.builder.insert_value(struct, part.llvm, k)
        return Other(kind, struct)

    def _method(self, owner: Value, name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        if not isinstance(owner, Array | Other):
            raise NotCovered(f"the method {name} of a {type(owner).__name__}")
        if name == "copy" and isinstance(owner, Array) and owner.type.ndim and not args and not keywords:
            return self._copied(owner)
        return self.new_temporary(self.caller.by_numba(self.builder, name, args, keywords, this=owner))


def _is_cheap(tree: ast.expr) -> bool:
    """Whether it is a name, a literal, or one sum or product of them."""
    match tree:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_there(left) and _is_there(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_there(operand)
        case _:
            return _is_there(tree)


def _is_there(tree: ast.expr) -> bool:
    """Whether it is a name or a literal, for which no branch is needed.  Other arms keep theirs: LLVM follows branches
    on one condition from statement to statement, which it does not do with selects."""
    return isinstance(tree, ast.Name | ast.Constant)


def _is_light(tree: ast.expr) -> bool:
    """Whether it is made of a few sums and products of names and literals.  Where trips are apart, both arms are
    computed: a loop with branches, which LLVM joins to ways through all of its statements, is poorly vectorised."""
    nodes = list(ast.walk(tree))
    kinds = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.USub, ast.Load)
    return len(nodes) <= LIGHT and all(isinstance(node, kinds) for node in nodes)


def _is_quick(tree: ast.expr) -> bool:
    """Nothing but comparisons and sums of names, sizes and literals."""
    match tree:
        case ast.Compare():
            return all(map(_is_quick, (tree.left, *tree.comparators)))
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            return _is_quick(tree.left) and _is_quick(tree.right)
        case ast.UnaryOp():
            return _is_quick(tree.operand)
        case ast.BoolOp():
            return all(map(_is_quick, tree.values))
        case ast.Subscript(value=ast.Attribute(attr="shape", value=ast.Name()), slice=ast.Constant()):
            return True
        case ast.Name() | ast.Constant():
            return True
    return False
