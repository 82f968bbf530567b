"""What names stand for while a function is interpreted.

    IR value (Var, Const)   a NumPy scalar known at run time
    ArrayRef                an array: a mutable cell, or a view of one, so that names alias as Python's do
    Weak                    a Python bool, int, float or complex known at run time
    DimExpr                 a Python int made of array sizes
    Instance                an object made, or passed in, with such values in its fields
    Closure, BoundMethod, Partial, TransformValue, ArrayMethod    things to call
    anything else           a Python object known while transpiling; lists, tuples and dicts hold all of these
"""

from __future__ import annotations

import functools
import itertools
import re
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir.build import Builder, current
from ..ir.dims import DimExpr
from ..ir.nodes import Const, Value, Var
from ..ir.types import Type
from ..ops.base import RuleError
from ..ops.spelling import Weak, python_type, static_array

if TYPE_CHECKING:
    from ..errors import Location
    from .environment import Frame
    from .source import FunctionSource

HEAP_TYPE = 1 << 9        # of `type.__flags__`: made by a class statement
_serials = itertools.count()
KNOWN_SIZE = 256          # arrays of at most this many elements are computed while transpiling when they can be


@dataclass(eq=False, slots=True)
class Leaf:
    """A run-time argument.  `type` has its symbols chosen; `weak`: a Python scalar.

    example: the value of this call, if there is one; it decides shape guards, and stands in when the value turns
    out to be needed while transpiling.  layout: "C" where arrays are C-contiguous; without it the example tells.
    writable: False for a read-only array.  stored: the half precision in which a float32 comes, for machines that have
    such.
    """

    type: Type
    weak: bool = False
    example: Any = None
    differentiable: bool = False
    layout: str | None = None
    writable: bool = True
    stored: str | None = None


