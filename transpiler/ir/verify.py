"""Check that a func is well formed.  The pipeline does so after every stage.

Names are unique, every use follows its definition, every type is what the operation's `infer` says, loops and
branches agree with themselves, and every size in a type or parameter is bound: by a bare dimension of a parameter,
or by an int64 scalar of that name in scope.

Carried and yielded types may depend on a carried scalar: `(k: i64 = k0, tape: f64[k] = t0)` wants t0: f64[k0].
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

import numpy as np

from .dims import symbol, symbols_of
from .nodes import Block, Call, Check, Const, For, Func, If, Let, Module, Stmt, Value, Var, While
from .show import show_statement, show_value
from .types import BOOL, I64, SHORT, Type, dims_in, map_dims
from .walk import bound_inside, operands, size_substitution


class InvalidIR(Exception):
    """A mistake of ours, not of the user's."""

    def __init__(self, reason: str, func: Func, stmt: Stmt | None = None) -> None:
        where = f" at\n{show_statement(stmt)}" if stmt is not None else ""
        place = f"\n({stmt.loc})" if stmt is not None and stmt.loc is not None else ""
        super().__init__(f"in {func.name}: {reason}{where}{place}")
        self.reason, self.stmt = reason, stmt


def verify(ir: Func | Module, module: Module | None = None) -> None:
    """Raise InvalidIR unless well formed.  Calls are compared with the functions of `module` where it is given."""
    if isinstance(ir, Module):
        names = [func.name for func in ir.funcs]
        for func in ir.funcs:
            if names.count(func.name) > 1:
                raise InvalidIR("two funcs have this name", func)
            verify(func, ir)
        return
    _Verifier(ir, module).run()


