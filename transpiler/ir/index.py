"""The items of a basic index, as `load`, `store` and `add_at` carry them in their `index` parameter.

    At()                     one run-time int scalar, the next argument; its axis disappears
    Span(start, size, step)  `size` elements from `start` (a dimension, or None: the next argument) by `step`
    New()                    numpy.newaxis

Every index is complete: one At or Span for each axis of the array.  Starts and ints are in range and
non-negative: the frontend wraps and checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .dims import substitute


@dataclass(frozen=True, slots=True)
class At:
    def __str__(self) -> str:
        return "at"


@dataclass(frozen=True, slots=True)
class New:
    def __str__(self) -> str:
        return "new"


@dataclass(frozen=True, slots=True)
class Span:
    start: Any
    size: Any
    step: int = 1

    def map_dims(self, sizes: Callable[[Any], Any]) -> Span:
        start = None if self.start is None else substitute(self.start, sizes)
        return Span(start, substitute(self.size, sizes), self.step)

    def dims(self) -> list[Any]:
        return [d for d in (self.start, self.size) if d is not None]

    def __str__(self) -> str:
        start = "?" if self.start is None else self.start
        return f"span({start}; {self.size}; {self.step})"


Item = At | New | Span


def index_shape(index: tuple[Item, ...]) -> tuple[Any, ...]:
    """Shape of what the index reads."""
    return tuple(1 if isinstance(item, New) else item.size for item in index if not isinstance(item, At))


def argument_count(index: tuple[Item, ...]) -> int:
    """How many scalar arguments the index takes."""
    return sum(isinstance(item, At) or (isinstance(item, Span) and item.start is None) for item in index)
