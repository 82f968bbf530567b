"""Arrays of the caller and of the surroundings of a traced function: what it writes into them is an effect.

In the IR an effect is one more result of the func, whose memory is the parameter's (`Func.effects`); so no transform
has to know of it.  Functions under a transform have arrays of their own and no effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.build import Kept, keeping
from ..ir.nodes import Value, Var
from ..ops.base import RuleError
from .values import ArrayRef


class Outside:
    """The arrays by the parameters that stand for them.

    keeps_effects: they may be written to.  numbers: parameters for arrays of rank 0.  held: trees that whoever called
    a running function still refers to.
    """

    def __init__(self, keeps_effects: bool = True) -> None:
        self.keeps_effects = keeps_effects
        self.arrays: dict[Var, ArrayRef] = {}
        self.numbers: set[Var] = set()
        self.held: list[Any] = []
        self._written: dict[Var, None] = {}

    def add(self, param: Var, array: ArrayRef) -> None:
        self.arrays[param] = array

    def check_number(self, value: object) -> None:
        """An error for a number that is an array of rank 0 outside: it would have to change there."""
        if isinstance(value, Var) and value in self.numbers:
            raise RuleError("writing in place to an array of rank 0 is not supported", code="E124",
                            kind=NotImplementedError, help="pass a number, or an array of shape (1,)")

    def now(self) -> Kept:
        """Those written so far, with what they hold."""
        found = tuple((param, array.read()) for param, array in self.arrays.items()
                      if array.value is not param)
        self._written.update((param, None) for param, _ in found)
        return found

    def effects(self) -> dict[Var, Value]:
        """All that were written, with what they hold in the end."""
        self.now()
        return {param: array.read() for param, array in self.arrays.items() if param in self._written}


@contextmanager
def keeping_of(kept: Callable[[], Kept]) -> Iterator[None]:
    """Checks that are emitted inside keep these."""
    token = keeping.set(kept)
    try:
        yield
    finally:
        keeping.reset(token)


@contextmanager
def keeping_nothing() -> Iterator[None]:
    """For a func of its own, which has no effects."""
    with keeping_of(lambda: ()):
        yield