class _Verifier:
    def __init__(self, func: Func, module: Module | None) -> None:
        self.func = func
        self.module = module
        self.stmt: Stmt | None = None
        self.names: set[str] = set()
        self.scope: dict[Var, None] = {}        # in order of definition
        self.sizes: dict[str, int] = {}         # in scope, and how many definitions bind them
        self.lengths: dict[str, Any] = {}       # what the ints are that are sizes
        self.shape_sizes: set[str] = set()
        self.lows: dict[str, int] = {}

    def fail(self, reason: str) -> None:
        raise InvalidIR(reason, self.func, self.stmt)

    def require(self, holds: bool, reason: str) -> None:
        if not holds:
            self.fail(reason)

    def run(self) -> None:
        func = self.func
        for param in func.params:
            for dim in param.type.shape:
                self.shape_sizes.update(name for name in symbols_of(dim) if name == str(dim))
        self.sizes.update((name, 1) for name in self.shape_sizes)
        for param in func.params:
            self.define(param)
        for param in func.params:
            self.type(param.type, f"the type of {param.name}")
        self.block(func.body)
        self.stmt = None
        names = func.result_names
        self.require(not names or len(names) == len(func.results),
                     f"{len(names)} names for {len(func.results)} results")
        self.require(len(func.effects) <= len(func.results), "more effects than results")
        self.kept(zip(func.effects, func.results[len(func.results) - len(func.effects):]))

    def kept(self, pairs: Iterable[tuple[Var, Value]]) -> None:
        """Params with what their memory is to hold."""
        for param, value in pairs:
            self.require(param in self.func.params and bool(param.type.shape), f"{param.name} is no array parameter")
            self.require(_same(param.type, value.type), f"{param.name}: {param.type} is to hold a {value.type}")

    # Scopes.

    def define(self, var: Var) -> None:
        self.require(var.name not in self.names, f"the name {var.name} is bound twice")
        self.names.add(var.name)
        self.scope[var] = None
        if var.type == I64:
            self.sizes[var.name] = self.sizes.get(var.name, 0) + 1

    @contextmanager
    def inside(self, bound: Sequence[Var] = ()) -> Iterator[None]:
        """Definitions made inside are not seen after."""
        before = len(self.scope)
        for var in bound:
            self.define(var)
        for var in bound:
            self.type(var.type, f"the type of {var.name}")
        yield
        while len(self.scope) > before:
            var, _ = self.scope.popitem()
            if var.type == I64:
                self.sizes[var.name] -= 1

    # Uses.

    def use(self, value: Value) -> None:
        if isinstance(value, Const):
            self.type(value.type, "the type of a constant")
            self.require(is_representable(value), f"{show_value(value)} is not representable in its dtype")
        else:
            self.require(value in self.scope, f"{value.name} is used where it is not defined"
                         + (" (another value has that name)" if value.name in self.names else ""))

    def type(self, type: Type, what: str) -> None:
        self.require(type.dtype in SHORT, f"{what} has the unknown dtype {type.dtype!r}")
        self.bound_sizes(type, what)

    def bound_sizes(self, thing: Any, what: str) -> None:
        for dim in dims_in(thing):
            if isinstance(dim, int):
                continue
            for name, size in symbols_of(dim).items():
                self.require(self.sizes.get(name, 0) > 0, f"{what} uses the size {name}, which is not bound")
                low = self.lows.setdefault(name, size.low)
                self.require(low == size.low,
                             f"{what} takes the size {name} to be at least {size.low}, elsewhere it is {low}")

    def scalar(self, value: Value, type: Type, what: str) -> None:
        self.require(value.type == type, f"{what} has type {value.type}, which should be {type}")

    # Statements.

    def block(self, block: Block) -> None:
        owner = self.stmt
        for stmt in block.stmts:
            self.stmt = stmt
            self.statement(stmt)
        self.stmt = owner
        for result in block.results:
            self.use(result)

    def statement(self, stmt: Stmt) -> None:
        for value in operands(stmt):
            self.use(value)
        match stmt:
            case Let():
                for name, value in stmt.params.items():
                    self.bound_sizes(value, f"the parameter {name}")
                self.let(stmt)
                if not stmt.args and "dim" in stmt.params:
                    self.lengths[stmt.target.name] = stmt.params["dim"]
            case Call():
                self.call(stmt)
            case Check():
                self.scalar(stmt.pred, BOOL, "the condition of a check")
                for value in stmt.values:
                    self.require(stmt.prints or not value.type.shape, "an array stands in the message of an exception")
                for value in stmt.lanes:
                    self.scalar(value, I64, "the number of a lane")
                kind = getattr(builtins, stmt.kind, None)
                self.require(stmt.prints or (isinstance(kind, type) and issubclass(kind, Exception)),
                             f"{stmt.kind} is not a built-in exception")
                self.kept(stmt.kept)
            case If():
                self.scalar(stmt.pred, BOOL, "the condition")
                for branch, what in ((stmt.then, "the first branch"), (stmt.orelse, "the else branch")):
                    with self.inside():
                        self.block(branch)
                        self.fits(stmt.targets, branch.results, what)
            case For():
                for value, what in ((stmt.index, "the index"), (stmt.lo, "the start"), (stmt.hi, "the end"),
                                    (stmt.step, "the step")):
                    self.scalar(value, I64, what)
                self.require(not (isinstance(stmt.step, Const) and stmt.step.value == 0), "the step is 0")
                self.loop(stmt)
            case While():
                self.loop(stmt)
            case _:
                assert_never(stmt)
        for target in stmt.targets:
            self.clashes(target, stmt)
            self.define(target)
        for target in stmt.targets:
            self.type(target.type, f"the type of {target.name}")

    def clashes(self, target: Var, stmt: Stmt) -> None:
        """A scalar may share the name of a size that shapes bind only where it is that size."""
        if target.type != I64 or target.name not in self.shape_sizes:
            return
        is_the_size = isinstance(stmt, Let) and not stmt.args and str(stmt.params.get("dim")) == target.name
        self.require(is_the_size, f"{target.name} is also the name of a size, bound by the parameters' shapes")

    def let(self, stmt: Let) -> None:
        try:
            found = stmt.op.infer(*(a.type for a in stmt.args), **stmt.params)
        except Exception as problem:  # whatever a rule may raise on operands that do not suit it
            raise InvalidIR(f"infer refuses: {problem!r}", self.func, stmt) from problem
        types = (found,) if isinstance(found, Type) else tuple(found)
        expected, actual = ", ".join(map(str, types)), ", ".join(str(t.type) for t in stmt.targets)
        self.require(types == tuple(t.type for t in stmt.targets), f"infer says ({expected}), the targets ({actual})")

    def call(self, stmt: Call) -> None:
        if self.module is None:
            return
        try:
            callee = self.module[stmt.func]
        except KeyError:
            raise InvalidIR(f"there is no func {stmt.func}", self.func, stmt) from None
        self.require(len(stmt.args) == len(callee.params),
                     f"{callee.name} takes {len(callee.params)} arguments, not {len(stmt.args)}")
        for param, arg in zip(callee.params, stmt.args):
            self.require((param.type.dtype, param.type.rank) == (arg.type.dtype, arg.type.rank),
                         f"{callee.name} wants {param.name}: {param.type}, not {arg.type}")
        sizes = size_substitution(callee.params, [a.type for a in stmt.args])
        for name, dim in _sizes_of_scalars(callee.params, stmt.args).items():
            sizes.setdefault(name, dim)
        for param, arg in zip(callee.params, stmt.args):
            wanted = _with_sizes(_with_sizes(param.type, sizes), self.lengths)
            self.require(_same(wanted, _with_sizes(arg.type, self.lengths)),
                         f"{callee.name} wants {param.name}: {wanted}, not {arg.type}")
        self.require(len(stmt.targets) == len(callee.results),
                     f"{callee.name} has {len(callee.results)} results, not {len(stmt.targets)}")
        for result, target in zip(callee.results, stmt.targets):
            if isinstance(result, Var) and result.type == I64:
                sizes.setdefault(result.name, symbol(target.name, 0))
        for result, target in zip(callee.results, stmt.targets):
            given = _with_sizes(_with_sizes(result.type, sizes), self.lengths)
            self.require(_same(given, _with_sizes(target.type, self.lengths)),
                         f"{callee.name} gives {given} for {target.name}: {target.type}")

    def loop(self, stmt: For | While) -> None:
        self.fits(stmt.carries, stmt.inits, "the initial values")
        with self.inside(bound_inside(stmt)):
            if isinstance(stmt, While):
                with self.inside():
                    self.block(stmt.cond)
                    self.require(len(stmt.cond.results) == 1, "the condition needs one result")
                    self.scalar(stmt.cond.results[0], BOOL, "the condition")
            self.block(stmt.body)
            self.fits(stmt.carries, stmt.body.results, "the next values")
            self.fits(stmt.targets, stmt.carries, "the carries")

    def fits(self, names: Sequence[Var], values: Sequence[Value], what: str) -> None:
        """Whether the values have the types of the names, where a size named after one of these is its value."""
        self.require(len(names) == len(values), f"{what}: expected {len(names)} values, found {len(values)}")
        sizes = _sizes_of_scalars(names, values)
        for var, value in zip(names, values):
            wanted = _with_sizes(var.type, sizes)
            self.require(_same(wanted, value.type), f"{what}: expected {var.name}: {wanted}, found {value.type}")


