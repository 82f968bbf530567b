"""What an operation is: one object that holds every rule the system needs about it.

    infer(types..., **params)              result type (or a tuple of them)
    reference(arrays..., **params)         its meaning, in NumPy
    jvp(tangents, args, result, **params)  result's tangent; `tangents` has None for zero, never all None
    vjp(ct, args, result, wanted, **params)  a cotangent, None (zero) or `Into` for each argument
    batch(args, batched, **params)         the op over a leading batch axis of the arguments that are `batched`
    gains_from_batch(types, batched)       whether that is less work than a loop over the batch
    mark(marks, args, result, **params)    which elements of the result depend on which of the arguments: see `marks`
    lowering                               how it becomes loops: see `Lowering`
    stablehlo(h, args..., **params)        StableHLO, through an `emit.hlo_printer.Printer`
    samples()                              valid inputs: the laws in tests/ops run every rule on each

An op with several results has `result_count > 1`; `result`, `ct` and the returns are then tuples.

Rules are written on IR values and emit IR.  A forgotten rule is an error at import (the class stays abstract); one
left out on purpose is `unsupported("why")`.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import RuleError
from ..ir import registry
from ..ir.build import const, current
from ..ir.nodes import Const, Let, Value, Var
from ..ir.types import Type


class unsupported:
    """A rule left out on purpose: its use is an error that says why."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self.rule = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        def refuse(*args: Any, **params: Any) -> Any:
            raise RuleError(f"{instance.name} has no {self.rule} rule: {self.why}", kind=NotImplementedError)

        refuse.unsupported = self.why  # type: ignore[attr-defined]
        return refuse


class Lowering(enum.Enum):
    """How a tensor operation becomes loops.

    ELEMENTWISE  the same op on scalars; `scalar` is its source text
    REINDEX      `element(at, index, types, **params)`: one element of the result from elements of the arguments
    REDUCTION    `init`, `step`, `finish` over `params["axes"]`
    SCATTER      argument 1 is written into argument 0: `space`, `place`, `adds`
    EXPAND       `expand(*arrays, **params)` emits loops over materialised arrays
    KERNEL       a library call; `kernel` is its source text
    """

    ELEMENTWISE = enum.auto()
    REINDEX = enum.auto()
    REDUCTION = enum.auto()
    SCATTER = enum.auto()
    EXPAND = enum.auto()
    KERNEL = enum.auto()


@dataclass(frozen=True, slots=True)
class Into:
    """A cotangent contribution that is cheaper added into an existing adjoint: `add(adjoint) -> new adjoint`."""

    add: Callable[[Value], Value]


@dataclass(frozen=True, slots=True)
class Folding:
    """What `total = op(total, x)` for one x after the other comes to.

    reduction: the operation that does it along an axis.  scan: the one that also gives all totals on the way.
    term: what is folded for x.  joins: the operation that joins two totals.  commutes: total may be either argument.
    kinds: NumPy's kind letters of the dtypes for which all this holds.  of_nothing: whether the reduction has a result
    where there is no x.  writes: the operation that does it to an element of an array, if there is one.
    """

    reduction: str
    scan: str
    joins: str
    kinds: str
    of_nothing: bool
    writes: str | None = None
    commutes: bool = True
    term: Callable[[Value], Value] = lambda x: x


class Product(enum.Enum):
    """PLAIN: any two numbers are multiplied.  ZEROS_WIN: 0 as the first argument gives 0 whatever the second is."""

    PLAIN = enum.auto()
    ZEROS_WIN = enum.auto()


@dataclass(frozen=True)
class Search:
    """How to find which x is the best.  reduction: the operation that gives the place of the first along an axis.
    scan: the one that gives the best so far."""

    reduction: str
    scan: str


@dataclass(frozen=True)
class Sample:
    """Inputs of one call.  corner: at a kink, tie or edge, so not compared with differences."""

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    corner: bool = False


def sample(*args: Any, corner: bool = False, **params: Any) -> Sample:
    return Sample(args, params, corner)


def grid(*shape: int, low: float = -2.0, high: float = 2.0, dtype: str = "float64", seed: int = 0) -> Any:
    """Distinct, irregular values in [low, high), the same every time."""
    values = np.random.default_rng([seed, *shape]).uniform(low, high, shape)
    return values.astype(dtype)[()]


