"""What is done to a function before it is differentiated or batched, if someone asks.

A target for which loops are of no use has them raised first, so that derivatives are made of whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..ir.dims import deciding
from ..ir.nodes import Func

_before_transforms: ContextVar[Callable[[Func], Func] | None] = ContextVar("before_transforms", default=None)


@contextmanager
def before_transforms(change: Callable[[Func], Func]) -> Iterator[None]:
    """While tracing inside, functions under transforms go through `change` first."""
    token = _before_transforms.set(change)
    try:
        yield
    finally:
        _before_transforms.reset(token)


def prepared(func: Func) -> Func:
    """The func as transforms are to take it."""
    change = _before_transforms.get()
    if change is None:
        return func
    token = deciding.set(None)              # no new facts about sizes are taken for granted
    try:
        return change(func)
    finally:
        deciding.reset(token)
