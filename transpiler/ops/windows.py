"""skew: columns shifted against each other, of which convolutions are made.

    sum over j of a[k - j] v[j]  =  sum(skew(a copied along j) * v)

It is a reindexing, so the sum and everything before it become one loop nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import choose, const, size_value
from ..ir.dims import bounds
from ..ir.nodes import Value
from ..ir.types import I64, Type
from .base import grid
from .families import Linear, Lowering, RuleError, Sample, register, sample
from .shape import Reader


@register
class Skew(Linear):
    """Column j of x (..., n, m) moved j places down, or up: z[i, j] = x[i - j, j] or x[i + j, j] for i < size, and 0
    where there is no such row."""

    name, masks = "skew", True
    lowering = Lowering.REINDEX

    def infer(self, x: Type, *, size: Any, down: bool) -> Type:
        if x.rank < 2:
            raise RuleError(f"skew of {x}", kind=ValueError, code="E208")
        return x.with_shape((*x.shape[:-2], size, x.shape[-1]))

    def reference(self, x: Any, *, size: int, down: bool) -> Any:
        n, m = x.shape[-2:]
        result = np.zeros((*x.shape[:-2], size, m), x.dtype)
        for j in range(m):
            for i in range(size):
                row = i - j if down else i + j
                if 0 <= row < n:
                    result[..., i, j] = x[..., row, j]
        return result

    def transpose(self, ct: Value, x: Value, *, size: Any, down: bool) -> Value:
        return ops.skew(ct, size=x.shape[-2], down=not down)

    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Value:
        return ops.skew(args[0], **params)

    def element(self, at: Reader, index: Sequence[Value], types: Sequence[Type], /, **params: Any) -> Value:
        *outer, i, j = index
        n, m = types[0].shape[-2:]
        size, down = params["size"], params["down"]
        row = i - j if down else i + j
        tests = []
        if down:
            tests.append(row >= const(0, I64))
        slack = bounds(n - size if down else n - (size + m - 1))[0]
        if slack is None or slack < 0:
            tests.append(row < size_value(n))
        if not tests:
            return at(0, (*outer, row, j))
        inside = tests[0] if len(tests) == 1 else ops.logical_and(*tests)
        return choose(inside, lambda: (at(0, (*outer, row, j)),), lambda: (const(0, types[0].scalar),))[0]

    def stablehlo(self, h: Any, x: Any, *, size: int, down: bool) -> Any:
        rank, (n, m) = len(x.type.shape), x.type.shape[-2:]
        if not n:
            return h.constant(0, x.type.with_shape((*x.type.shape[:-2], size, m)))
        whole = Type("int64", (size, m))
        rows, columns = h.iota(whole, 0), h.iota(whole, 1)
        places = h.op("subtract" if down else "add", rows, columns)
        zero, last = h.constant(0, whole), h.constant(n - 1, whole)
        inside = h.op("and", h.compare("GE", places, zero), h.compare("LE", places, last))
        found = h.gather(x, [h.op("minimum", h.op("maximum", places, zero), last), columns], (rank - 2, rank - 1))
        found = h.transpose(found, (*range(2, rank), 0, 1))
        inside = h.broadcast(inside, found.type.shape, (rank - 2, rank - 1))
        return h.select(inside, found, h.constant(0, found.type))

    def samples(self) -> list[Sample]:
        return [sample(grid(4, 3), size=6, down=True), sample(grid(6, 3), size=4, down=False),
                sample(grid(4, 3), size=4, down=True), sample(grid(4, 3), size=5, down=False),
                sample(grid(4, 3), size=2, down=True), sample(grid(2, 4, 2), size=5, down=True),
                sample(grid(1, 1), size=1, down=True), sample(grid(3, 2), size=0, down=False),
                sample(grid(4, 2, dtype="float32"), size=3, down=False),
                sample(np.arange(6).reshape(3, 2), size=4, down=True)]