class Op(ABC):
    """One operation.  Subclass a family below (or in its own file) rather than this."""

    name: str
    result_count: int = 1
    is_pure = True
    is_shareable = True         # equal calls may be one; not so where the result is meant to be written into
    is_unset = False            # an array whose elements are whatever, all of which are going to be stored
    lowering: Lowering
    scalar: Any = None          # ELEMENTWISE: Python source with {0}, {1}, or a function of the argument types to it
    access: str | None = None   # what emission writes as an index: "load", "store" or "add_at"
    kernel: Any = None          # KERNEL: Python source with {0}, {1}, {out} (allocated before); without {out}: returns
    library: str | None = None  # KERNEL: whose routine does the work, "BLAS" or "LAPACK"
    raises: type[Exception] | None = None       # KERNEL: what its routine raises for some values of argument 0
    checked_kinds: str = ""     # kinds of argument 0 for which others are checked before: places exist, and the like
    folding: Folding | None = None      # of two arguments: what applying it to one element after the other comes to
    relates: str | None = None  # a comparison: its sign
    prefers: tuple[Search, Search] | None = None    # a comparison: how to find the best x where it compares x to the
                                # best so far, and where it compares the best so far to x
    repeats: tuple[str, Any] | None = None     # of one argument: the op of two, and the other one, that do the same
    connects: str | None = None     # of bools: "and", "or" or "not"
    stops_derivatives = False   # its result does not move with its argument
    chooses = False             # of three arguments: the second where the first is true, else the third
    multiplies: Product | None = None   # of two arguments: their product
    cost: int = 1               # about how many flops one element takes; over 4 is not recomputed in fusion
    any_order = False           # what it adds up along a loop may be added in another order, so that it is vectorised
    short: str | None = None    # what generated code calls a result that nobody named (else a letter)
    masks: bool = True          # its vjp may give exact zeros by structure (a branch not taken, a place not read)

    # --- calling -------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Emit this operation at the current builder and return its result (or tuple of results)."""
        values = self.prepare(*args)
        types = self.infer(*(v.type for v in values), **params)
        targets = current().let(self, values, params, types if isinstance(types, tuple) else (types,),
                                self.hint(values))
        return targets if isinstance(types, tuple) else targets[0]

    def prepare(self, *args: Any) -> tuple[Value, ...]:
        """Python numbers become constants of the other arguments' type."""
        like = next((a.type for a in args if isinstance(a, (Var, Const))), None)
        return tuple(a if isinstance(a, (Var, Const)) else lift(a, like) for a in args)

    def hint(self, args: Sequence[Value]) -> str:
        """A first name for the result."""
        return "t"

    def simplify(self, args: Sequence[Value], **params: Any) -> Value | None:
        """A simpler value that equals the result, bit for bit; None where there is none.  Must be exact: x * 1 is x,
        x + 0.0 is not (it turns -0.0 into 0.0)."""
        return None

    def as_dimension(self, *args: Any, **params: Any) -> Any | None:
        """Optional, of int scalars: the result as a dimension, from the arguments as dimensions."""
        return None

    additive: tuple[int, ...] = ()              # arguments to which the rest is only added
    sums_apart = False          # of two arguments: the sum of results is the result of the two arguments' sums

    linear_in: tuple[tuple[int, ...], ...] = ()     # sets of arguments in which it is linear, the others held fixed

    def giving_only(self, used: Sequence[bool]) -> Op | None:
        """Of several results: an op of the same arguments and parameters that gives those used, and costs less."""
        return None

    def derivatives_left(self, **params: Any) -> float:
        """How often more a call with these parameters can be differentiated, where there is a limit to that."""
        return float("inf")

    # --- rules ---------------------------------------------------------------------------------------------

    @abstractmethod
    def infer(self, *args: Any, **params: Any) -> Any: ...

    @abstractmethod
    def reference(self, *args: Any, **params: Any) -> Any: ...

    @abstractmethod
    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Any, **params: Any) -> Any: ...

    @abstractmethod
    def vjp(self, ct: Any, args: Sequence[Value], result: Any, wanted: Sequence[bool],
            **params: Any) -> Sequence[Value | Into | None]: ...

    parts_from_zero = False     # whether results that are zero coincide with something, too

    def parting(self, args: Sequence[Value], result: Sequence[Value], **params: Any) -> Sequence[Value | None] | None:
        """Optional, for rules that divide by differences of results: a direction for each result in which coinciding
        ones part.  Such an op has `jvp_limit` and `vjp_limit` too: see `transforms.limits`."""
        return None

    def jvp_limit(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Sequence[Value],
                  **params: Any) -> Sequence[Value | None]:
        raise NotImplementedError(self.name)

    def vjp_limit(self, moved: Sequence[Value | None], again: Sequence[Value | None], args: Sequence[Value],
                  result: Sequence[Value], **params: Any) -> Sequence[Value | None]:
        raise NotImplementedError(self.name)

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Any, **params: Any) -> Any:
        """What the result's elements depend on, as `jvp` is asked for the tangent.  See `ops.marks`.

        Without a rule of its own an op that moves elements moves their marks; anything else depends on all of them.
        """
        if self.lowering is Lowering.REINDEX or (self.lowering is Lowering.SCATTER and not self.adds):
            return self(*marks_of(marks, args), **params)
        everything = registry.OPERATIONS["union"].of_all(marks)
        results = result if self.result_count > 1 else (result,)
        found = [registry.OPERATIONS["union"].over(everything, r.shape, ()) for r in results]
        return tuple(found) if self.result_count > 1 else found[0]

    @abstractmethod
    def batch(self, args: Sequence[Value], batched: Sequence[bool], **params: Any) -> Any: ...

    def gains_from_batch(self, types: Sequence[Type], batched: Sequence[bool], **params: Any) -> bool:
        """Whether `batch` does less than the op once for each element, apart from what fused loops would do as well:
        vmap then keeps the op out of loops over the batch."""
        return False

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], **params: Any) -> Any:
        """For StableHLO, where arrays have room for more elements than they have (`emit.hlo_room`): the arguments with
        which the op, its sizes being those of the room, is right for the elements that there are; or the result; None
        where there is no such form.

        args: with room; what lies beyond their lengths is anything.  types, params: those of the running function.
        """
        return args if self.lowering is Lowering.ELEMENTWISE or self.is_unset else None

    def harmless(self, x: Type) -> Value:
        """An argument 0 of that type for which an operation that `raises` does not."""
        raise NotImplementedError(self.name)

    @abstractmethod
    def stablehlo(self, h: Any, *args: Any, **params: Any) -> Any: ...

    @abstractmethod
    def samples(self) -> list[Sample]: ...

    # --- lowering rules; the one that `lowering` names is implemented ---------------------------------------

    def element(self, at: Callable[[int, Sequence[Value]], Value], index: Sequence[Value], types: Sequence[Type], /,
                **params: Any) -> Value:
        """REINDEX: the result's element at `index` (int64 scalars); `at(k, index)` reads argument k."""
        raise NotImplementedError(self.name)

    def copies_along(self, types: Sequence[Type], **params: Any) -> tuple[int, ...]:
        """REINDEX: result axes along which elements of the argument repeat (recomputing them there has a price)."""
        return ()

    def view(self, types: Sequence[Type], params: Mapping[str, Any]) -> str | None:
        """REINDEX: NumPy source that gives the result as a view of argument {0}, for library kernels; else None."""
        return None

    def pieces(self, types: Sequence[Type], **params: Any) -> Any:
        """REINDEX, optional: (fill, [(k, starts, steps, axes), ...]) where the result is glued from its arguments.

        Argument k fills the places `starts[a] + steps[a] * i` along result axis a; its own axes are result axes
        `axes`.  Places of no piece are `fill` (None: there are none).  None where this form does not fit.
        """
        return None

    def destination(self, types: Sequence[Type], /, **params: Any) -> Callable[[Sequence[Value]], list[Value]] | None:
        """REINDEX of one argument, optional: the function from an element's index in the argument to its index in the
        result, where each element goes to one place and that place is cheaper to find than where to read."""
        return None

    adds: bool = False          # SCATTER: adds to what is there, else replaces it

    def space(self, types: Sequence[Type], /, **params: Any) -> tuple[Any, ...]:
        """SCATTER: the shape of what is written."""
        return types[1].shape

    def place(self, at: Callable[[int, Sequence[Value]], Value], index: Sequence[Value], types: Sequence[Type], /,
              **params: Any) -> tuple[Value, ...]:
        """SCATTER: where in argument 0 the element `index` of argument 1 goes."""
        raise NotImplementedError(self.name)

    def lies_along(self, types: Sequence[Type], **params: Any) -> tuple[int, ...] | None:
        """REINDEX, optional: which axis of the result each axis of the argument is, where elements move with their axes
        alone and repeat along the other axes of the result."""
        return None

    single_accumulator = True   # REDUCTION: one accumulator of the result's own dtype
    is_sum = False              # REDUCTION: adds along `axes`, so accumulators of parts of the range may be added

    def init(self, x: Type, **params: Any) -> tuple[Value, ...]:
        """REDUCTION: first values of the accumulators."""
        raise NotImplementedError(self.name)

    def step(self, accumulators: Sequence[Value], element: Value, index: Sequence[Value],
             **params: Any) -> tuple[Value, ...]:
        """REDUCTION: accumulators after one more element; `index` are its positions along the reduced axes."""
        raise NotImplementedError(self.name)

    def finish(self, accumulators: Sequence[Value], **params: Any) -> Value:
        """REDUCTION: the result from the accumulators."""
        return accumulators[0]

    def expand(self, *args: Value, **params: Any) -> Any:
        """EXPAND: loops (ir.build.for_loop, load, store, add_at at scalar indices) that compute the result."""
        raise NotImplementedError(self.name)


