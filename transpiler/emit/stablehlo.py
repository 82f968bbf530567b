"""A straight-line tensor-level func as a StableHLO module.

    func f(x: f64[3]):             func.func public @main(%x: tensor<3xf64>) -> tensor<3xf64> {
      y = sin(x)                     %y = stablehlo.sine %x : tensor<3xf64>
      return y                       return %y : tensor<3xf64>
                                   }

Sizes must be ints (`specialise`).  Equal input gives equal text.  Checks are left out: StableHLO cannot raise; what
they guard is the caller's to hold.  Control flow is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from ..errors import RuleError, locate
from ..ir.build import Names, building
from ..ir.dims import symbols_of
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Value, Var, While
from ..ir.types import I64
from ..ir.walk import Copier
from .hlo_printer import Printer
from .hlo_text import HloValue, Writer, identifier, without_unused
from .hlo_types import tensor

if TYPE_CHECKING:
    from ..errors import Location


def emit_stablehlo(func: Func, *, name: str = "main", locations: bool = False) -> str:
    """The text of one module with the one public function `name`.

    locations: end lines with the user's own, as MLIR's `loc("file":line:column)`.  RuleError: a size that is not
    known, control flow, or an operation without a StableHLO form; where the statement has a location, the
    TranspileError drawn over it.
    """
    h = Printer()
    names = Names()
    values: dict[Var, HloValue] = {}
    for param in func.params:
        require_sizes(param)
        values[param] = HloValue(param.type, names.fresh(identifier(param.name)))
    for stmt in func.body.stmts:
        match stmt:
            case Let():
                h.location = _location(stmt.loc) if locations else None
                with _place(stmt.loc):
                    _let(stmt, h, values, names)
            case Check():
                pass
            case If() | For() | While() | Call():
                with _place(stmt.loc):
                    raise RuleError(f"{_KINDS[type(stmt)]} cannot be written in StableHLO yet", code="E207",
                                    kind=NotImplementedError, help="compile it for the CPU")
            case _:
                assert_never(stmt)
    h.location = None
    results = [_value(r, h, values) for r in func.results]
    return _module(func.name, name, [values[p] for p in func.params], h, results, names)


_KINDS: Mapping[type, str] = {If: "An `if` on a value known at run time only", For: "A loop",
                              While: "A `while` loop", Call: "A recursive function"}


def _let(let: Let, h: Printer, values: dict[Var, HloValue], names: Names) -> None:
    for target in let.targets:
        require_sizes(target)
    args = [_value(a, h, values) for a in let.args]
    mark = len(h.body)
    rule = let.op.stablehlo
    why = getattr(rule, "unsupported", None)
    if why is not None:
        raise RuleError(f"{let.op.name} cannot be written in StableHLO: {why}", code="E207", kind=NotImplementedError)
    found = rule(h, *args, **let.params)
    results = tuple(found) if let.op.result_count > 1 else (found,)
    fresh = set(map(id, h.body[mark:]))
    for target, value in zip(let.targets, results, strict=True):
        if value.type != target.type:
            raise RuleError(f"the StableHLO rule of {let.op.name} gives {value.type}, which should be {target.type}")
        values[target] = value
        if value.name is None and id(value.source) in fresh and not value.source.is_constant:
            if all(other.name is None for other in value.source.results):
                value.name = names.fresh(identifier(target.name))


def _value(value: Value, h: Printer, values: Mapping[Var, HloValue]) -> HloValue:
    return h.constant(value.value, value.type) if isinstance(value, Const) else values[value]


def _module(module: str, name: str, params: Sequence[HloValue], h: Printer, results: Sequence[HloValue],
            names: Names) -> str:
    writer = Writer(tuple(names.taken))
    writer.block(without_unused(h.body, results), "    ")
    declared = ", ".join(f"%{p.name}: {tensor(p.type)}" for p in params)
    types = ", ".join(tensor(r.type) for r in results)
    returned = f"return {', '.join(writer.use(r) for r in results)} : {types}" if results else "return"
    return "\n".join([
        f"module @{identifier(module)} {{",
        f"  func.func public @{identifier(name)}({declared}) -> {types if len(results) == 1 else f'({types})'} {{",
        *writer.lines,
        f"    {returned}",
        "  }",
        "}",
        "",
    ])


def specialise(func: Func, sizes: Mapping[str, int]) -> Func:
    """The func with the named sizes replaced by numbers, in every type and parameter.

    ValueError: a name that is no size of the func.  Sizes that are not given stay.
    """
    known = {s for p in func.params for d in p.type.shape for s in symbols_of(d)}
    known |= {p.name for p in func.params if p.type == I64}
    unknown = sorted(set(sizes) - known)
    if unknown:
        raise ValueError(f"{func.name} has no size named {', '.join(unknown)}; its sizes are "
                         f"{', '.join(sorted(known)) or 'all numbers'}")
    if not sizes:
        return func
    with building(Names()) as b:
        copier = Copier(sizes=dict(sizes))
        params = copier.bind_all(func.params)
        for stmt in func.body.stmts:
            copier.statement(stmt)
        results = tuple(copier.value(r) for r in func.results)
    return Func(func.name, params, Block(tuple(b.stmts), results), func.result_names)


def _location(loc: Location | None) -> str | None:
    if loc is None:
        return None
    file = loc.file.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{file}":{loc.line}:{loc.column + 1}'


@contextmanager
def _place(loc: Location | None) -> Iterator[None]:
    """Draw errors over the user's line, where it is known."""
    if loc is None:
        yield
    else:
        with locate(loc):
            yield


def require_sizes(var: Var) -> None:
    """RuleError where a size in the type of `var` is not a number."""
    for dim in var.type.shape:
        if not isinstance(dim, int):
            raise RuleError(f"StableHLO needs every size as a number, and {dim} in {var.name}: {var.type} is not one",
                            code="E207", kind=NotImplementedError,
                            help=f"give it: specialise(func, {{{', '.join(f'{n!r}: ...' for n in symbols_of(dim))}}})")
