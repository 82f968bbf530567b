"""Reading and rewriting IR: uses, substitution, copying into another func, a generic rewriter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from . import dims as dimensions
from .build import Names, building, current, kept_now
from .nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from .types import I64, Type, dims_in, map_dims


def operands(stmt: Stmt) -> tuple[Value, ...]:
    """Values read by the statement itself, not by its blocks."""
    match stmt:
        case Let() | Call():
            return stmt.args
        case If():
            return (stmt.pred,)
        case For():
            return (stmt.lo, stmt.hi, stmt.step, *stmt.inits)
        case While():
            return stmt.inits
        case Check():
            return (stmt.pred, *stmt.values, *stmt.lanes, *(value for _, value in stmt.kept))
        case _:
            assert_never(stmt)


def blocks(stmt: Stmt) -> tuple[Block, ...]:
    match stmt:
        case Let() | Call() | Check():
            return ()
        case If():
            return (stmt.then, stmt.orelse)
        case For():
            return (stmt.body,)
        case While():
            return (stmt.cond, stmt.body)
        case _:
            assert_never(stmt)


def bound_inside(stmt: Stmt) -> tuple[Var, ...]:
    """Names that the statement binds for its blocks."""
    match stmt:
        case For():
            return (stmt.index, *stmt.carries)
        case While():
            return stmt.carries
        case _:
            return ()


def all_statements(block: Block) -> Iterator[Stmt]:
    """Every statement, those of nested blocks after their owner."""
    for stmt in block.stmts:
        yield stmt
        for inner in blocks(stmt):
            yield from all_statements(inner)


def sizes_used(stmt: Stmt) -> set[str]:
    """Named sizes in the statement's own types and parameters."""
    found: set[str] = set()
    for value in (*stmt.targets, *operands(stmt), *bound_inside(stmt)):
        for dim in value.type.shape:
            if not isinstance(dim, int):
                found.update(dimensions.symbols_of(dim))
    if isinstance(stmt, Let):
        for param in stmt.params.values():
            for dim in dims_in(param):
                if not isinstance(dim, int):
                    found.update(dimensions.symbols_of(dim))
    return found


def reads(block: Block) -> set[Any]:
    """Vars read anywhere in the block (also those it defines itself), and the names of sizes it uses."""
    found: set[Any] = {r for r in block.results if isinstance(r, Var)}
    found.update(size for r in block.results for d in r.type.shape for size in dimensions.symbols_of(d))
    for stmt in all_statements(block):
        found.update(v for v in operands(stmt) if isinstance(v, Var))
        found.update(sizes_used(stmt))
        for inner in blocks(stmt):
            found.update(r for r in inner.results if isinstance(r, Var))
            found.update(size for r in inner.results for d in r.type.shape for size in dimensions.symbols_of(d))
    return found


def definitions(block: Block) -> dict[Var, Stmt]:
    """The statement that defines each target in this block and all nested ones."""
    return {target: stmt for stmt in all_statements(block) for target in stmt.targets}


def used_names(func: Func) -> list[str]:
    """Names of values and of sizes: a new value must take neither."""
    names = [p.name for p in func.params]
    names += [size for p in func.params for d in p.type.shape for size in dimensions.symbols_of(d)]
    for stmt in all_statements(func.body):
        names += [v.name for v in (*stmt.targets, *bound_inside(stmt))]
    return names


