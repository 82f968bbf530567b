"""NumPy functions for JAX: `gradsmith.jax.function(f)` takes and returns JAX's arrays, with all of f's derivatives.

    step = gradsmith.jax.function(f)
    jax.jit(jax.grad(lambda x: step(x).sum()))(x)

The call is one primitive of JAX's, with rules for `jvp`, transposition and `vmap` that are such calls again: of the
derivatives and batches that gradsmith makes.  So JAX's own transforms work to any order, also under `jax.jit`,
`jax.lax.scan` and the like.  In compiled code the primitive is `jax.pure_callback`, or StableHLO (`via="stablehlo"`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .flat_function import Flat, Trees, taken_apart
from .jax_stablehlo import called_in_module
from .to_stablehlo import ShapeDtypeStruct
from .transpiler.errors import error

try:
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as missing:
    raise error("E605", f"gradsmith.jax needs JAX ({missing})", None, kind=ImportError,
                help="pip install gradsmith[xla]") from None

ARRAYS: Any = (jax.Array, np.ndarray, np.generic, float, complex)     # what becomes an argument of the primitive
AD: Any = ad                    # JAX's own hints know only some of their attributes
CONFIG: Any = jax.config
CALL: Any = Primitive("gradsmith_call")
CALL.multiple_results = True
WAYS = ("callback", "stablehlo")


def function(fun: Callable[..., Any], *, via: str = "callback") -> Callable[..., Any]:
    """`fun` on JAX's arrays, differentiable and batchable by JAX.

    Arguments may be JAX's and NumPy's arrays, numbers, whatever else `gradsmith.jit` takes, and tuples, lists, dicts,
    named tuples and dataclasses of them.  Ints, bools, strings and other objects are known while `fun` is compiled, as
    long as they are not JAX's arrays.  Every number and array that `fun` returns is an array of JAX's, of the dtype
    that NumPy gives it, or of 32 bits for 64 where JAX has these turned off (`jax_enable_x64`).  What `fun` writes into
    its arguments changes no arrays.

    via: how compiled code calls it: "callback", back to Python on the CPU; "stablehlo", which becomes part of the code
    that XLA compiles, for whatever machine.  There the arrays and numbers that `fun` reads from its surroundings are
    those of the moment when it is compiled, and nothing is raised (see `gradsmith.stablehlo`).
    TypeError: results whose sizes depend on values.  ValueError: another `via`.  TranspileError: see `jit`.
    """
    if via not in WAYS:
        raise ValueError(f"via={via!r}: gradsmith.jax.function knows {', '.join(map(repr, WAYS))}")
    trees = Trees(fun)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, text, classes = taken_apart(args, kwargs)
        arrays = [jax.numpy.asarray(x) for x in leaves if isinstance(x, ARRAYS)]
        known = tuple((k, _Known(x)) for k, x in enumerate(leaves) if not isinstance(x, ARRAYS))
        example = _joined([_example(x.shape, x.dtype) for x in arrays], known)
        key = (tuple([(x.shape, x.dtype) for x in arrays]), known)
        outputs = trees.outputs(text, classes, example, key)
        return outputs.rebuilt(CALL.bind(*arrays, flat=outputs.flat, known=known, via=via))

    return call


@dataclass(frozen=True, eq=False)
class _Known:
    """An argument that is no array.  Equal for the same value of the same type, or the same object."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, _Known) and type(self.value) is type(other.value)
                and (self.value is other.value or (isinstance(self.value, (int, str, bytes))
                                                   and bool(self.value == other.value))))

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, (int, str, bytes)) else id(self.value)


Known = tuple[tuple[int, _Known], ...]


def _joined(arrays: Sequence[Any], known: Known) -> list[Any]:
    """All leaves, in order."""
    found = list(arrays)
    for place, x in known:
        found.insert(place, x.value)
    return found


def _places(count: int, known: Known) -> list[int]:
    """Where the arrays are among the leaves."""
    taken = {place for place, _ in known}
    return [k for k in range(count) if k not in taken]


