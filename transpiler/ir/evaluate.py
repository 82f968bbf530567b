"""Run IR with each operation's NumPy reference: what the IR means, and what every pass and backend is tested against.

Inputs are never written to, and results never share memory with them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

import numpy as np

from ..errors import in_lanes
from .dims import Symbol, substitute, symbols_of
from .nodes import Block, Call, Check, For, Func, If, Let, Module, Stmt, Value, Var, While
from .show import show_statement
from .types import I64, SHORT, Type, map_dims

SCALARS: Mapping[Type, type] = {Type(dtype): np.dtype(dtype).type for dtype in SHORT}
PYTHON_KINDS: Mapping[type, str] = {bool: "b", int: "iu", float: "f", complex: "c"}


class EvaluationError(Exception):
    """A value is not what its type says: an operation's `infer` and `reference` disagree, or the IR is invalid."""


Watch = Callable[[Stmt, Sequence[Any], Sequence[Any]], None]


def evaluate(func: Func | Module, *args: Any, module: Module | None = None,
             watch: Watch | None = None) -> tuple[Any, ...]:
    """The results, as NumPy arrays and scalars.  `watch` is called after each Let with the statement, its operands'
    values and its results.

    Python numbers and lists among the arguments take the parameter's dtype; NumPy values must have it already.
    ValueError: the shapes do not suit the parameters.
    """
    if isinstance(func, Module):
        return evaluate(func.main, *args, module=func, watch=watch)
    with np.errstate(all="ignore"):
        results = _run(func, args, module, watch)
    return tuple(np.array(r) if isinstance(r, np.ndarray) else r for r in results)


def _run(func: Func, args: Sequence[Any], module: Module | None, watch: Watch | None = None) -> tuple[Any, ...]:
    if len(args) != len(func.params):
        raise TypeError(f"{func.name} takes {len(func.params)} arguments, not {len(args)}")
    values = [_argument(func, param, arg) for param, arg in zip(func.params, args)]
    frame = _Frame(func, module, _sizes(func, values), watch)
    for param, value in zip(func.params, values):
        frame.bind(param, value, None)
    return frame.block(func.body)


def _argument(func: Func, param: Var, arg: Any) -> Any:
    dtype = param.type.numpy
    if isinstance(arg, np.ndarray | np.generic):
        if arg.dtype != dtype:
            raise TypeError(f"{func.name}: {param.name} has dtype {arg.dtype}, which should be {dtype}")
        value = np.asarray(arg)
    else:
        value = np.asarray(arg, dtype)
    if value.ndim != param.type.rank:
        raise ValueError(f"{func.name}: {param.name} has {value.ndim} axes, which should be {param.type.rank}")
    return _frozen(value)


def _sizes(func: Func, values: Sequence[Any]) -> dict[str, int]:
    """Sizes bound by the shapes; every other dimension of the parameters must agree with them."""
    found: dict[str, int] = {}
    pairs = [(param, dim, size) for param, value in zip(func.params, values)
             for dim, size in zip(param.type.shape, value.shape)]
    for param, dim, size in pairs:
        for name, named in symbols_of(dim).items():
            if name == str(dim) and found.setdefault(name, size) < named.low:
                raise ValueError(f"{func.name}: {name} is {size} in {param}, but it is at least {named.low}")
    scalars = {param.name: int(value) for param, value in zip(func.params, values) if param.type == I64}
    for name in found.keys() & scalars.keys():
        if found[name] != scalars[name]:
            raise ValueError(f"{func.name}: the argument {name} is {scalars[name]}, but the size {name} {found[name]}")
    for param, dim, size in pairs:
        expected = substitute(dim, {**scalars, **found})
        if expected != size:
            raise ValueError(f"{func.name}: {param} has an axis of {size} elements, which should be {dim} = {expected}")
    return found


def _frozen(value: Any) -> Any:
    """A view that cannot be written to, so that a reference that writes to its arguments is found; 0-d: a scalar."""
    if value.ndim == 0:
        return value[()]
    if value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


