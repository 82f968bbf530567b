"""`checkpoint`: less memory in reverse mode, for work done twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .transpiler.frontend.iteration import Checkpointed
from .transpiler.ir.nodes import Checkpoint
from .transpiler.ops.base import RuleError

if TYPE_CHECKING:
    from .transpiler.frontend.interpreter import Interpreter


def checkpoint(over: Iterable[Any], *, every: int | None = None, memory: float | None = None) -> Any:
    """What a loop goes over, as it is; the reverse mode of the loop keeps its state at some iterations only.

        for t in gradsmith.checkpoint(range(steps), memory=200e6):
            u = step(u)

    every: the number of iterations between states that are kept, from which the others are computed once more in the
    reverse sweep.  Without it the distance is the one that takes the least memory, 2 sqrt(c n p) bytes for n
    iterations, states of c bytes and p bytes that an iteration's derivative needs: about the square root of what is
    kept otherwise.
    memory: the most bytes that may be kept; MemoryError when the loop runs, where that is not enough.

    Raises: ValueError where `every` or `memory` is less than 1.
    """
    _wish(every, memory)
    return over


def _wish(every: Any, memory: Any) -> Checkpoint:
    for name, value in (("every", every), ("memory", memory)):
        if value is not None and (not isinstance(value, (int, float)) or isinstance(value, bool)):
            raise TypeError(f"checkpoint: {name} is a number, not {type(value).__name__}")
        if value is not None and value < 1:
            raise ValueError(f"checkpoint: {name} is {value}, and must be at least 1")
    return Checkpoint(None if every is None else int(every), None if memory is None else int(memory))


def _checkpoint(it: Interpreter, over: Any, *, every: Any = None, memory: Any = None) -> Checkpointed:
    """What the frontend does with a call of `checkpoint`."""
    for name, value in (("every", every), ("memory", memory)):
        if value is not None and not isinstance(value, (int, float)):
            raise RuleError(f"checkpoint: {name} must be known while transpiling", code="E117", kind=TypeError,
                            help="leave it out, and the distance is the one that takes the least memory")
    try:
        return Checkpointed(over, _wish(every, memory))
    except (TypeError, ValueError) as problem:
        raise RuleError(str(problem), code="E208", kind=type(problem)) from None


checkpoint.__gradsmith_native__ = _checkpoint  # type: ignore[attr-defined]
