"""`checkpoint`: less memory in reverse mode, for work done twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .transpiler.frontend.iteration import Checkpointed
from .transpiler.frontend.values import ArrayRef, Closure, Partial, TransformValue
from .transpiler.ir.nodes import Checkpoint
from .transpiler.ops.base import RuleError

if TYPE_CHECKING:
    from .transpiler.frontend.interpreter import Interpreter


def checkpoint(over: Any, *, every: int | None = None, memory: float | None = None, slots: int | None = None,
               policy: Any = None, prevent_cse: Any = True, static_argnums: Any = (), static_argnames: Any = ()) -> Any:
    """Of a function: the same function, of which reverse mode keeps only the arguments and computes the rest again.

        block = gradsmith.checkpoint(lambda w, x: np.tanh(w @ np.tanh(w @ x)))

    Of what a loop goes over: the same, where the reverse mode of the loop keeps its state at some iterations only.

        for t in gradsmith.checkpoint(range(steps), memory=200e6):
            u = step(u)

    every: the number of iterations between states that are kept, from which the others are computed once more in the
    reverse sweep.  Without it the distance is the one that takes the least memory, 2 sqrt(c n p) bytes for n
    iterations, states of c bytes and p bytes that an iteration's derivative needs: about the square root of what is
    kept otherwise.
    memory: the most bytes that may be kept; MemoryError when the loop runs, where that is not enough.  States are kept
    as close as seven eighths of it allow, since what is kept of few iterations is read from faster memory.
    slots: the most states that may be kept, with iterations run again as often as that takes, in the best order
    (binomial checkpointing, "Revolve"): with s states, (s + r)! / (s! r!) iterations are run at most r times more.

    policy: of a function, one of `checkpoint_policies`, as in JAX.  With `everything_saveable` it is the function as it
    is; of all others, nothing but the arguments is kept, whatever they would allow to keep.
    prevent_cse, static_argnums, static_argnames: taken for JAX's sake, without effect.

    Raises: TypeError for a policy that cannot be called. ValueError where `every`, `memory` or `slots` is less than 1,
    or given for a function, or two are given that exclude each other.
    """
    wish = _wish(every, memory, slots)
    keeps_all = _keeps_all(policy)
    if not callable(over):
        return over
    _check_function(wish)
    if keeps_all:
        return over
    from .transforms import function
    return function("checkpoint", over)


def _keeps_all(policy: Any) -> bool:
    if policy is not None and not callable(policy):
        raise TypeError(f"checkpoint: policy is one of gradsmith.checkpoint_policies, not {type(policy).__name__}")
    return policy is everything_saveable


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keep what the reverse mode asks for, as without `checkpoint`."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keep the arguments alone."""
    return False


# Policies of JAX's that allow to keep some values, but do not ask for it.
checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable, nothing_saveable=nothing_saveable, dots_saveable=nothing_saveable,
    checkpoint_dots=nothing_saveable, dots_with_no_batch_dims_saveable=nothing_saveable,
    checkpoint_dots_with_no_batch_dims=nothing_saveable)


def _check_function(wish: Checkpoint) -> None:
    if wish != Checkpoint():
        raise ValueError("checkpoint: `every`, `memory` and `slots` are for loops, a function has no iterations")


def _wish(every: Any, memory: Any, slots: Any) -> Checkpoint:
    for name, value in (("every", every), ("memory", memory), ("slots", slots)):
        if value is not None and (not isinstance(value, (int, float)) or isinstance(value, bool)):
            raise TypeError(f"checkpoint: {name} is a number, not {type(value).__name__}")
        if value is not None and value < 1:
            raise ValueError(f"checkpoint: {name} is {value}, and must be at least 1")
    if slots is not None and (every is not None or memory is not None):
        raise ValueError("checkpoint: `slots` goes without `every` and `memory`")
    return Checkpoint(*(None if value is None else int(value) for value in (every, memory, slots)))


def _checkpoint(it: Interpreter, over: Any, *, every: Any = None, memory: Any = None, slots: Any = None,
                policy: Any = None, prevent_cse: Any = True, static_argnums: Any = (),
                static_argnames: Any = ()) -> Any:
    """What the frontend does with a call of `checkpoint`."""
    for name, value in (("every", every), ("memory", memory), ("slots", slots)):
        if value is not None and not isinstance(value, (int, float)):
            raise RuleError(f"checkpoint: {name} must be known while transpiling", code="E117", kind=TypeError,
                            help="leave it out, and the distance is the one that takes the least memory")
    try:
        wish, keeps_all = _wish(every, memory, slots), _keeps_all(policy)
        if isinstance(over, (Closure, Partial, TransformValue)) or (callable(over) and not isinstance(over, ArrayRef)):
            _check_function(wish)
            return over if keeps_all else TransformValue("checkpoint", over)
        return Checkpointed(over, wish)
    except (TypeError, ValueError) as problem:
        raise RuleError(str(problem), code="E208", kind=type(problem)) from None


checkpoint.__gradsmith_native__ = _checkpoint  # type: ignore[attr-defined]
remat = checkpoint
