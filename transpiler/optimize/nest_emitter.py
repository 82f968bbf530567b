"""Loops made of the parts of a nest, in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..ir.build import current, for_loop, int_const
from ..ir.nodes import For, Let, Stmt, Value, Var
from ..ir.walk import Copier, substituted
from .dependence import step_of
from .nest_parts import Nest, Part
from .promote import with_array


class NestEmitter:
    """Emits at the current builder; `arrays` are the newest versions."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.arrays: dict[int, Value] = dict(enumerate(nest.loop.inits))

    def loop(self, like: For, roots: Sequence[int], body: Callable[[Value], None], free: bool = False) -> None:
        """A loop with the trips of `like` that carries these arrays; free: in any order."""
        names = [self.nest.loop.targets[r].name for r in roots]

        def inside(index: Value, *carries: Value) -> list[Value]:
            self.arrays.update(zip(roots, carries))
            body(index)
            return [self.arrays[r] for r in roots]

        before = current().loc
        current().loc = like.loc
        lo, hi, step = like.lo, like.hi, step_of(like)
        if free and step < 0:
            lo, hi, step = hi + int_const(1), lo + int_const(1), 1
        results = for_loop(lo, hi, [self.arrays[r] for r in roots], inside, step=step, index=like.index.name,
                           hints=names)
        current().loc = before
        self.arrays.update(zip(roots, results))

    def trip(self, part: Part, index: Value) -> None:
        """A trip of the outer loop, as far as it belongs to the part."""
        values = self.copy(part.lets, {self.nest.loop.index: index})
        inner = part.loop
        if inner is not None:
            copier = Copier(values)
            like = replace(inner, lo=copier.value(inner.lo), hi=copier.value(inner.hi))
            self.loop(like, part.roots, lambda k: self.inner(inner, {**values, inner.index: k}))

    def inner(self, inner: For, values: Mapping[Var, Value]) -> None:
        self.copy(inner.body.stmts, values)

    def copy(self, stmts: Sequence[Stmt], values: Mapping[Var, Value]) -> dict[Var, Value]:
        copier = Copier(values)
        for let in stmts:
            assert isinstance(let, Let)
            self.copy_let(let, copier)
        return copier.values

    def copy_let(self, let: Let, copier: Copier) -> None:
        root = self.nest.versions.get(let.args[0]) if let.args and isinstance(let.args[0], Var) else None
        if root is not None:
            copier.values[let.args[0]] = self.arrays[root]  # type: ignore[index]
        copier.statement(let)
        if let.op.access in ("store", "add_at") and root is not None:
            self.arrays[root] = copier.value(let.target)

    def finish(self) -> None:
        """The loop's own targets are what others refer to."""
        stmts = current().stmts
        renamed: dict[Var, Value] = {}
        for k, target in enumerate(self.nest.loop.targets):
            array = self.arrays[k]
            assert isinstance(array, Var)
            renamed[array] = target
        for at in range(len(stmts)):
            stmt = substituted(stmts[at], renamed)
            for old in stmt.targets:
                new = renamed.get(old)
                if isinstance(new, Var):
                    stmt = with_array(stmt, old, new)
            stmts[at] = stmt