def lift(value: Any, like: Type | None) -> Const:
    """A Python number as a constant of the type `like` (float64, int64 or bool scalars without it)."""
    if like is not None:
        return const(value, like)
    dtype = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else (
        "float64" if isinstance(value, float) else "complex128")
    return const(value, Type(dtype))


def register(cls: type[Op]) -> Op:
    """Class decorator: put the operation into the table.  The name in the module then is the instance."""
    return registry.register(cls())


# ---------------------------------------------------------------------------------------------------------------
# simplification


_definitions: ContextVar[Mapping[Var, Let] | None] = ContextVar("definitions", default=None)


@contextmanager
def known_definitions(definitions: Mapping[Var, Let]) -> Iterator[None]:
    """Let `definition` look through values while a pass runs."""
    token = _definitions.set(definitions)
    try:
        yield
    finally:
        _definitions.reset(token)


def definition(value: Value) -> Let | None:
    """The Let that defines the value, as far as the running pass knows."""
    known = _definitions.get()
    return known.get(value) if known is not None and isinstance(value, Var) else None


# ---------------------------------------------------------------------------------------------------------------
# cotangents and zeros


class Zeros(enum.Enum):
    """What is known about the zeros of the cotangent (or tangent) that a rule is working on.

    NONZERO  a constant without zeros: an infinite partial may come through
    PLAIN    zeros only by coincidence: they must survive partials that are singular
    MASKED   zeros by structure, where the primal may have been inf or NaN: they must survive any partial
    """

    NONZERO = enum.auto()
    PLAIN = enum.auto()
    MASKED = enum.auto()