def is_representable(const: Const) -> bool:
    """Whether the value is a Python number of the dtype's kind that the dtype holds exactly."""
    value, kind, dtype = const.value, const.type.kind, const.type.numpy
    if kind == "b":
        return type(value) is bool
    if kind in "iu":
        info = np.iinfo(dtype)
        return type(value) is int and int(info.min) <= value <= int(info.max)
    if type(value) is not (float if kind == "f" else complex):
        return False
    parts = (value,) if kind == "f" else (value.real, value.imag)
    with np.errstate(all="ignore"):
        back = dtype.type(value).item()
    kept = (back,) if kind == "f" else (back.real, back.imag)
    return all(a == b or (a != a and b != b) for a, b in zip(parts, kept))


def _sizes_of_scalars(names: Sequence[Var], values: Sequence[Value]) -> dict[str, Any]:
    return {var.name: value.value if isinstance(value, Const) else symbol(value.name, 0)
            for var, value in zip(names, values) if var.type == I64 and value.type == I64}


def _with_sizes(type: Type, sizes: dict[str, Any]) -> Type:
    found: Type = map_dims(type, lambda s: sizes.get(s.name, symbol(s.name, s.low)))
    return found


def _same(left: Type, right: Type) -> bool:
    """Equality of types in which a size may be known with different bounds."""
    def plain(type: Type) -> Any:
        return map_dims(type, lambda s: symbol(s.name, 0))

    return left == right or bool(plain(left) == plain(right))
