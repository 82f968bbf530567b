"""Building IR: a `Builder` collects the statements of one block; the innermost one is current.

    with building() as b:                     # statements emitted here land in b
        y = ops.tanh(x) * 2.0
    block = Block(tuple(b.stmts), (y,))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from . import registry
from .dims import symbols_of
from .nodes import Block, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from .types import BOOL, I64, Type

if TYPE_CHECKING:
    from ..errors import Location

_current: ContextVar[Builder | None] = ContextVar("builder", default=None)

Kept = tuple[tuple[Var, Value], ...]


def _nothing_kept() -> Kept:
    return ()


# What the memory of the caller's arrays is to hold should a check fail that is emitted now (`Check.kept`).
keeping: ContextVar[Callable[[], Kept]] = ContextVar("keeping", default=_nothing_kept)


def kept_now() -> Kept:
    """For a check that is emitted here."""
    return keeping.get()()


class Names:
    """Unique names within one func: `x`, then `x_1`, `x_2`, ..."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self.taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        if hint not in self.taken:
            self.taken.add(hint)
            return hint
        number = self._next.get(hint, 1)
        while f"{hint}_{number}" in self.taken:
            number += 1
        self._next[hint] = number + 1
        name = f"{hint}_{number}"
        self.taken.add(name)
        return name


_PLAIN = re.compile(r"(t|acc)(_\d+)*")


def is_plain(name: str) -> bool:
    """Whether the name is one that nobody chose: `t`, `t_3`, `t_3_1`."""
    return _PLAIN.fullmatch(name) is not None


class Builder:
    """Statements of one block under construction.  `loc` is given to what is emitted next.

    A sharing builder gives an equal pure scalar statement that it (or a builder around it) holds already instead of
    emitting it again.
    """

    def __init__(self, names: Names, loc: Location | None = None, outer: Builder | None = None,
                 share: bool = False) -> None:
        self.stmts: list[Stmt] = []
        self.names = names
        self.loc = loc
        self.outer = outer
        self.share = share
        self.taken_back = 0             # how often; what was emitted before may be gone
        self._known: dict[Any, tuple[Var, ...]] = {}

    def var(self, type: Type, hint: str = "t") -> Var:
        return Var(self.names.fresh(hint), type)

    def let(self, op: Any, args: Sequence[Value], params: Mapping[str, Any], types: Sequence[Type],
            hint: str = "t") -> tuple[Var, ...]:
        shared = self.share and op.is_pure and getattr(op, "is_shareable", True)
        key = expression_key(op, args, params, types) if shared else None
        if key is not None:
            around: Builder | None = self
            while around is not None and around.share:
                if key in around._known:
                    return around._known[key]
                around = around.outer
        targets = tuple(self.var(t, hint) for t in types)
        self.stmts.append(Let(targets, op, tuple(args), dict(params), self.loc))
        if key is not None:
            self._known[key] = targets
        return targets

    def take_back(self, count: int) -> None:
        """Drop all statements but the first `count`."""
        gone = {t for stmt in self.stmts[count:] for t in getattr(stmt, "targets", ())}
        del self.stmts[count:]
        self._known = {key: found for key, found in self._known.items() if gone.isdisjoint(found)}
        self.taken_back += 1

    def offer(self, op: Any, args: Sequence[Value], params: Mapping[str, Any], result: Value) -> None:
        """A value that an equal statement is to be, which stands around this block.  For a sharing builder."""
        if isinstance(result, Var):
            self._known.setdefault(expression_key(op, args, params, (result.type,)), (result,))

    def sees(self, other: Builder) -> bool:
        """Whether what `other` holds is in scope here."""
        around: Builder | None = self
        while around is not None:
            if around is other:
                return True
            around = around.outer
        return False


def expression_key(op: Any, args: Sequence[Value], params: Mapping[str, Any], types: Sequence[Type]) -> Any:
    """Equal for statements that compute the same; constants by value and sign of zero."""
    return (op.name, tuple((repr(a.value), a.type) if isinstance(a, Const) else a for a in args),
            tuple(sorted(params.items(), key=lambda item: item[0])), tuple(types))


def current() -> Builder:
    """The innermost builder; emitting an operation outside of one is a mistake of ours."""
    builder = _current.get()
    if builder is None:
        raise RuntimeError("an IR operation was called outside `with building()`")
    return builder


def is_building() -> bool:
    return _current.get() is not None


@contextmanager
def building(names: Names | None = None, loc: Location | None = None, share: bool | None = None) -> Iterator[Builder]:
    """A new block.  Names, location and sharing are those of the surrounding builder unless given."""
    outer = _current.get()
    if names is None:
        names = outer.names if outer is not None else Names()
    if loc is None and outer is not None:
        loc = outer.loc
    builder = Builder(names, loc, outer, outer.share if share is None and outer is not None else bool(share))
    token = _current.set(builder)
    try:
        yield builder
    finally:
        _current.reset(token)