class View:
    """One step from an array to a view of it."""

    def read(self, base: Value) -> Value:
        """The view, given the array."""
        raise NotImplementedError

    def read_known(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """The same in NumPy; None where the view itself depends on run-time values."""
        raise NotImplementedError

    def write(self, base: Value, part: Value) -> Value | None:
        """The array after `part` is written to the view; None where this cannot be done."""
        return None


@dataclass(frozen=True)
class FunctionView(View):
    """A view that a spelling makes, such as a transpose: `function` emits it, `reference` is NumPy's (None where its
    options are known only at run time)."""

    function: Callable[[Value], Value]
    reference: Callable[[Any], Any] | None
    inverse: Callable[[Value, Value], Value] | None = None

    def read(self, base: Value) -> Value:
        return self.function(base)

    def read_known(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        return None if self.reference is None else np.asarray(self.reference(base))

    def write(self, base: Value, part: Value) -> Value | None:
        return None if self.inverse is None else self.inverse(base, part)


class ArrayRef:
    """An array.  Either a buffer, whose current version is `value` or, known while transpiling, `known`; or a view
    that reads from `base`'s current version.

    owner: "local", or whose array it is: "argument", "captured", "read-only".
    """

    __slots__ = ("_cached", "base", "decided_at", "depends", "is_certain", "is_flat", "known", "layout", "made_at",
                 "may_be_number", "owner", "recipe", "serial", "type", "value", "version", "view")

    def __init__(self, value: Value | None = None, *, known: np.ndarray[Any, Any] | None = None,
                 base: ArrayRef | None = None, view: View | None = None, owner: str = "local",
                 recipe: Callable[[], Value] | None = None, layout: str = "A") -> None:
        self.value, self.known, self.base, self.view, self.owner = value, known, base, view, owner
        self.recipe = recipe                # how to emit the elements of a known array, better than one by one
        self.serial = next(_serials)        # older than a nested block, or made inside it?
        self.layout = layout                # order in memory, see `layout`
        self.is_certain = True              # False: NumPy may have made a copy where this is a view
        self.is_flat = False                # `x.flat`: parts of it are copies
        self.may_be_number = False          # see `either`
        self.version = 0
        self.made_at = 0                    # the base's version when this view was made
        self.depends: tuple[tuple[ArrayRef, int], ...] = ()       # arrays that this may be, in what version
        self.decided_at: Location | None = None                   # the branch or loop that decides which
        self._cached: tuple[int, Builder, int, Value] | None = None
        if value is not None:
            self.type = value.type
        elif known is not None:
            self.type = Type(known.dtype.name, known.shape)
            self.layout = "C" if known.flags.c_contiguous else "A"
        if (value is not None or known is not None) and self.type.rank <= 1 and owner == "local":
            self.layout = "C"

    @staticmethod
    def of_view(base: ArrayRef, view: View, value: Value | None, *, layout: str = "A",
                is_certain: bool = True) -> ArrayRef:
        """A view; `value` is what it reads as now, if that was emitted already."""
        ref = ArrayRef(base=base, view=view, owner=base.owner, layout=layout)
        ref.is_certain, ref.made_at = is_certain and base.is_certain, base.root.version
        if value is not None:
            ref._remember(value)
            ref.type = value.type
        else:
            known = ref.current_known()
            assert known is not None
            ref.type = Type(known.dtype.name, known.shape)
        return ref

    @property
    def root(self) -> ArrayRef:
        ref = self
        while ref.base is not None:
            ref = ref.base
        return ref

    @property
    def current_value(self) -> Value | None:
        """What it was last read as, if it was read."""
        return self.value if self.value is not None or self._cached is None else self._cached[3]

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    @property
    def dtype(self) -> str:
        return self.type.dtype

    def current_known(self) -> np.ndarray[Any, Any] | None:
        """The elements as they are now, where they are known while transpiling."""
        if self.base is None:
            return self.known
        base = self.base.current_known()
        return None if base is None or self.view is None else self.view.read_known(base)

    def check_certain(self, writing: bool = False) -> None:
        """An error where the program depends on whether NumPy made a view or a copy, or on which of two arrays a
        branch or a loop has left under this name."""
        root = self.root
        if root.depends and (writing or any(other.version != version for other, version in root.depends)):
            raise RuleError(f"which array this is was decided at run time by {root.decided_at or 'a branch'}, and one "
                            "that it may be is written to", code="E123", kind=ValueError,
                            help="make it a copy: `b = a.copy()`")
        if not self.is_certain and (writing or self.made_at != self.root.version):
            raise RuleError("whether this reshaped array is a view or a copy depends on its order in memory, and one "
                            "of the two is written to", code="E123",
                            help="make it a copy: `b = a.reshape(...).copy()`")

    def read(self) -> Value:
        """The elements as they are now, emitting what is needed to get them."""
        self.check_certain()
        if self.value is not None:
            return self.value
        # What was emitted inside another block may not be visible here, so it is emitted again.
        if self._cached is not None and self._cached[:3] == (self.root.version, current(), current().taken_back):
            return self._cached[3]
        if self.base is not None:
            assert self.view is not None
            value = self.view.read(self.base.read())
        elif self.recipe is not None:
            value = self.recipe()
        else:
            assert self.known is not None
            value = static_array(self.known)
        return self._remember(value)

    def _remember(self, value: Value) -> Value:
        self._cached = (self.root.version, current(), current().taken_back, value)
        return value

    def write(self, value: Value | None, known: np.ndarray[Any, Any] | None = None) -> bool:
        """Replace all elements, seen through every name and view.  False where a view cannot be written through."""
        if self.base is None:
            self.value, self.known, self.recipe = value, known, None
            self.version += 1
            return True
        assert self.view is not None and value is not None
        whole = self.view.write(self.base.read(), value)
        if whole is None or not self.base.write(whole):
            return False
        self._remember(value)
        return True


class OuterList(list):  # type: ignore[type-arg]
    """A list that belongs to the caller or to the surroundings of the function: it must not be changed."""


class OuterDict(dict):  # type: ignore[type-arg]
    """A dict that belongs to the caller or to the surroundings of the function; `cls` is what it is there."""

    cls: type = dict


@dataclass(eq=False)
class Instance:
    """An object of class `cls`; its attributes are `fields`."""

    cls: type
    fields: dict[str, Any]
    outer: bool = False


@dataclass(eq=False)
class Closure:
    """A function defined while interpreting."""

    name: str
    node: Any
    frame: Frame
    source: FunctionSource
    defaults: tuple[Any, ...] = ()
    kw_defaults: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class BoundMethod:
    function: Any
    receiver: Any


@dataclass(eq=False)
class Native:
    """A function of the frontend's own: `(interpreter, *args, **kwargs) -> abstract value`."""

    function: Callable[..., Any]


@dataclass(eq=False)
class ArrayMethod:
    """`x.sum` of an array or a NumPy scalar."""

    name: str
    receiver: Any


@dataclass(eq=False)
class Partial:
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(eq=False)
class Super:
    """What `super()` gives."""

    cls: type
    receiver: Any


@dataclass(eq=False)
class TransformValue:
    """`grad(f)` and the like: `kind` is the transform's name, `fun` what it is applied to (None while it is a
    decorator with options only)."""

    kind: str
    fun: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Maybe:
    """A variable that has a value only where `is_set`, a bool known at run time, is true.

    is_none: elsewhere it is None; otherwise it is not set at all.
    """

    value: Any
    is_set: Value
    is_none: bool = False


@dataclass(eq=False)
class Poison:
    """A variable that has no one value after a branch or in a loop: reading it raises `problem`.

    preds: conditions to make static, if that can be, before giving up.
    """

    problem: Exception
    preds: tuple[Any, ...] = ()


_FIELD = re.compile(r"\{[^{}]*\}")


class OpaqueText(str):
    """Text with run-time values in it.  It may stand in the message of an exception, or be printed, and nowhere else.

    template, values: as `str.format` takes them.
    """

    template: str
    values: tuple[Any, ...]

    def __new__(cls, template: str, values: tuple[Any, ...] = ()) -> OpaqueText:
        made = super().__new__(cls, _FIELD.sub("...", template))
        made.template, made.values = template, values
        return made


class OpaqueNumber(OpaqueText):
    """A run-time number that an exception is given as it is.

    scalar: the NumPy class that the program gives it; None for Python's own."""

    scalar: type | None

    def __new__(cls, value: Any, scalar: type | None = None) -> OpaqueNumber:
        made: Any = super().__new__(cls, "{}", (value,))
        made.scalar = scalar
        return made


@dataclass(eq=False)
class Masked:
    """`x[mask]` with a mask known at run time, which covers the leading axes of the array; see `masked`."""

    array: Value
    mask: Value
    loc: Location | None = None
    own: tuple[Builder, Value] | None = None         # the elements side by side, and where that is known

    @property
    def rest(self) -> int:
        """How many axes each selected element has."""
        return self.array.rank - self.mask.rank

    def whole_mask(self, shape: tuple[Any, ...] | None = None) -> Value:
        """The mask for each element of the array (or of an array of a shape that it stretches to)."""
        shape = self.array.shape if shape is None else shape
        if self.mask.rank == len(shape):
            return self.mask
        return ops.broadcast(self.mask, shape=shape, axes=tuple(range(self.mask.rank)))


def is_scalar(x: Any) -> bool:
    """A NumPy scalar known at run time."""
    return isinstance(x, (Var, Const))


def unboxed(x: Any) -> Any:
    """An array without axes as the scalar in it; anything else as it is."""
    if not isinstance(x, ArrayRef) or x.type.shape:
        return x
    known = x.current_known()
    return x.read() if known is None else known[()]


def is_runtime(x: Any) -> bool:
    """An array or scalar that is not known while transpiling (dimensions count as run-time ints)."""
    if isinstance(x, ArrayRef):
        return x.current_known() is None
    return isinstance(x, (Var, Const, Weak, DimExpr, Masked))


OPAQUE = (OpaqueText, Instance, Closure, BoundMethod, ArrayMethod, Native, Partial, Super, TransformValue)


LIBRARIES = ("numpy", "scipy", "math", "cmath", "builtins", "functools", "operator", "itertools", "dataclasses",
             "typing", "collections", "gradsmith", "numba", "enum", "abc", "types")


def is_object(x: Any) -> bool:
    """An object of a class that the user wrote: its special methods are code to interpret."""
    if isinstance(x, Instance):
        return True
    kind = type(x)
    return bool(kind.__flags__ & HEAP_TYPE) and not isinstance(x, (type, tuple, list, dict, str, int, float)) and (
        kind.__module__.partition(".")[0] not in LIBRARIES)


def is_static(x: Any) -> bool:
    """Known while transpiling, all the way down."""
    if isinstance(x, (ArrayRef, Var, Const, Weak, DimExpr, Masked)):
        return not is_runtime(x)
    if isinstance(x, OPAQUE):
        return False
    if isinstance(x, (list, tuple, set, frozenset)):
        return all(map(is_static, x))
    if isinstance(x, dict):
        return all(map(is_static, x.values()))
    if isinstance(x, slice):
        return is_static((x.start, x.stop, x.step))
    return True


def to_python(x: Any) -> Any:
    """A static value as Python and NumPy know it: known arrays become NumPy arrays."""
    if isinstance(x, ArrayRef):
        known = x.current_known()
        assert known is not None
        return known.copy()
    if isinstance(x, tuple) and type(x) is not tuple:
        return type(x)._make(map(to_python, x)) if hasattr(x, "_make") else x
    if isinstance(x, (list, tuple)):
        kind = tuple if isinstance(x, tuple) else list
        return x if not any(_holds_arrays(v) for v in x) and type(x) in (tuple, list) else kind(map(to_python, x))
    if isinstance(x, dict):
        return {k: to_python(v) for k, v in x.items()}
    if isinstance(x, slice):
        return slice(to_python(x.start), to_python(x.stop), to_python(x.step))
    return x


def _holds_arrays(x: Any) -> bool:
    return isinstance(x, (ArrayRef, list, tuple, dict, slice))


def from_numpy(x: Any) -> Any:
    """A result computed while transpiling: arrays become known ArrayRefs, zero-dimensional ones scalars."""
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biufc":
            return x
        return ArrayRef(known=np.array(x)) if x.ndim else np.asarray(x)[()]
    if type(x) in (list, tuple):
        return type(x)(map(from_numpy, x))
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return type(x)._make(map(from_numpy, x))
    if type(x) is dict:
        return {k: from_numpy(v) for k, v in x.items()}
    return x


def type_of(x: Any) -> type:
    """What `type(x)` is in the user's program."""
    if isinstance(x, (ArrayRef, Masked)):
        return np.ndarray
    if isinstance(x, (Var, Const)):
        return np.dtype(x.type.dtype).type
    weak = python_type(x)
    if weak is not None:
        return weak
    if isinstance(x, Instance):
        return x.cls
    if isinstance(x, Closure):
        return types.FunctionType
    if isinstance(x, BoundMethod):
        return types.MethodType
    if isinstance(x, Partial):
        return functools.partial
    if isinstance(x, TransformValue):
        return types.FunctionType
    if isinstance(x, OuterList):
        return list
    if isinstance(x, OpaqueText):
        return str
    if isinstance(x, OuterDict):
        return dict
    return type(x)
