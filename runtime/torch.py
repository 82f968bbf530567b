"""NumPy functions for PyTorch: `gradsmith.torch.function(f)` takes and returns tensors, with all of f's derivatives.

    layer = gradsmith.torch.function(f)
    loss = layer(weights, x).sum()          # on the CPU, tensors and arrays share their memory
    loss.backward()

`f` is compiled as by `gradsmith.jit`, and is an operation to PyTorch like its own: `backward`, double backward and any
order above, forward mode, `torch.func.grad`, `jvp`, `vjp`, `jacrev`, `jacfwd`, `hessian` and `vmap`.  It runs on the
CPU; tensors on other devices are copied there and back.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .flat_function import Flat, Trees, taken_apart
from .transpiler.errors import error

try:
    import torch
except ImportError as missing:
    raise error("E605", f"gradsmith.torch needs PyTorch ({missing})", None, kind=ImportError,
                help="pip install gradsmith[torch]") from None

TENSOR: Any = torch.Tensor
AUTOGRAD_FUNCTION: Any = torch.autograd.Function
DTYPES = {getattr(torch, name): np.dtype(name) for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128")}


def function(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` on tensors, differentiable by PyTorch.

    Arguments may be tensors, numbers, whatever `gradsmith.jit` takes, and tuples, lists, dicts, named tuples and
    dataclasses of them.  Every number and array that `fun` returns is a tensor, of the dtype that NumPy gives it, on
    the device of the first tensor among the arguments; other parts of the result are as `fun` gives them.  Results
    share no memory with arguments, and what `fun` writes into its arguments does not change tensors.

    Gradients of complex tensors are conjugated as PyTorch's are.  Inside of `torch.compile` the call is a graph break.
    TypeError: tensors that NumPy has no dtype for (bfloat16), or that are not dense.  TranspileError: see `jit`.
    """
    trees = Trees(fun)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, text, classes = taken_apart(args, kwargs)
        key = tuple([(x.dtype, tuple(x.shape)) if isinstance(x, TENSOR) else _key(x) for x in leaves])
        outputs = trees.outputs(text, classes, [_example(x) for x in leaves], key)
        if torch.is_grad_enabled() and any(isinstance(x, TENSOR) and x.requires_grad for x in leaves):
            kept = _Kept(tuple(k for k, x in enumerate(leaves) if isinstance(x, TENSOR) and x.requires_grad))
        else:
            kept = None
        return outputs.rebuilt(_Call.apply(outputs.flat, kept, *leaves))

    return torch.compiler.disable(call)  # type: ignore[no-any-return]