def _example(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array like those that JAX hands out."""
    if not isinstance(dtype, np.dtype):
        raise error("E307", f"an array of dtype {dtype} has no counterpart in NumPy", None, kind=TypeError,
                    help="pass the data: jax.random.key_data(key)")
    made = np.empty(shape, dtype)
    made.flags.writeable = False
    return made


# --- values -------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _result_types(flat: Flat, known: Known, avals: tuple[tuple[Any, ...], ...],
                  x64: bool) -> tuple[jax.ShapeDtypeStruct, ...]:
    """x64: whether JAX has 64 bits, which it may be told at any time."""
    found = flat.result_types(_joined([_example(shape, dtype) for shape, dtype in avals], known))
    return tuple(jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)) for dtype, shape in found)


def _types(args: Sequence[Any], flat: Flat, known: Known) -> tuple[jax.ShapeDtypeStruct, ...]:
    # Numbers that JAX knows while compiling are Python's, with a dtype.
    return _result_types(flat, known, tuple((np.shape(x), x.dtype) for x in args), bool(CONFIG.jax_enable_x64))


def _computed(*arrays: Any, flat: Flat, known: Known, dtypes: tuple[Any, ...]) -> tuple[Any, ...]:
    results = flat(*_joined([np.asarray(x) for x in arrays], known))
    return tuple([np.asarray(x, dtype) for x, dtype in zip(results, dtypes, strict=True)])


@CALL.def_impl
def _at_once(*arrays: Any, flat: Flat, known: Known, via: str) -> list[Any]:
    """Outside of compiled code."""
    if via == "stablehlo":
        return list(_compiled(flat, known, bool(CONFIG.jax_enable_x64))(*arrays))
    dtypes = tuple(t.dtype for t in _types(arrays, flat, known))
    return [jax.numpy.asarray(x) for x in _computed(*arrays, flat=flat, known=known, dtypes=dtypes)]


@functools.lru_cache(maxsize=1024)
def _compiled(flat: Flat, known: Known, x64: bool) -> Callable[..., Any]:
    return jax.jit(functools.partial(CALL.bind, flat=flat, known=known, via="stablehlo"))


@CALL.def_abstract_eval
def _abstract(*avals: Any, flat: Flat, known: Known, via: str) -> list[Any]:
    return [jax.core.ShapedArray(t.shape, t.dtype) for t in _types(avals, flat, known)]


def _called_back(*args: Any, flat: Flat, known: Known, via: str) -> list[Any]:
    types = _types(args, flat, known)
    host = functools.partial(_computed, flat=flat, known=known, dtypes=tuple(t.dtype for t in types))
    return list(jax.pure_callback(host, types, *args, vmap_method="sequential"))


_LOWER_CALLBACK: Any = mlir.lower_fun(_called_back, multiple_results=True)


def _lower(context: Any, *args: Any, flat: Flat, known: Known, via: str) -> Any:
    if via == "callback":
        return _LOWER_CALLBACK(context, *args, flat=flat, known=known, via=via)
    leaves = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in context.avals_in]
    return called_in_module(context, args, flat.fun, tuple(_joined(leaves, known)), tuple(k for k, _ in known))


mlir.register_lowering(CALL, _lower)


# --- rules --------------------------------------------------------------------------------------------------------


def _moves(x: Any) -> bool:
    return bool(jax.numpy.issubdtype(x.dtype, jax.numpy.inexact))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, flat: Flat, known: Known, via: str) -> tuple[Any, Any]:
    """The tangents are a call, too, which is linear in the given tangents."""
    values = CALL.bind(*primals, flat=flat, known=known, via=via)
    places = _places(flat.count, known)
    moving = [k for k, t in enumerate(tangents) if type(t) is not AD.Zero and _moves(primals[k])]
    smooth = tuple(k for k, value in enumerate(values) if _moves(value))
    made: dict[int, Any] = {}
    if moving and smooth:
        pushed = flat.selecting(smooth).pushforward(tuple(places[k] for k in moving))
        made = dict(zip(smooth, CALL.bind(*primals, *(tangents[k] for k in moving), flat=pushed, known=known, via=via),
                        strict=True))
    return values, [made[k] if k in made else AD.Zero(jax.typeof(v).to_tangent_aval()) for k, v in enumerate(values)]


def _transpose(cts: Sequence[Any], *args: Any, flat: Flat, known: Known, via: str) -> list[Any]:
    """Of a call that is linear in the arguments that are not there: its pullback, which is the same wherever it is
    taken; so it is taken at zero."""
    places = _places(flat.count, known)
    linear = [k for k, x in enumerate(args) if AD.is_undefined_primal(x)]
    given = [jax.numpy.zeros(x.aval.shape, x.aval.dtype) if k in linear else x for k, x in enumerate(args)]
    pulled = flat.pullback(tuple(places[k] for k in linear))
    made = iter(CALL.bind(*given, *map(AD.instantiate_zeros, cts), flat=pulled, known=known, via=via))
    return [next(made) if k in linear else None for k in range(len(args))]


def _batch(args: Sequence[Any], axes: Sequence[int | None], *, flat: Flat, known: Known, via: str) -> tuple[Any, Any]:
    every: list[int | None] = [None] * flat.count
    for place, axis in zip(_places(flat.count, known), axes, strict=True):
        every[place] = axis
    results = CALL.bind(*args, flat=flat.batched(tuple(every)), known=known, via=via)
    return results, [0] * len(results)


AD.primitive_jvps[CALL] = _jvp
AD.primitive_transposes[CALL] = _transpose
batching.primitive_batchers[CALL] = _batch
