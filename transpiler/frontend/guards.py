"""What a trace takes from its surroundings, and what it takes for granted.

    Access       how to get a value again: an object and the steps from it
    Capture      a free number or array: a hidden run-time parameter, read anew at every call
    StaticGuard  a free value that the trace was specialised on: it must still be the same
    ShapeGuard   a fact about array sizes that the trace decided on
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir import dims, registry
from ..ir.build import check, current, is_building, size_value
from ..ir.types import Type
from .stand_ins import is_array
from .values import Leaf


@dataclass(frozen=True)
class Access:
    """`root` and steps from it: ("key", k) for root[k], ("item", k), ("attr", name), ("cell", name)."""

    root: Any = field(hash=False)
    steps: tuple[tuple[Any, ...], ...]
    label: str = field(default="", compare=False)        # what the user calls it, where the steps do not tell

    def then(self, *step: Any) -> Access:
        return Access(self.root, (*self.steps, step), f"{self.label}_{step[1]}" if self.label else "")

    def get(self) -> Any:
        """The value now.  LookupError, AttributeError or ValueError where there is none any more."""
        value = self.root
        for step in self.steps:
            match step:
                case ("key" | "item", key):
                    value = value[key]
                case ("attr", name):
                    value = getattr(value, name)
                case ("cell", _):
                    value = value.cell_contents
        return value

    @property
    def key(self) -> tuple[Any, ...]:
        return (id(self.root), self.steps)

    @property
    def name(self) -> str:
        """A name for the generated parameter: of the last step that is a word, with what follows it."""
        if self.label:
            return self.label
        words: list[str] = []
        for step in reversed(self.steps):
            words.insert(0, str(step[1]))
            if isinstance(step[1], str):
                break
        name = "_".join(words) or "captured"
        return name if name.isidentifier() else "captured"

    def __str__(self) -> str:
        text = ""
        for step in self.steps:
            match step:
                case ("key", name) if isinstance(self.root, dict) and not text:
                    text = str(name)
                case ("key" | "item", key):
                    text += f"[{key!r}]"
                case ("attr", name):
                    text += f".{name}" if text else f"{_name(self.root)}.{name}"
                case ("cell", name):
                    text = name
        return text


def _name(root: Any) -> str:
    return getattr(root, "__name__", None) or type(root).__name__


@dataclass(eq=False)
class Capture:
    """A number or array that is not an argument.  weak: a Python scalar.  `name` names its parameter."""

    access: Access
    type: Type
    weak: bool
    name: str

    @property
    def root(self) -> Any:
        return self.access.root

    @property
    def path(self) -> tuple[tuple[Any, ...], ...]:
        return self.access.steps

    def get(self) -> Any:
        return self.access.get()


@dataclass(eq=False)
class StaticGuard:
    """kind: "is" (the same object), "equal" (type and value), "array" (dtype, shape and elements), "keys" (a dict's
    keys in order), "length" (a list's or tuple's type and length)."""

    access: Access
    kind: str
    expected: Any

    def holds(self) -> bool:
        try:
            value = self.access.get()
        except (LookupError, AttributeError, ValueError, TypeError):
            return False
        match self.kind:
            case "is":
                return value is self.expected
            case "equal":
                return type(value) is type(self.expected) and bool(value == self.expected)
            case "array":
                return (is_array(value) and value.dtype == self.expected.dtype
                        and np.array_equal(value, self.expected))
            case "keys":
                return isinstance(value, dict) and tuple(value) == self.expected
            case "length":
                return (type(value), len(value)) == self.expected
        raise AssertionError(self.kind)


@dataclass(frozen=True)
class ShapeGuard:
    """`dim` relates to 0 as `relation` says ("==", "<") if `truth`, and does not otherwise."""

    dim: Any
    relation: str
    truth: bool = True

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is so for these sizes; they include int64 arguments that shapes are made of."""
        value = dims.substitute(self.dim, sizes)
        return ((value == 0) if self.relation == "==" else (value < 0)) is self.truth

    def __str__(self) -> str:
        negated = {"==": "!=", "<": ">="}
        return f"{self.dim} {self.relation if self.truth else negated[self.relation]} 0"


class Restart(Exception):
    """Something was decided that changes what was traced already."""


class NeedStatic(Restart):
    """These run-time arguments or captures are needed while transpiling."""

    def __init__(self, sources: frozenset[Leaf | Capture]) -> None:
        super().__init__("a run-time value is needed while transpiling")
        self.sources = sources