@contextmanager
def located(loc: Location | None) -> Iterator[None]:
    """Statements emitted inside get this location (kept as it is where None)."""
    builder = current()
    before = builder.loc
    builder.loc = loc if loc is not None else before
    try:
        yield
    finally:
        builder.loc = before


def const(value: Any, type: Type) -> Const:
    """A constant of that type; a shaped type means an array of equal elements."""
    kind = type.kind
    if kind == "b":
        value = bool(value)
    elif kind in "iu":
        value = int(value)
        info = np.iinfo(type.dtype)
        if not info.min <= value <= info.max:
            raise OverflowError(f"{value} does not fit in {type.dtype}")
    elif kind == "f":
        value = float(type.numpy.type(value))
    else:
        value = complex(type.numpy.type(value))
    return Const(value, type)


def int_const(value: int) -> Const:
    return Const(int(value), I64)


def plus(value: Value, distance: int) -> Value:
    """An int64 scalar plus a number, as it is written most simply."""
    if distance == 0:
        return value
    if isinstance(value, Const):
        return int_const(value.value + distance)
    return value + int_const(distance) if distance > 0 else value - int_const(-distance)


def size_value(dim: Any) -> Value:
    """A dimension as an int64 scalar value."""
    return int_const(dim) if isinstance(dim, int) else registry.apply("size", dim=dim)


def for_loop(lo: Value, hi: Value, inits: Sequence[Value], body: Callable[..., Sequence[Value]], *,
             step: int | Value = 1,
             parallel: bool = False, abreast: bool = False, index: str = "i",
             hints: Sequence[str] = ()) -> tuple[Var, ...]:
    """Emit a loop; `body(index, *carries)` is called once, inside the loop's block, and gives the next carries."""
    outer = current()
    at = outer.var(I64, index)
    hints = tuple(hints) or tuple(v.name if isinstance(v, Var) else "acc" for v in inits)
    carries = tuple(outer.var(v.type, hint) for v, hint in zip(inits, hints, strict=True))
    with building() as inner:
        results = tuple(body(at, *carries))
    targets = tuple(outer.var(v.type, hint) for v, hint in zip(inits, hints, strict=True))
    by = int_const(step) if isinstance(step, int) else step
    outer.stmts.append(For(targets, at, lo, hi, by, carries, tuple(inits),
                           Block(tuple(inner.stmts), results), parallel, outer.loc, abreast=abreast))
    return targets


def while_loop(inits: Sequence[Value], cond: Callable[..., Value], body: Callable[..., Sequence[Value]],
               hints: Sequence[str] = ()) -> tuple[Var, ...]:
    """Emit a while loop; `cond(*carries)` gives a bool scalar, `body(*carries)` the next carries."""
    outer = current()
    hints = tuple(hints) or tuple(v.name if isinstance(v, Var) else "acc" for v in inits)
    carries = tuple(outer.var(v.type, hint) for v, hint in zip(inits, hints, strict=True))
    with building() as head:
        pred = cond(*carries)
    with building() as inner:
        results = tuple(body(*carries))
    targets = tuple(outer.var(v.type, hint) for v, hint in zip(inits, hints, strict=True))
    outer.stmts.append(While(targets, carries, tuple(inits), Block(tuple(head.stmts), (pred,)),
                             Block(tuple(inner.stmts), results), outer.loc))
    return targets


def choose(pred: Value, then: Callable[[], Sequence[Value]], orelse: Callable[[], Sequence[Value]],
           hint: str = "t") -> tuple[Var, ...]:
    """Emit an If: only the branch taken is evaluated."""
    outer = current()
    with building() as yes:
        a = tuple(then())
    with building() as no:
        b = tuple(orelse())
    targets = tuple(outer.var(v.type, hint) for v in a)
    outer.stmts.append(If(targets, pred, Block(tuple(yes.stmts), a), Block(tuple(no.stmts), b), outer.loc))
    return targets


def check(pred: Value, kind: str, message: str) -> None:
    """Emit: raise the built-in exception `kind` unless pred (a bool scalar) holds."""
    if isinstance(pred, Const) and pred.value:
        return
    builder = current()
    if pred.type != BOOL:
        raise TypeError("a check needs a bool scalar")
    builder.stmts.append(Check(pred, kind, message, builder.loc, kept_now()))


def build_func(name: str, param_types: Sequence[tuple[str, Type]], body: Callable[..., Sequence[Value]],
               result_names: Sequence[str] = (), names: Names | None = None) -> Func:
    """A func whose body is emitted by `body(*params)`, which gives the results."""
    names = names or Names()
    params = tuple(Var(names.fresh(hint), type) for hint, type in param_types)
    names.taken.update(size for p in params for d in p.type.shape for size in symbols_of(d))
    with building(names) as builder:
        results = tuple(body(*params))
    return Func(name, params, Block(tuple(builder.stmts), results), tuple(result_names))
