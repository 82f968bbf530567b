"""What an expression gives while it is being compiled: a Numba type and LLVM values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.core import types

from .aliases import Root

TYPES: Any = types      # Numba's own hints know only some of its types


class NotCovered(Exception):
    """The text holds something that this compiler leaves to Numba; says what."""


@dataclass(eq=False)
class Number:
    """A scalar.

    literal: its value where the text gives it, an int.  natural: an int that is known to be 0 or more.
    """

    type: Any
    llvm: Any
    literal: int | None = None
    natural: bool = False


@dataclass(eq=False)
class Array:
    """The members of Numba's array structure as LLVM values.

    owned: the value brings a reference of its own, which whoever has it last must release.
    root: whose memory it may be (`aliases`); None where that is not known.
    """

    type: Any
    meminfo: Any
    parent: Any
    nitems: Any
    itemsize: Any
    data: Any
    shape: list[Any]
    strides: list[Any]
    owned: bool = False
    root: Root = None


@dataclass(eq=False)
class Sequence:
    """A tuple of values."""

    items: list[Value]


@dataclass(eq=False)
class Known:
    """A Python object that stands in the text: a function, a module, a dtype, None."""

    value: Any


@dataclass(eq=False)
class Other:
    """A value of another type of Numba's, as Numba's own code made it."""

    type: Any
    llvm: Any


Value = Number | Array | Sequence | Known | Other

INT = TYPES.int64
FLOAT = TYPES.float64
BOOL = TYPES.boolean


def items_of(kind: Any) -> list[Any]:
    """The types in a tuple type; of another one, itself."""
    return list(kind) if isinstance(kind, TYPES.BaseTuple) else [kind]


def number(value: Value) -> Number:
    if not isinstance(value, Number):
        raise NotCovered(f"a number is wanted where there is a {type(value).__name__}")
    return value


def array(value: Value) -> Array:
    if not isinstance(value, Array):
        raise NotCovered(f"an array is wanted where there is a {type(value).__name__}")
    return value
