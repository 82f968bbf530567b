"""Families of operations: each answers the rules that follow from what its members have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import registry
from ..ir.build import building
from ..ir.dims import same_size, shown_shape
from ..ir.nodes import Const, Value, Var
from ..ir.types import Type
from .base import Into, Lowering, Op, RuleError, Sample, batch_all, lift, register, sample, times, unsupported

__all__ = ["Creation", "Elementwise", "Into", "Linear", "Lowering", "NoGradient", "Op", "Reduction", "RuleError",
           "Sample", "broadcast_shapes", "elementwise", "register", "sample", "times", "unsupported"]


def broadcast_shapes(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """NumPy's broadcast of symbolic shapes.

    Sizes known to be 1 stretch; two sizes that are not known to differ are taken as equal (the frontend has put
    the guard that makes them so); sizes that differ raise NumPy's ValueError.
    """
    rank = max(map(len, shapes), default=0)
    result = []
    for axis in range(rank):
        found: Any = 1
        for shape in shapes:
            at = axis - rank + len(shape)
            if at < 0 or shape[at] == 1:
                continue
            if found == 1:
                found = shape[at]
            elif found != shape[at]:
                if not same_size(found, shape[at]):
                    shown = " ".join(map(shown_shape, shapes))
                    raise RuleError(f"operands could not be broadcast together with shapes {shown}", code="E301")
                found = found if isinstance(found, int) else shape[at] if isinstance(shape[at], int) else found
        result.append(found)
    return tuple(result)


def broadcast_to(x: Value, shape: tuple[Any, ...]) -> Value:
    """x stretched to `shape` by NumPy's rules, through the explicit op."""
    if x.shape == tuple(shape):
        return x
    if isinstance(x, Const):
        return Const(x.value, x.type.with_shape(shape))
    return registry.apply("broadcast", x, shape=tuple(shape), axes=tuple(range(len(shape) - x.rank, len(shape))))


class Elementwise(Op):
    """Acts on each element alone.  Arguments have equal shapes; dtypes as the op says.

    partials(*args, r) gives one partial derivative for each argument: a value, a number, or None where the op is
    piecewise constant in it.  `singular` names the arguments (by number) whose partial can be infinite or NaN at
    finite inputs: products with it keep exact zeros (see `times`).
    """

    masks = False

    lowering = Lowering.ELEMENTWISE
    partials: Callable[..., Sequence[Any]] | None = None
    singular: tuple[int, ...] = ()
    result_dtype: Callable[..., str] | None = None      # of the arguments' dtypes; the first's without it
    kinds: str = "biufc"                                 # NumPy's kind letters of the dtypes it takes
    hlo: Any = None                                      # StableHLO op name, or a function (h, *args) -> value

    def prepare(self, *args: Any) -> tuple[Value, ...]:
        like = next((a.type.scalar for a in args if isinstance(a, (Var, Const))), None)
        values = [a if isinstance(a, (Var, Const)) else lift(a, like) for a in args]
        shape = broadcast_shapes(*(v.shape for v in values))
        return tuple(broadcast_to(v, shape) for v in values)

    def infer(self, *args: Type, **params: Any) -> Type:
        if any(a.shape != args[0].shape for a in args):
            raise RuleError(f"{self.name} got shapes {', '.join(str(a) for a in args)}")
        for a in args:
            if a.kind not in self.kinds:
                raise RuleError(f"{self.name} does not take {a.dtype}", kind=TypeError, code="E309")
            if a.dtype == "float16":
                raise RuleError(f"{self.name} of float16 is not supported", kind=TypeError, code="E307",
                                help="compute in float32: x.astype(np.float32)")
        dtype = self.result_dtype(*(a.dtype for a in args)) if self.result_dtype else args[0].dtype
        return Type(dtype, args[0].shape)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        total: Value | None = None
        for k, (partial, tangent) in enumerate(zip(self._partials(args, result), tangents, strict=True)):
            if tangent is None or partial is None:
                continue
            term = self._product(tangent, partial, k in self.singular, forward=True)
            total = term if total is None else total + term
        return total

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [None if partial is None or not want else self._product(ct, partial, k in self.singular)
                for k, (partial, want) in enumerate(zip(self._partials(args, result), wanted, strict=True))]

    def _partials(self, args: Sequence[Value], result: Value) -> Sequence[Any]:
        if self.partials is None or (not args[0].type.is_inexact and not any(a.type.is_inexact for a in args)):
            return [None] * len(args)
        return self.partials(*args, result)

    @staticmethod
    def _product(ct: Value, partial: Any, singular: bool, forward: bool = False) -> Value:
        if isinstance(partial, (int, float)):
            return ct if partial == 1 else -ct if partial == -1 else ct * partial
        if forward:
            return registry.apply("chain", ct, partial) if singular else ct * partial
        return times(ct, partial, singular=singular)

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        """The union of the operands in which it has a partial derivative."""
        if type(self).jvp is not Elementwise.jvp:
            return registry.OPERATIONS["union"].of(marks)
        with building():                                   # of partials it matters only which there are
            partials = self._partials(args, result)
        return registry.OPERATIONS["union"].of([m for m, p in zip(marks, partials, strict=True) if p is not None])

    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Any:
        return self(*batch_all(args, batched), **params)

    def stablehlo(self, h: Any, *args: Any, **params: Any) -> Any:
        if callable(self.hlo):
            return self.hlo(h, *args, **params)
        return h.op(self.hlo, *args, type=self.infer(*(a.type for a in args), **params))