class _Frame:
    """One call: its values and sizes."""

    def __init__(self, func: Func, module: Module | None, shape_sizes: Mapping[str, int],
                 watch: Watch | None = None) -> None:
        self.func = func
        self.watch = watch
        self.module = module
        self.shape_sizes = shape_sizes
        self.sizes = dict(shape_sizes)
        self.values: dict[Var, Any] = {}
        self._types: dict[Var, Type] = {}       # of variables whose sizes are those of the arguments
        self._sizeless: set[Let] = set()        # whose params have no named size

    def fail(self, reason: str, stmt: Stmt | None) -> EvaluationError:
        where = f" at\n{show_statement(stmt)}" if stmt is not None else ""
        return EvaluationError(f"in {self.func.name}: {reason}{where}")

    def size(self, symbol: Symbol) -> int:
        if symbol.name not in self.sizes:
            raise EvaluationError(f"in {self.func.name}: the size {symbol.name} is not bound")
        return self.sizes[symbol.name]

    def bind(self, var: Var, value: Any, stmt: Stmt | None) -> None:
        if var.type == I64:
            if self.shape_sizes.get(var.name, value) != value:
                raise self.fail(f"{var.name} is {value}, but the size of that name is {self.sizes[var.name]}", stmt)
            self.sizes[var.name] = int(value)
        self.values[var] = value

    def bind_all(self, targets: Sequence[Var], values: Sequence[Any], stmt: Stmt) -> None:
        if len(targets) == len(values) == 1 and type(values[0]) is SCALARS.get(targets[0].type):
            self.bind(targets[0], values[0], stmt)             # nearly all that loops bind
            return
        if len(targets) != len(values):
            raise self.fail(f"{len(values)} values for {len(targets)} names", stmt)
        values = [self.converted(value, target.type) for target, value in zip(targets, values)]
        for target, value in zip(targets, values):
            self.bind(target, value, stmt)
        for target, value in zip(targets, values):
            if type(value) is SCALARS.get(target.type):
                continue
            expected = self.typed(target)
            if not isinstance(value, np.ndarray | np.generic):
                raise self.fail(f"{target.name} is a {type(value).__name__}, which should be {expected}", stmt)
            if value.dtype != expected.numpy or value.shape != expected.shape:
                actual = f"{value.dtype} of shape {value.shape}"
                raise self.fail(f"{target.name} is {actual}, which should be {expected.dtype} of shape "
                                f"{expected.shape}", stmt)

    def typed(self, var: Var) -> Type:
        """The variable's type with its sizes as they are now."""
        known = self._types.get(var)
        if known is None:
            known = map_dims(var.type, self.size)
            assert isinstance(known, Type)
            if all(symbols_of(d).keys() <= self.shape_sizes.keys() for d in var.type.shape):
                self._types[var] = known
        return known

    def converted(self, value: Any, wanted: Type) -> Any:
        """Python numbers of the right kind become NumPy scalars; arrays are frozen."""
        if isinstance(value, np.ndarray):
            return _frozen(value)
        if not wanted.shape and wanted.kind in PYTHON_KINDS.get(type(value), ""):
            return wanted.numpy.type(value)
        return value

    def value(self, value: Value) -> Any:
        if isinstance(value, Var):
            if value not in self.values:
                raise EvaluationError(f"in {self.func.name}: {value.name} has no value yet")
            return self.values[value]
        if not value.type.shape:
            return value.type.numpy.type(value.value)
        shape = map_dims(value.type, self.size).shape
        return _frozen(np.full(shape, value.value, value.type.numpy))

    def all_values(self, values: Sequence[Value]) -> tuple[Any, ...]:
        return tuple(map(self.value, values))

    def block(self, block: Block) -> tuple[Any, ...]:
        for stmt in block.stmts:
            self.statement(stmt)
        return self.all_values(block.results)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self.bind_all(stmt.targets, self.let(stmt), stmt)
                if self.watch is not None:
                    self.watch(stmt, self.all_values(stmt.args), self.all_values(stmt.targets))
            case Call():
                self.bind_all(stmt.targets, _run(self.callee(stmt), self.all_values(stmt.args), self.module,
                                                  self.watch), stmt)
            case Check():
                if not self.value(stmt.pred):
                    text = stmt.message.format(*self.all_values(stmt.values)) if stmt.values else stmt.message
                    if not stmt.prints:
                        raise getattr(builtins, stmt.kind)(text + in_lanes(self.all_values(stmt.lanes)))
                    print(text, end="")
            case If():
                self.bind_all(stmt.targets, self.block(stmt.then if self.value(stmt.pred) else stmt.orelse), stmt)
            case For():
                carried = self.all_values(stmt.inits)
                for i in range(*map(int, self.all_values((stmt.lo, stmt.hi, stmt.step)))):
                    self.bind(stmt.index, np.int64(i), stmt)
                    self.bind_all(stmt.carries, carried, stmt)
                    carried = self.block(stmt.body)
                self.bind_all(stmt.targets, carried, stmt)
            case While():
                carried = self.all_values(stmt.inits)
                while True:
                    self.bind_all(stmt.carries, carried, stmt)
                    if not self.block(stmt.cond)[0]:
                        break
                    carried = self.block(stmt.body)
                self.bind_all(stmt.targets, carried, stmt)
            case _:
                assert_never(stmt)

    def let(self, stmt: Let) -> Sequence[Any]:
        params = stmt.params
        if stmt not in self._sizeless:
            params = {name: map_dims(value, self.size) for name, value in params.items()}
            if params == stmt.params:
                self._sizeless.add(stmt)
        try:
            result = stmt.op.reference(*self.all_values(stmt.args), **params)
        except Exception as problem:
            problem.add_note(f"in {self.func.name}, evaluating\n{show_statement(stmt)}")
            raise
        return result if isinstance(result, tuple | list) and len(stmt.targets) != 1 else (
            result if isinstance(result, tuple) else (result,))

    def callee(self, stmt: Call) -> Func:
        if self.module is None:
            raise self.fail("a call, but no module is given", stmt)
        return self.module[stmt.func]