_zeros: ContextVar[Zeros] = ContextVar("zeros", default=Zeros.MASKED)


def zeros_known() -> Zeros:
    return _zeros.get()


@contextmanager
def cotangent_zeros(kind: Zeros) -> Iterator[None]:
    """Rules called inside work on a cotangent of this kind."""
    token = _zeros.set(kind)
    try:
        yield
    finally:
        _zeros.reset(token)


def times(ct: Value, partial: Any, *, singular: bool) -> Value:
    """ct * partial in which zeros of the cotangent survive where they must (design: a cotangent of exactly zero
    stays zero through an infinite partial).  `singular`: the partial may be infinite at finite inputs."""
    zeros = zeros_known()
    if zeros is Zeros.NONZERO or (zeros is Zeros.PLAIN and not singular):
        return registry.apply("multiply", ct, partial)
    return registry.apply("scale", ct, partial)


# ---------------------------------------------------------------------------------------------------------------
# marks


_unsteady: ContextVar[Container[Any]] = ContextVar("unsteady", default=())


@contextmanager
def unsteady_values(values: Container[Any]) -> Iterator[None]:
    """Rules for marks that are called inside know that these values follow from real or complex inputs."""
    token = _unsteady.set(values)
    try:
        yield
    finally:
        _unsteady.reset(token)


def is_steady(value: Value) -> bool:
    """Whether the value follows from sizes, ints and bools alone, so that marks may do so, too."""
    return isinstance(value, Const) or value not in _unsteady.get()


def mark_type(type: Type) -> Type:
    return Type("int64", type.shape)


def marks_of(marks: Sequence[Value | None], args: Sequence[Value]) -> list[Value]:
    """Arguments for an op on marks: zeros where a number depends on nothing; ints, such as indices, as they are."""
    return [mark if mark is not None else const(0, mark_type(a.type)) if a.type.is_inexact else a
            for mark, a in zip(marks, args, strict=True)]


# ---------------------------------------------------------------------------------------------------------------
# batching helpers


def batch_size(args: Sequence[Value], batched: Sequence[bool]) -> Any:
    """The batch dimension."""
    return next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)


def batch_all(args: Sequence[Value], batched: Sequence[bool]) -> tuple[Value, ...]:
    """Every argument with the batch axis first, copied along it where it had none."""
    size = batch_size(args, batched)
    return tuple(a if b else registry.apply("broadcast", a, shape=(size, *a.shape),
                                            axes=tuple(range(1, a.rank + 1)))
                 for a, b in zip(args, batched, strict=True))