class Unify(Restart):
    """These named sizes are other dimensions."""

    def __init__(self, sizes: Mapping[str, Any]) -> None:
        super().__init__(f"sizes: {', '.join(f'{k} = {v}' for k, v in sizes.items())}")
        self.sizes = dict(sizes)


def check_equal(a: Any, b: Any) -> None:
    """Two sizes that an operation needs to be equal, compared when the function runs."""
    if is_building():
        check(registry.apply("equal", size_value(a), size_value(b)), "ValueError",
              f"shapes do not fit: a length of {a} and one of {b}")


class Assumptions:
    """Decides facts about sizes: by what is known, else by the sizes of this call, which becomes a guard."""

    def __init__(self, sizes: Mapping[str, int | None]) -> None:
        self.sizes = dict(sizes)          # of each symbol; None where this call has no example
        self.fixed: set[str] = set()      # symbols that are int arguments: unified by making the argument static
        self.guards: dict[ShapeGuard, None] = {}
        self.arms = 0                     # blocks around what is traced that the running function may leave out
        self.compared: set[tuple[Any, ...]] = set()      # sizes that are compared when the function runs, by block

    def decidable(self, dim: Any) -> bool:
        return all(name in self.sizes for name in dims.symbols_of(dim))

    def example(self, dim: Any) -> int | None:
        """The dimension in this call, if its sizes are known."""
        found = {name: self.sizes.get(name) for name in dims.symbols_of(dim)}
        return None if None in found.values() else dims.substitute(dim, found)

    def shown(self, dim: Any) -> int | None:
        """The dimension in a message.  One that the running function may raise in other calls names sizes instead."""
        return self.example(dim) if not self.arms else None

    def _typical(self, dim: Any) -> int:
        """The same, with unlike and large sizes where there is no example."""
        sizes = {name: self.sizes.get(name) for name in dims.symbols_of(dim)}
        return dims.substitute(dim, {name: 1009 + 6 * k if sizes[name] is None else sizes[name]
                                     for k, name in enumerate(sorted(sizes))})

    def is_zero(self, dim: Any) -> bool | None:
        """dim == 0?  None where it depends on values that only the running function has."""
        if isinstance(dim, int):
            return dim == 0
        low, high = dims.bounds(dim)
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        return self._assume(dim, "==", self._typical(dim) == 0)

    def is_negative(self, dim: Any) -> bool | None:
        """dim < 0?"""
        if isinstance(dim, int):
            return dim < 0
        low, high = dims.bounds(dim)
        if low is not None and low >= 0:
            return False
        if high is not None and high < 0:
            return True
        return self._assume(dim, "<", self._typical(dim) < 0)

    def _assume(self, dim: Any, relation: str, truth: bool) -> bool | None:
        if not self.decidable(dim):
            return None
        self.guards[ShapeGuard(dim, relation, truth)] = None
        return truth

    def are_equal(self, a: Any, b: Any) -> bool:
        """Two sizes that an operation needs to be equal.  True where they are the same already; False where they
        differ in this call; `Unify` where they are to become one."""
        difference = a - b
        if isinstance(difference, int) and difference == 0:
            return True
        sizes = (self.example(a), self.example(b))
        if None not in sizes and sizes[0] != sizes[1]:
            for dim, size in zip((a, b), sizes):
                if size == 1 and not isinstance(dim, int):        # a length of 1 broadcasts, so it is made known
                    raise Unify(self.pinned(dim))
            self._assume(difference, "==", False)      # where they are one, the operation is not an error
            return False
        low, high = dims.bounds(difference)
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        if not self.decidable(difference):
            key = (current() if is_building() else None, *sorted((str(a), str(b))))
            if key not in self.compared:
                self.compared.add(key)
                check_equal(a, b)    # sizes that only the running function has
            return True
        raise Unify(self.solved(difference))

    def pinned(self, *parts: Any) -> dict[str, Any]:
        """Every size in these dimensions as it is in this call."""
        names = [name for dim in parts for name in dims.symbols_of(dim)]
        return {name: self.sizes[name] for name in names if self.sizes[name] is not None}

    def solved(self, difference: Any) -> dict[str, Any]:
        """A substitution that makes the difference zero."""
        terms = dict(difference.terms)
        names = sorted(dims.symbols_of(difference), key=lambda name: (name in self.fixed, name), reverse=True)
        for name in names:
            for monomial, coefficient in terms.items():
                if str(dims.DimExpr(((monomial, 1),))) != name or abs(coefficient) != 1:
                    continue
                rest = difference - dims.DimExpr(((monomial, coefficient),))
                if name not in dims.symbols_of(rest):
                    return {name: -rest if coefficient == 1 else rest}
        return self.pinned(difference)