class Copier:
    """Copies statements to the current builder under a substitution of values and sizes.

    `values` maps Vars to Values; `sizes` maps size names to dimensions.  New targets get fresh names with the old
    ones, or those in `names`, as hints; a size named after a copied scalar follows that scalar's new name.
    """

    def __init__(self, values: Mapping[Var, Value] | None = None, sizes: Mapping[str, Any] | None = None,
                 names: Mapping[Var, str] | None = None) -> None:
        self.names: Mapping[Var, str] = names or {}
        self.values: dict[Var, Value] = dict(values or {})
        self.sizes: dict[str, Any] = dict(sizes or {})
        self._given = frozenset(self.sizes)

    def value(self, value: Value) -> Value:
        if isinstance(value, Const):
            return Const(value.value, self.type(value.type)) if value.type.shape else value
        return self.values.get(value, value)

    def _param(self, param: Var) -> Var:
        """The parameter of the copy in place of one of the original."""
        found = self.values.get(param)
        return found if isinstance(found, Var) else param

    def stand_for(self, old: Var, new: Value) -> None:
        """Let a value of the surroundings of the copy be what the code has in place of `old`; in sizes, too."""
        self.values[old] = new
        if old.type == I64:
            self.sizes[old.name] = int(new.value) if isinstance(new, Const) else dimensions.symbol(new.name, 0)

    def type(self, type: Type) -> Type:
        return map_dims(type, self._size) if type.shape and self.sizes else type

    def params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {k: map_dims(v, self._size) for k, v in params.items()} if self.sizes else dict(params)

    def _size(self, symbol: dimensions.Symbol) -> Any:
        return self.sizes.get(symbol.name, dimensions.DimExpr((((symbol,), 1),)))

    def bind(self, old: Var) -> Var:
        """A fresh var for a target or bound name of the copied code."""
        return self.bind_all((old,))[0]

    def bind_all(self, olds: Sequence[Var]) -> tuple[Var, ...]:
        """Fresh vars for names bound together; ints first, since the others' types may be sized by them."""
        for old in sorted(olds, key=lambda v: bool(v.type.shape)):
            new = current().var(self.type(old.type), self.names.get(old, old.name))
            self.values[old] = new
            if not old.type.shape and old.type.dtype == "int64" and old.name not in self._given:
                self.sizes.pop(old.name, None)
                if new.name != old.name:
                    self.sizes[old.name] = dimensions.symbol(new.name, 0)
        return tuple(self.values[old] for old in olds)  # type: ignore[misc]

    def block(self, block: Block) -> Block:
        """A copied nested block."""
        with building() as inner:
            for stmt in block.stmts:
                self.statement(stmt)
        return Block(tuple(inner.stmts), tuple(self.value(r) for r in block.results))

    def statement(self, stmt: Stmt) -> None:
        """Emit a copy of the statement at the current builder."""
        b = current()
        match stmt:
            case Let():
                args, params = tuple(map(self.value, stmt.args)), self.params(stmt.params)
                b.stmts.append(Let(self.bind_all(stmt.targets), stmt.op, args, params, stmt.loc))
            case Call():
                args = tuple(map(self.value, stmt.args))
                b.stmts.append(Call(self.bind_all(stmt.targets), stmt.func, args, stmt.loc, stmt.needed))
            case Check():
                kept = tuple((self._param(param), self.value(value)) for param, value in stmt.kept)
                values = tuple(map(self.value, stmt.values))
                if not kept and not stmt.prints:
                    kept = kept_now()
                lanes = tuple(map(self.value, stmt.lanes))
                b.stmts.append(Check(self.value(stmt.pred), stmt.kind, stmt.message, stmt.loc, kept, values, lanes))
            case If():
                pred, then, orelse = self.value(stmt.pred), self.block(stmt.then), self.block(stmt.orelse)
                b.stmts.append(If(self.bind_all(stmt.targets), pred, then, orelse, stmt.loc))
            case For():
                lo, hi, step = self.value(stmt.lo), self.value(stmt.hi), self.value(stmt.step)
                inits = tuple(map(self.value, stmt.inits))
                index, carries = self.bind(stmt.index), self.bind_all(stmt.carries)
                body = self.block(stmt.body)
                b.stmts.append(replace(stmt, targets=self.bind_all(stmt.targets), index=index, lo=lo, hi=hi, step=step,
                                       carries=carries, inits=inits, body=body))
            case While():
                inits = tuple(map(self.value, stmt.inits))
                carries = self.bind_all(stmt.carries)
                cond, body = self.block(stmt.cond), self.block(stmt.body)
                b.stmts.append(While(self.bind_all(stmt.targets), carries, inits, cond, body, stmt.loc))
            case _:
                assert_never(stmt)


