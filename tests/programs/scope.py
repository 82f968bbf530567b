"""Names that a random program has at one place, and what can be said of them there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

T = TypeVar("T")
Shape = tuple[int, ...]
LONG, ROWS, COLUMNS = 8, 3, 4        # lengths that no slice below confuses with each other


@dataclass
class Scope:
    """Names by kind: ints with the least and greatest value (None: not known), arrays with their shapes, lists with
    their lengths (None: grown in a loop).  fresh: arrays that have this one name, so that rebinding hurts no other."""

    floats: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)          # floats that are only read
    ints: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    bools: list[str] = field(default_factory=list)
    arrays: dict[str, Shape] = field(default_factory=dict)
    lists: dict[str, int | None] = field(default_factory=dict)
    pairs: list[str] = field(default_factory=list)
    dicts: list[str] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    read_only: set[str] = field(default_factory=set)
    helpers: dict[str, Shape | None] = field(default_factory=dict)      # with the shape of the array they take, if any
    returns: tuple[str, ...] = ()       # what follows the number in a `return`

    def inner(self) -> Scope:
        """A copy for a block: names made there are not known after it."""
        return replace(self, floats=[*self.floats], fixed=[*self.fixed], ints=dict(self.ints), bools=[*self.bools],
                       arrays=dict(self.arrays), lists=dict(self.lists), pairs=[*self.pairs], dicts=[*self.dicts],
                       fresh=set(self.fresh))


class Choices:
    """Hypothesis's choices.  What comes first is simplest: failing programs shrink towards it."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)] if len(options) > 1 else options[0]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        place = self.integer(0, sum(weight for weight, _ in options) - 1)
        for weight, option in options:
            if place < weight:
                return option
            place -= weight
        raise AssertionError("weights add up")


VIEWS = {
    1: ("[1:]", "[:-1]", "[::2]", "[::-1]", "[1::2]", "[-2:]", "[:2]", "[:3]", "[:4]", "[4:]", "[::-2]", "[1:-1]",
        "[1:][::2]", "[::-1][1:]", ".ravel()", ".reshape(-1)", "[...]", "[5:1:-1]", "[-3:]", "[-5:-1]", ".reshape(2, -1)",
        ".reshape(2, 4)", ".reshape(4, 2).T", "[2:5]"),
    2: ("[0]", "[-1]", "[1]", "[:, 0]", "[:, -1]", "[:, 2]", ".T", "[::-1]", "[:, ::-1]", "[1:]", "[:, 1:3]",
        ".reshape(-1)", "[::2, 1:]", ".T[1]", "[1:][0]", "[..., -1]", "[:2, :2]", "[1:, ::-2]", ".T[::-1]", ".T[1:, 0]",
        "[0][::-1]", "[:, 1:]", "[-1, 1:]", ".reshape(-1)[2:10]", ".T.T[1]", "[:-1, 0]"),
}
COPIES = {
    1: ("[[0, 2]]", "[q]", "[[1, 1, 0]]", "[np.array([0, -1, 0, 1])]", ".copy()"),
    2: ("[[0, 2, 0]]", "[:, [0, 1, 1]]", "[q, q]", "[[0, 1], [1, 2]]", "[q]", "[1, q]", ".copy()", ".flatten()"),
}


@functools.cache
def shape_of(shape: Shape, key: str) -> Shape | None:
    """The shape of `a{key}`; None where there is no such part."""
    try:
        return eval(f"a{key}", {"a": np.zeros(shape), "q": np.array([0, 0, 0]), "np": np}).shape
    except (IndexError, ValueError):
        return None


@functools.cache
def keys_to(shape: Shape, wanted: Shape, copies: bool) -> tuple[str, ...]:
    """The views (and copies) of an array of one shape that have another."""
    keys = VIEWS[len(shape)] + (COPIES[len(shape)] if copies else ())
    return tuple(key for key in keys if shape_of(shape, key) == wanted)