def _key(x: Any) -> Any:
    """Equal for arguments of one specialisation; numbers are told by their types alone."""
    if isinstance(x, (bool, int, float, complex)):
        return type(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return (x.dtype, x.shape)
    return x


def _example(x: Any) -> Any:
    """An array like a tensor, which need not have memory (as under `torch.func.vmap`)."""
    return np.empty(tuple(x.shape), _numpy_dtype(x)) if isinstance(x, TENSOR) else x


def _numpy_dtype(x: Any) -> np.dtype[Any]:
    if x.dtype not in DTYPES:
        raise error("E307", f"a tensor of dtype {x.dtype} has no counterpart in NumPy", None, kind=TypeError,
                    help="convert it: x.float()")
    if x.layout is not torch.strided:
        raise error("E307", f"a tensor of layout {x.layout} has no counterpart in NumPy", None, kind=TypeError,
                    help="convert it: x.to_dense()")
    return DTYPES[x.dtype]


def _array(x: Any) -> Any:
    """A tensor as an array, in the same memory where it is on the CPU."""
    if not isinstance(x, TENSOR):
        return x
    _numpy_dtype(x)
    return x.detach().cpu().resolve_conj().resolve_neg().numpy()


def _tensors(results: Sequence[Any], leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Results as tensors, in the same memory on the CPU; no two of them share any."""
    device = next((x.device for x in leaves if isinstance(x, TENSOR)), None)
    made = [torch.from_numpy(x) if isinstance(x, np.ndarray) else torch.from_numpy(np.array(x)) for x in results]
    return tuple(made if device is None or device.type == "cpu" else [x.to(device) for x in made])


class _Kept:
    """What the forward sweep leaves for one plain backward sweep.  active: the leaves that are differentiated."""

    def __init__(self, active: tuple[int, ...]) -> None:
        self.active = active
        self.pullback: Callable[[Sequence[Any]], tuple[Any, ...]] | None = None

    def run(self, flat: Flat, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The results, and the pullback for later."""
        value, residuals, later = flat.kept(self.active)(*leaves)
        shapes = later.shapes(value)
        self.pullback = lambda cts: later(residuals, shapes, cts)
        return tuple(value)


class _Call(AUTOGRAD_FUNCTION):  # type: ignore[misc]
    """A flat function of leaves, all of them inputs to PyTorch."""

    @staticmethod
    def forward(flat: Flat, kept: _Kept | None, *leaves: Any) -> tuple[Any, ...]:
        arrays = [_array(x) for x in leaves]
        return _tensors(flat(*arrays) if kept is None else kept.run(flat, arrays), leaves)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.flat, ctx.kept, *leaves = inputs
        ctx.others = [None if isinstance(x, TENSOR) else x for x in leaves]
        ctx.places = [k for k, x in enumerate(leaves) if isinstance(x, TENSOR)]
        tensors = [leaves[k] for k in ctx.places]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.smooth = tuple(k for k, x in enumerate(output) if x.is_floating_point() or x.is_complex())
        ctx.likes = [(x.shape, x.dtype, x.device) for x in output]
        ctx.mark_non_differentiable(*[x for k, x in enumerate(output) if k not in ctx.smooth])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        leaves = _leaves(ctx)
        active = tuple(k for k in ctx.places if ctx.needs_input_grad[k + 2] and _moves(leaves[k]))
        cts = [_materialized(grads[k], ctx.likes[k]) for k in ctx.smooth]
        if not active or all(grads[k] is None for k in ctx.smooth):
            return (None,) * (len(leaves) + 2)
        if ctx.kept is not None and ctx.kept.pullback is not None and not torch.is_grad_enabled():
            found = dict(zip(ctx.kept.active, _plain_backward(ctx, cts, leaves), strict=True))
        else:
            flat = ctx.flat.selecting(ctx.smooth).pullback(active, conjugate=True)
            found = dict(zip(active, _Call.apply(flat, None, *leaves, *cts), strict=True))
        return (None, None, *(found.get(k) if k in active else None for k in range(len(leaves))))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        leaves = _leaves(ctx)
        active = tuple(k for k in ctx.places if tangents[k + 2] is not None and _moves(leaves[k]))
        found: dict[int, Any] = {}
        if active:
            flat = ctx.flat.selecting(ctx.smooth).pushforward(active)
            found = dict(zip(ctx.smooth, _Call.apply(flat, None, *leaves, *(tangents[k + 2] for k in active)),
                             strict=True))
        return tuple(found.get(k) for k in range(len(ctx.likes)))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], flat: Flat, kept: _Kept | None, *leaves: Any) -> Any:
        batched = flat.batched(tuple(in_dims[2:]))
        return _Call.apply(batched, None, *leaves), (0,) * batched.results


# PyTorch asks for it at every call; it takes longer to find out than all the rest.
_Call.forward.__signature__ = inspect.signature(_Call.forward)  # type: ignore[attr-defined]


def _leaves(ctx: Any) -> list[Any]:
    found = list(ctx.others)
    for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
        found[place] = tensor
    return found


def _moves(x: Any) -> bool:
    return bool(x.is_floating_point() or x.is_complex())


def _materialized(grad: Any, like: tuple[Any, ...]) -> Any:
    shape, dtype, device = like
    return torch.zeros(shape, dtype=dtype, device=device) if grad is None else grad


def _plain_backward(ctx: Any, cts: Sequence[Any], leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Without derivatives of its own."""
    given = iter(np.conj(_array(ct)) for ct in cts)
    every = [next(given) if k in ctx.smooth else 0 for k in range(len(ctx.likes))]
    return _tensors([np.conj(x) for x in ctx.kept.pullback(every)], leaves)