def renamed(func: Func, names: Mapping[Var, str]) -> Func:
    """A copy of the func in which some variables, none of them params, have other names."""
    copier = Copier(names=names)
    with building(Names(used_names(Func(func.name, func.params, Block((), ()))))):
        body = copier.block(func.body)
    return replace(func, body=body)


def size_substitution(params: Sequence[Var], types: Sequence[Type]) -> dict[str, Any]:
    """What each bare size name in the params' types is in the argument types."""
    sizes: dict[str, Any] = {}
    for param, type in zip(params, types, strict=True):
        for dim, actual in zip(param.type.shape, type.shape, strict=True):
            found = dimensions.symbols_of(dim)
            if len(found) == 1 and str(dim) in found:
                sizes.setdefault(str(dim), actual)
    return sizes


def inline(func: Func, args: Sequence[Value]) -> tuple[Value, ...]:
    """Emit the body of `func` at the current builder with its params replaced; return its results."""
    sizes = size_substitution(func.params, [a.type for a in args])
    for param, arg in zip(func.params, args, strict=True):
        if not param.type.shape and param.type.dtype == "int64":
            if isinstance(arg, Const):
                sizes.setdefault(param.name, int(arg.value))
            elif arg.name != param.name:
                sizes.setdefault(param.name, dimensions.symbol(arg.name, 0))
    copier = Copier(dict(zip(func.params, args, strict=True)), sizes)
    for stmt in func.body.stmts:
        copier.statement(stmt)
    return tuple(copier.value(r) for r in func.results)


Rewrite = Callable[[Let], "Let | Value | Sequence[Value] | None"]


def rewrite(func: Func, change: Rewrite) -> Func:
    """Replace Lets, innermost blocks included.

    `change(let)` is given each Let with already replaced operands, inside a builder: it returns the Let itself to
    keep it, or the value (values) to use instead of its targets; what it emitted stands before.  An int that a size
    is named after is kept.  Returns `func` itself when nothing changed.
    """
    changed = False
    sizes = {name for stmt in all_statements(func.body) for name in sizes_used(stmt)} | {
        name for r in func.results for d in r.type.shape for name in dimensions.symbols_of(d)}

    def visit(block: Block, replaced: dict[Var, Value]) -> Block:
        nonlocal changed
        with building() as b:
            for stmt in block.stmts:
                new = with_operands(stmt, replaced)
                if not isinstance(new, Let):
                    b.stmts.append(with_blocks(new, tuple(visit(x, replaced) for x in blocks(new))))
                    continue
                b.loc = new.loc
                result = None if any(t.name in sizes for t in new.targets) else change(new)
                if result is new or result is None:
                    b.stmts.append(new)
                    continue
                changed = True
                if isinstance(result, Let):
                    b.stmts.append(result)
                    continue
                values = (result,) if isinstance(result, (Var, Const)) else tuple(result)
                replaced.update(zip(new.targets, values, strict=True))
        return with_contents(block, b.stmts, [replacement(r, replaced) for r in block.results])

    with building(Names(used_names(func))):
        body = visit(func.body, {})
    return replace(func, body=body) if changed else func


def replacement(value: Value, replaced: Mapping[Var, Value]) -> Value:
    """What stands for the value in the end."""
    while isinstance(value, Var) and value in replaced:
        value = replaced[value]
    return value


def with_operands(stmt: Stmt, replaced: Mapping[Var, Value]) -> Stmt:
    """The statement reading other values; blocks are left alone."""
    old = operands(stmt)
    new = tuple(replacement(v, replaced) for v in old)
    if all(a is b for a, b in zip(old, new)):
        return stmt
    match stmt:
        case Let():
            return Let(stmt.targets, stmt.op, new, stmt.params, stmt.loc)
        case Call():
            return Call(stmt.targets, stmt.func, new, stmt.loc, stmt.needed)
        case Check():
            counts = len(stmt.values), len(stmt.lanes)
            values, lanes, rest = new[1:counts[0] + 1], new[counts[0] + 1:sum(counts) + 1], new[sum(counts) + 1:]
            kept = tuple((param, value) for (param, _), value in zip(stmt.kept, rest, strict=True))
            return Check(new[0], stmt.kind, stmt.message, stmt.loc, kept, values, lanes)
        case If():
            return If(stmt.targets, new[0], stmt.then, stmt.orelse, stmt.loc)
        case For():
            return replace(stmt, lo=new[0], hi=new[1], step=new[2], inits=new[3:])
        case While():
            return While(stmt.targets, stmt.carries, new, stmt.cond, stmt.body, stmt.loc)
        case _:
            assert_never(stmt)