def elementwise(name: str, function: Callable[..., Any], *, partials: Any, scalar: Any, stablehlo: Any,
                samples: list[Sample], singular: tuple[int, ...] = (), result_dtype: Any = None, cost: int = 1,
                kinds: str = "biufc", simplify: Callable[..., Value | None] | None = None,
                as_dimension: Callable[..., Any] | None = None, doc: str = "") -> Elementwise:
    """A row of the table: an elementwise op whose reference is `function`.

    partials: `lambda *args, r: (...)`, or None for a piecewise constant op.  scalar: source with {0}, {1}, or a
    function of the argument types to it.  kinds: NumPy's kind letters of the dtypes it takes.  stablehlo: op name,
    or (h, *args) -> value, or `unsupported(why)`.  simplify: `lambda *args: value or None`, see `Op.simplify`.
    as_dimension: `lambda *dims: dim`, see `Op.as_dimension`.
    """
    body: dict[str, Any] = {
        "name": name, "partials": staticmethod(partials) if partials else None, "scalar": staticmethod(scalar) if
        callable(scalar) else scalar, "singular": singular, "cost": cost, "__doc__": doc or f"Elementwise {name}.",
        "result_dtype": staticmethod(result_dtype) if result_dtype else None, "kinds": kinds,
        "reference": lambda self, *args, **params: function(*args), "samples": lambda self: samples}
    if simplify is not None:
        body["simplify"] = lambda self, args, **params: simplify(*args)
    if as_dimension is not None:
        body["as_dimension"] = lambda self, *args, **params: as_dimension(*args)
    if isinstance(stablehlo, unsupported):
        body["stablehlo"] = stablehlo
    else:
        body["hlo"] = staticmethod(stablehlo) if callable(stablehlo) else stablehlo
    op: Any = register(type(name, (Elementwise,), body))
    return op


class Linear(Op):
    """Linear in the arguments `linear` (by number) together with the others held fixed; states its transpose.

    transpose(ct, *args, **params): the cotangent of argument 0.  An op that is linear in several arguments
    separately (a product) overrides jvp and vjp instead.
    """

    linear: tuple[int, ...] = (0,)

    def transpose(self, ct: Value, *args: Value, **params: Any) -> Value | Into:
        raise NotImplementedError(self.name)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Any, **params: Any) -> Any:
        return None if tangents[0] is None else self(tangents[0], *args[1:], **params)

    def vjp(self, ct: Value, args: Sequence[Value], result: Any, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [self.transpose(ct, *args, **params) if wanted[0] else None, *[None] * (len(args) - 1)]


class Reduction(Op):
    """Folds `params["axes"]` (a sorted tuple of non-negative ints) away."""

    lowering = Lowering.REDUCTION

    def infer(self, x: Type, *, axes: tuple[int, ...], **params: Any) -> Type:
        return x.with_shape(tuple(d for k, d in enumerate(x.shape) if k not in axes))

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
             axes: tuple[int, ...], **params: Any) -> Any:
        return registry.OPERATIONS["union"].along(marks[0], axes)

    def idle(self, x: Type, **params: Any) -> Value:
        """An element that changes nothing."""
        return self.init(x, **params)[0]

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                axes: tuple[int, ...], **params: Any) -> Any:
        return [room.filled(args[0], types[0], axes, self.idle(types[0], axes=axes, **params))]

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, axes: tuple[int, ...],  # type: ignore[override]
              **params: Any) -> Any:
        return self(args[0], axes=tuple(a + 1 for a in axes), **params)


class NoGradient:
    """Mixin: piecewise constant or integer valued, so every derivative is zero."""

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        return None

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Any, **params: Any) -> Any:
        return None

    def vjp(self, ct: Value, args: Sequence[Value], result: Any, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [None] * len(args)


class Creation(NoGradient, Op):
    """Makes an array from parameters alone."""

    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Any:
        raise RuleError(f"{self.name} has no arguments to batch")


def restore_axes(x: Value, axes: tuple[int, ...], shape: tuple[Any, ...]) -> Value:
    """A reduced array copied back along `axes` to `shape`."""
    kept = tuple(k for k in range(len(shape)) if k not in axes)
    if isinstance(x, Const):
        return Const(x.value, x.type.with_shape(shape))
    return registry.apply("broadcast", x, shape=tuple(shape), axes=kept)
