"""What the StableHLO rules of operations write with: `op.stablehlo(h, *args, **params)` gets a `Printer` as `h`.

Every method emits into the current block and returns a value with an IR type.  Result types follow from the operands.
Numbers that are scalars of the result's own dtype (the fill of a pad, the start of a reduction) are given as Python
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import RuleError
from ..ir.types import BOOL, Type
from .hlo_indexing import Indexing
from .hlo_text import HloValue, Instruction, Region
from .hlo_types import dense, dense_array, function_type, half, kind_of, tensor


class Printer(Indexing):
    """Collects the instructions of one function."""

    def __init__(self, precision: str = "highest") -> None:
        self.precision = precision.upper()
        self.body: list[Instruction] = []
        self.location: str | None = None
        self._constants: dict[Any, HloValue] = {}
        self.required: list[tuple[HloValue, str]] = []

    # --- instructions ----------------------------------------------------------------------------------------

    def emit(self, pieces: Sequence[str | HloValue | Region], *types: Type, is_constant: bool = False) -> Any:
        """One instruction; its result, or a tuple where there are several."""
        results = tuple(HloValue(t) for t in types)
        instruction = Instruction(tuple(pieces), results, is_constant, self.location)
        for value in results:
            value.source = instruction
        self.body.append(instruction)
        return results[0] if len(results) == 1 else results

    @contextmanager
    def _block(self) -> Iterator[list[Instruction]]:
        """Instructions emitted inside go into a block of their own, and constants made there stay there."""
        body, constants = self.body, self._constants
        self.body, self._constants = [], {}
        try:
            yield self.body
        finally:
            self.body, self._constants = body, constants

    def region(self, args: Sequence[Type | HloValue], body: Callable[..., Any], opening: str = "({",
               closing: str = "})", lists_args: bool = True) -> Region:
        """A nested block whose arguments are given to `body`, which returns its result or results."""
        values = tuple(HloValue(a) if isinstance(a, Type) else a for a in args)
        with self._block() as instructions:
            results = body(*values)
        found = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        return Region(values, instructions, found, opening, closing, lists_args)

    def op(self, name: str, *operands: HloValue, type: Type | None = None, attrs: str = "") -> Any:
        """`stablehlo.NAME` (or `chlo.NAME`) on the operands.  type: the result's, that of the first operand if left
        out.  attrs: text after the operands."""
        result = type or operands[0].type
        if name == "bitcast_convert" and half.get() is not None:
            raise RuleError(f"what is read from the bits of a number has no form in {half.get()}", code="E207",
                            kind=NotImplementedError, help='cast to "f32"')
        dialect, _, bare = name.rpartition(".")
        dialect = dialect or "stablehlo"
        types = [o.type for o in operands]
        if dialect == "chlo":
            signature = f"{', '.join(tensor(t) for t in types)} -> {tensor(result)}"
        elif all(t == result for t in types):
            signature = tensor(result)
        else:
            signature = function_type(types, [result])
        made = self.emit([f"{dialect}.{bare} ", *_commas(operands), f"{', ' if attrs else ''}{attrs} : {signature}"],
                         result)
        made.rises = result.rank == 1 and _still_rises(bare, operands)
        return made

    def require(self, pred: HloValue, message: str) -> None:
        """An operation that raises (`Op.raises`) does so, with that message, unless the bool scalar holds."""
        self.required.append((pred, message))

    # --- elementwise -----------------------------------------------------------------------------------------

    def constant(self, value: Any, type: Type) -> HloValue:
        """An array of equal elements; the same one for the same number."""
        text = f"stablehlo.constant {dense(value, type.dtype)} : {tensor(type)}"
        if text not in self._constants:
            made = self._constants[text] = self.emit([text], type, is_constant=True)
            made.number = int(value) if type.kind in "iu" else None
            made.is_even = True
        return self._constants[text]

    def array(self, values: Any, type: Type) -> HloValue:
        """An array of known elements."""
        made = self.emit([f"stablehlo.constant {dense_array(values, type)} : {tensor(type)}"], type, is_constant=True)
        made.rises = type.rank == 1 and type.kind == "i" and bool(np.all(np.diff(values) > 0))
        return made

    def compare(self, direction: str, a: HloValue, b: HloValue) -> HloValue:
        """direction: EQ, NE, LT, LE, GT or GE.  NaN compares as IEEE says."""
        kind = kind_of(a.type.dtype)
        how = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED", "u": "UNSIGNED", "b": "UNSIGNED"}[kind]
        result = a.type.with_dtype("bool")
        return self.emit([f"stablehlo.compare {direction}, ", a, ", ", b,
                          f", {how} : {function_type([a.type, b.type], [result])}"], result)

    def select(self, cond: HloValue, a: HloValue, b: HloValue) -> HloValue:
        return self.emit(["stablehlo.select ", cond, ", ", a, ", ", b, f" : {tensor(cond.type)}, {tensor(a.type)}"],
                         a.type)

    def convert(self, x: HloValue, dtype: str) -> HloValue:
        if x.type.dtype == dtype:
            return x
        return self._shaped("convert", x, x.type.with_dtype(dtype))

    # --- shape -----------------------------------------------------------------------------------------------

    def _shaped(self, name: str, x: HloValue, result: Type, attrs: str = "") -> HloValue:
        return self.emit([f"stablehlo.{name} ", x, f"{attrs} : {function_type([x.type], [result])}"], result)

    def broadcast(self, x: HloValue, shape: Sequence[int], axes: Sequence[int]) -> HloValue:
        """Axis k of x becomes axis axes[k] of the result; sizes of 1 stretch."""
        made = self._shaped("broadcast_in_dim", x, x.type.with_shape(tuple(shape)), f", dims = {list(axes)}")
        made.is_even = not x.type.shape
        return made

    def reshape(self, x: HloValue, shape: Sequence[int]) -> HloValue:
        if tuple(shape) == x.type.shape:
            return x
        if x.number is not None:
            return self.constant(x.number, x.type.with_shape(tuple(shape)))
        return self._shaped("reshape", x, x.type.with_shape(tuple(shape)))

    def transpose(self, x: HloValue, axes: Sequence[int]) -> HloValue:
        return self._shaped("transpose", x, x.type.with_shape(tuple(x.type.shape[a] for a in axes)),
                            f", dims = {list(axes)}")

    def reverse(self, x: HloValue, axes: Sequence[int]) -> HloValue:
        return self.op("reverse", x, attrs=f"dims = {list(axes)}") if axes else x

    def iota(self, type: Type, axis: int) -> HloValue:
        """0, 1, 2, ... along the axis."""
        made = self.emit([f"stablehlo.iota dim = {axis} : {tensor(type)}"], type)
        made.rises = type.rank == 1
        return made

    def slice(self, x: HloValue, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> HloValue:
        bounds = [f"{a}:{b}" + (f":{s}" if s != 1 else "") for a, b, s in zip(starts, limits, strides, strict=True)]
        shape = tuple(len(range(a, b, s)) for a, b, s in zip(starts, limits, strides))
        if shape == x.type.shape:
            return x
        return self._shaped("slice", x, x.type.with_shape(shape), f" [{', '.join(bounds)}]")

    def concatenate(self, xs: Sequence[HloValue], axis: int) -> HloValue:
        shape = list(xs[0].type.shape)
        shape[axis] = sum(x.type.shape[axis] for x in xs)
        result = xs[0].type.with_shape(tuple(shape))
        if len(shape) == 1 and len(xs) > 1 and all(x.number is not None for x in xs):
            return self.array([x.number for x in xs for _ in range(x.type.shape[0])], result)
        return self.emit(["stablehlo.concatenate ", *_commas(xs),
                          f", dim = {axis} : {function_type([x.type for x in xs], [result])}"], result)

    def pad(self, x: HloValue, value: Any, low: Sequence[int], high: Sequence[int],
            interior: Sequence[int]) -> HloValue:
        """`value` around x and between its elements; negative low and high crop."""
        shape = tuple(d + a + b + max(d - 1, 0) * i for d, a, b, i in zip(x.type.shape, low, high, interior))
        fill, result = self.constant(value, x.type.scalar), x.type.with_shape(shape)
        return self.emit(["stablehlo.pad ", x, ", ", fill,
                          f", low = {list(low)}, high = {list(high)}, interior = {list(interior)} : "
                          f"{function_type([x.type, fill.type], [result])}"], result)

    # --- folds, products, control ----------------------------------------------------------------------------

    def reduce(self, name: str, x: HloValue, start: Any, axes: Sequence[int]) -> HloValue:
        """Fold by the binary op `name` along `axes`, beginning with the number `start`, which must change nothing (a
        compiler may use it more than once)."""
        if not axes:
            return x
        result = x.type.with_shape(tuple(d for k, d in enumerate(x.type.shape) if k not in axes))
        first = self.constant(start, x.type.scalar)
        return self.emit(["stablehlo.reduce(", x, " init: ", first,
                          f") applies stablehlo.{name} across dimensions = {list(axes)} : "
                          f"{function_type([x.type, first.type], [result])}"], result)

    def dot_general(self, a: HloValue, b: HloValue, contract: Any, batch: Any = ((), ())) -> HloValue:
        """Result axes: batch, free axes of a, free axes of b.  At the printer's precision, which is full unless asked
        for otherwise; the machine's own default may be a shorter format, as on TPU."""
        (ac, bc), (ab, bb) = contract, batch
        shape = (*(a.type.shape[k] for k in ab), *(d for k, d in enumerate(a.type.shape) if k not in (*ac, *ab)),
                 *(d for k, d in enumerate(b.type.shape) if k not in (*bc, *bb)))
        result = a.type.with_shape(shape)
        batching = f", batching_dims = {list(ab)} x {list(bb)}" if ab else ""
        asked = result.kind in "fc" and self.precision != "DEFAULT"
        precision = f", precision = [{self.precision}, {self.precision}]" if asked else ""
        return self.emit(["stablehlo.dot_general ", a, ", ", b,
                          f"{batching}, contracting_dims = {list(ac)} x {list(bc)}{precision} : "
                          f"{function_type([a.type, b.type], [result])}"], result)

    def sort(self, x: HloValue, axis: int) -> HloValue:
        """Ascending along the axis, NaN last."""
        return self.sort_together([x], axis)[0]

    def argsort(self, x: HloValue, axis: int) -> HloValue:
        """int64 positions that sort x along the axis, NaN last, ties in order."""
        return self.sort_together([x, self.iota(x.type.with_dtype("int64"), axis)], axis)[1]

    def sort_together(self, xs: Sequence[HloValue], axis: int) -> tuple[HloValue, ...]:
        """All arrays in the order that sorts the first; stable."""
        if xs[0].type.kind == "c":
            raise RuleError("StableHLO's sort has no order of complex numbers", code="E207",
                            kind=NotImplementedError)
        scalars = [t.type.scalar for t in xs for _ in range(2)]

        def before(a: HloValue, b: HloValue, *others: HloValue) -> HloValue:
            less = self.compare("LT", a, b)
            if a.type.kind != "f":
                return less
            only_b = self.op("and", self.compare("EQ", a, a), self.compare("NE", b, b))
            return self.op("or", less, only_b)

        types = [x.type for x in xs]
        found = self.emit(['"stablehlo.sort"(', *_commas(xs), f") <{{dimension = {axis} : i64, is_stable = true}}> ",
                           self.region(scalars, before), f" : {function_type(types, types)}"], *types)
        return found if isinstance(found, tuple) else (found,)

    def while_loop(self, inits: Sequence[HloValue], cond: Callable[..., HloValue],
                   body: Callable[..., Sequence[HloValue]], names: Sequence[str | None] | None = None) -> tuple[
                       HloValue, ...]:
        """Carries after `body(h, *carries)` has run as long as `cond(h, *carries)` (a bool scalar) holds.

        names: what the carries are called inside.
        """
        types = [v.type for v in inits]
        carries = tuple(HloValue(t, name) for t, name in zip(types, names or [None] * len(types), strict=True))
        test = self.region(carries, lambda *c: cond(self, *c), " cond {", "}", lists_args=False)
        step = self.region(carries, lambda *c: body(self, *c), " do {", "}", lists_args=False)
        if [r.type for r in test.results] != [BOOL] or [r.type for r in step.results] != types:
            raise RuleError("a StableHLO loop needs a bool scalar, and carries that keep their types")
        opening: list[str | HloValue | Region] = ["stablehlo.while("]
        for k, (carry, init) in enumerate(zip(carries, inits)):
            opening += [", " if k else "", carry, " = ", init]
        found = self.emit([*opening, f") : {', '.join(tensor(t) for t in types)}", test, step], *types)
        return found if isinstance(found, tuple) else (found,)

    def choose(self, pred: HloValue, then: Callable[[], Sequence[HloValue]],
               orelse: Callable[[], Sequence[HloValue]]) -> tuple[HloValue, ...]:
        """What the one of the two that the bool scalar `pred` says emits and returns; the other one does not run."""
        first, second = self.region((), then, "({", "}"), self.region((), orelse, ", {", "})")
        types = [r.type for r in first.results]
        if [r.type for r in second.results] != types:
            raise RuleError("the two sides of a StableHLO branch need results of the same types")
        found = self.emit(['"stablehlo.if"(', pred, ") ", first, second,
                           f" : {function_type([pred.type], types)}"], *types)
        return found if isinstance(found, tuple) else (found,)

    # --- linear algebra --------------------------------------------------------------------------------------

    def triangular_solve(self, a: HloValue, b: HloValue, lower: bool, transpose: bool | str = False,
                         unit: bool = False) -> HloValue:
        """Solve a x = b (or its transpose, or "ADJOINT") for x; a and b of equal rank, leading axes are a batch."""
        kind = transpose if isinstance(transpose, str) else "TRANSPOSE" if transpose else "NO_TRANSPOSE"
        flags = (f"left_side = true, lower = {str(bool(lower)).lower()}, transpose_a = #stablehlo<transpose {kind}>, "
                 f"unit_diagonal = {str(bool(unit)).lower()}")
        return self.emit(['"stablehlo.triangular_solve"(', a, ", ", b,
                          f") <{{{flags}}}> : {function_type([a.type, b.type], [b.type])}"], b.type)

    def cholesky(self, a: HloValue, lower: bool = True) -> HloValue:
        """The Cholesky factor of the matrices in the last two axes; the other triangle is unspecified, and NaN fills
        what is not positive definite."""
        return self.op("cholesky", a, attrs=f"lower = {str(bool(lower)).lower()}")


def _still_rises(name: str, operands: Sequence[HloValue]) -> bool:
    """Whether ints rise along their axis, as those of an operand do; none of them comes near the ends of int64."""
    if len(operands) != 2 or operands[0].type.dtype != "int64":
        return False
    a, b = operands
    if name == "add":
        return (a.rises and b.is_even) or (b.rises and a.is_even)
    if name == "subtract":
        return a.rises and b.is_even
    return name == "multiply" and any(x.rises and (y.number or 0) > 0 for x, y in ((a, b), (b, a)))


def _commas(values: Sequence[HloValue]) -> list[str | HloValue]:
    pieces: list[str | HloValue] = []
    for k, value in enumerate(values):
        pieces += [", ", value] if k else [value]
    return pieces