def substituted(stmt: Stmt, replaced: Mapping[Var, Value]) -> Stmt:
    """The statement and all inside of it reading other values."""
    if not replaced:
        return stmt
    inner = [Block(tuple(substituted(s, replaced) for s in b.stmts),
                   tuple(replacement(r, replaced) for r in b.results)) for b in blocks(stmt)]
    return with_blocks(with_operands(stmt, replaced), inner)


def same_value(a: Value, b: Value) -> bool:
    """Whether two scalars are one variable or equal constants."""
    return a is b or (isinstance(a, Const) and isinstance(b, Const) and a.value == b.value and a.type == b.type)


def with_blocks(stmt: Stmt, new: Sequence[Block]) -> Stmt:
    """The statement with other blocks."""
    if all(a is b for a, b in zip(blocks(stmt), new)):
        return stmt
    match stmt:
        case If():
            return If(stmt.targets, stmt.pred, new[0], new[1], stmt.loc)
        case For():
            return replace(stmt, body=new[0])
        case While():
            return While(stmt.targets, stmt.carries, stmt.inits, new[0], new[1], stmt.loc)
        case Let() | Call() | Check():
            return stmt
        case _:
            assert_never(stmt)


def with_contents(block: Block, stmts: Sequence[Stmt], results: Sequence[Value] | None = None) -> Block:
    """A block of these statements and results (or the same results): the block itself if it has just these."""
    new = block.results if results is None else tuple(results)
    same = len(stmts) == len(block.stmts) and all(a is b for a, b in zip(stmts, block.stmts))
    return block if same and all(a is b for a, b in zip(new, block.results)) else Block(tuple(stmts), new)


def with_body(func: Func, body: Block) -> Func:
    return func if body is func.body else replace(func, body=body)


def exchanged(func: Func, change: Callable[[Stmt, Stmt], Iterable[Stmt]]) -> Func:
    """The func with other statements in the places of its own, inner blocks first.

    `change(stmt, old)` is given each statement with what has become of its blocks, and as it was, inside a builder.
    """
    def visit(block: Block) -> Block:
        stmts: list[Stmt] = []
        for old in block.stmts:
            stmts += change(with_blocks(old, [visit(b) for b in blocks(old)]), old)
        return with_contents(block, stmts)

    with building(Names(used_names(func))):
        return with_body(func, visit(func.body))


def beside(func: Func, other: Func, count: int) -> Func:
    """`other`, which has the params of `func` and more, with its first `count` results from the statements of `func`.

    So these do not wait for the params that only `other` has, even where one of its statements makes both.
    """
    with building(Names(used_names(other))) as b:
        copier = Copier(dict(zip(func.params, other.params)))
        for stmt in func.body.stmts:
            copier.statement(stmt)
    results = (*(copier.value(r) for r in func.results[:count]), *other.results[count:])
    return Func(other.name, other.params, Block((*b.stmts, *other.body.stmts), results))


def prints(block: Block) -> bool:
    """Whether anything in the block prints."""
    return any(isinstance(s, Check) and s.prints for s in all_statements(block))


def without_prints(block: Block) -> Block:
    """The block for a copy that runs beside another one."""
    kept = [s for s in block.stmts if not (isinstance(s, Check) and s.prints)]
    return Block(tuple(with_blocks(s, [without_prints(b) for b in blocks(s)]) for s in kept), block.results)


def map_results(func: Func, results: Iterable[Value], names: Sequence[str] = ()) -> Func:
    """The same body with other results."""
    return Func(func.name, func.params, Block(func.body.stmts, tuple(results)), tuple(names))
