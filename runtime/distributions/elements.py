"""Formulas that numbers of streams are made by: from Python they run as compiled loops over arrays, since NumPy has no
fused multiply-add; in transpiled code they are operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import config, vectorize

from ..transpiler import ops
from ..transpiler.ops.spelling import NotKnown, as_value, broadcast_together, promote, shape_of, spelled


@cache
def _loop(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """A ufunc for each dtype: one that has a loop for float64 would take that for float32."""
    from .. import kernels
    kernel = getattr(kernels, name)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return kernel  # type: ignore[no-any-return]
    bodies = {"fma": lambda x, y, z: kernel(x, y, z), "stream_erfinv": lambda x: kernel(x)}
    return vectorize(bodies[name])  # type: ignore[no-any-return]


def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded once.  All of one dtype, float32 or float64."""
    return _loop("fma", x.dtype)(x, y, z)


def erfinv(x: Any) -> Any:
    """The inverse of erf as XLA has it, for x in (-1, 1) of float32 or float64."""
    return _loop("stream_erfinv", x.dtype)(x)


def erf(x: Any) -> Any:
    """The error function."""
    from scipy import special
    return special.erf(x)


def gammaln(x: Any) -> Any:
    """log(abs(gamma(x)))."""
    from scipy import special
    return special.gammaln(x)


def gamma_draws(keys: Any, a: Any, is_log: bool) -> Any:
    """Gamma numbers of the shapes `a`, (n,), or their logarithms, one for each of the keys, (n, 2)."""
    from ..kernels import gamma_draws as drawn
    return drawn(keys, a, is_log)


def _traced_draws(keys: Any, a: Any, is_log: bool) -> Any:
    return drawn_by(keys[:, 0], keys[:, 1], a, is_log)


def drawn_by(first: Any, second: Any, a: Any, is_log: bool) -> Any:
    """The same, of keys whose words are apart."""
    return gamma_draws(np.stack([first, second], axis=-1), a, is_log)


def words(key: Any, count: Any) -> Any:
    """`count` words of the stream of `key`.  ValueError: more than a key gives."""
    if count > 0xFFFFFFFF:
        raise ValueError(f"{count} random words are more than one key gives; split the key")
    from ..kernels import threefry
    out = np.empty(count, np.uint32)
    threefry(np.array(key, np.uint32), out)
    return out


def folded(key: Any, word: Any) -> Any:
    """The key made of a key and a word of uint32."""
    from ..kernels import fold_in
    out = np.empty(2, np.uint32)
    fold_in(np.array(key, np.uint32), np.uint32(word), out)
    return out


def is_unit(low: Any, high: Any) -> bool:
    """Whether the interval is known to be that from 0 to 1."""
    return type(low) in (int, float) and type(high) in (int, float) and low == 0 and high == 1


def _spell(function: Callable[..., Any], name: str) -> None:
    def call(*operands: Any) -> Any:
        return getattr(ops, name)(*broadcast_together(*promote(*operands)))
    spelled(function)(call)


_spell(fma, "fma")
_spell(erfinv, "stream_erfinv")
_spell(erf, "erf")
_spell(gammaln, "gammaln")


def _key_value(key: Any) -> Any:
    """A key, of which the size is to be known."""
    found = as_value(key)
    if found.rank and not isinstance(found.shape[-1], int):
        raise NotKnown("the size of a random key", found.shape[-1])
    return found


@spelled(words)
def _words(key: Any, count: Any) -> Any:
    (size,) = shape_of(count)
    return ops.threefry(_key_value(key), count=size)


@spelled(drawn_by)
def _drawn_by(first: Any, second: Any, a: Any, is_log: bool) -> Any:
    return ops.gamma_draw(as_value(first), as_value(second), as_value(a), log=is_log)


@spelled(folded)
def _folded(key: Any, word: Any) -> Any:
    return ops.fold_in(_key_value(key), as_value(word, "uint32"))


gamma_draws.__gradsmith_traced__ = _traced_draws  # type: ignore[attr-defined]
is_unit.__gradsmith_native__ = lambda it, low, high: is_unit(low, high)  # type: ignore[attr-defined]
