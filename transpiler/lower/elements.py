"""One element of a tensor expression as scalar code.

A *virtual* value has no array: whoever needs an element computes it from elements of its operands.  An element
of any other array is a `load`, and every load is recorded: the scheduler fuses by what is read where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import ops
from ..ir.build import Builder, Names, building, current, located
from ..ir.index import At
from ..ir.nodes import Const, Let, Stmt, Value, Var
from ..ops.base import Lowering


@dataclass(eq=False)
class Scalars:
    """Straight scalar code: statements, what they give, the loads of arrays among them, and the statements on whole
    arrays of which it computes an element."""

    stmts: list[Stmt]
    results: tuple[Value, ...]
    loads: list[Let] = field(default_factory=list)
    virtual: list[Let] = field(default_factory=list)


class Elements:
    """Builds `Scalars` for elements of values; `virtual` maps each virtual value to its defining Let.

    sizes: names of sizes that dimensions use, which nothing new may take: what is copied takes the sizes named after
    its ints along.
    """

    def __init__(self, virtual: Mapping[Var, Let], sizes: Iterable[str]) -> None:
        self.virtual = virtual
        self.names = Names(tuple(sizes))
        self.loads: list[Let] = []
        self.computed: list[Let] = []
        self._known: dict[Any, tuple[Value, Builder]] = {}

    def scalars(self, make: Any, loc: Any = None) -> Scalars:
        """Run `make()` in a fresh block and collect what it emits."""
        self.loads, self.computed, self._known = [], [], {}
        with building(self.names, loc, share=True) as b:
            results = tuple(make())
        return Scalars(b.stmts, results, self.loads, self.computed)

    def element(self, value: Value, index: Sequence[Value]) -> Value:
        """The scalar at `index`."""
        if isinstance(value, Const):
            return Const(value.value, value.type.scalar) if value.type.shape else value
        key = (value, tuple(i.value if isinstance(i, Const) else i for i in index))
        known = self._known.get(key)
        if known is not None and current().sees(known[1]):
            return known[0]
        found = self._compute(value, index)
        self._known[key] = (found, current())
        return found

    def _compute(self, value: Var, index: Sequence[Value]) -> Value:
        let = self.virtual.get(value)
        if let is None:
            return self._load(value, index) if value.type.shape else value
        self.computed.append(let)
        with located(let.loc):
            if let.op.lowering is Lowering.ELEMENTWISE:
                operands = [self.element(a, index) for a in let.args]
                (result,) = current().let(let.op, operands, let.params, (value.type.scalar,), value.name)
                return result
            types = [a.type for a in let.args]
            result = let.op.element(lambda k, at: self.element(let.args[k], at), tuple(index), types, **let.params)
            return result

    def _load(self, array: Var, index: Sequence[Value]) -> Value:
        result = ops.load(array, *index, index=(At(),) * len(index))
        made = current().stmts[-1] if current().stmts else None
        if isinstance(made, Let) and made.targets[0] is result:
            self.loads.append(made)
        return result
