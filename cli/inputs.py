"""Arguments for `check`: read from a file, or drawn for a signature."""

from __future__ import annotations

import copy
import inspect
import linecache
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gradsmith.transpiler.errors import Location, TranspileError, error
from gradsmith.transpiler.signature import ArraySpec, ScalarSpec, Spec, built

from .parameters import names_for, parameters_of
from .target import imported_value
from .transform import Chain

SIZES = (3, 4, 5, 2, 6, 7)          # of named dimensions, in order
TRIES = 20                          # draws until the function is finite


def read_inputs(text: str, function: Callable[..., Any]) -> tuple[Any, ...]:
    """The arguments in an .npz file or under a name in a Python file.  TranspileError (E505, E508)."""
    if text.endswith(".npz"):
        path = Path(text)
        if not path.is_file():
            raise error("E505", f"there is no file {text}")
        with np.load(path, allow_pickle=False) as stored:
            found: Any = {name: stored[name][()] for name in stored.files}
        found = {name: value.item() if isinstance(value, np.generic) and value.dtype.name in _PYTHON else value
                 for name, value in found.items()}
    else:
        found = imported_value(text)
        found = found() if callable(found) else found
    if isinstance(found, Mapping):
        return _by_name(found, function, text)
    if isinstance(found, (tuple, list)):
        return tuple(found)
    raise error("E508", f"{text} holds a {type(found).__name__}", help="give a tuple or a dict of arguments")


_PYTHON = {"float64": float, "int64": int, "bool": bool}


def _by_name(found: Mapping[str, Any], function: Callable[..., Any], text: str) -> tuple[Any, ...]:
    parameters = parameters_of(function)
    names = [p.name for p in parameters]
    if all(name.startswith("arr_") for name in found):
        return tuple(found.values())
    unknown = [name for name in found if name not in names]
    if unknown:
        raise error("E508", f"{text} has `{unknown[0]}`, which is no argument", help=f"they are {', '.join(names)}")
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    missing = [name for name in needed if name not in found]
    if missing:
        raise error("E508", f"{text} lacks the argument `{missing[0]}`")
    given = [name for name in names if name in found]
    if given != names[:len(given)]:
        raise error("E508", f"{text} leaves out an argument before `{given[-1]}`")
    return tuple(found[name] for name in given)


def sampled(function: Callable[..., Any], specs: Sequence[Spec], chain: Chain, count: int,
            seed: int) -> list[tuple[Any, ...]]:
    """`count` draws at which the function is finite: from a normal distribution, or positive where that fails."""
    from gradsmith.checking import plain_function
    names = names_for(function, len(specs))
    drawn = []
    failure: Exception | None = None
    for number in range(count):
        for attempt in range(TRIES):
            rng = np.random.default_rng([seed, number, attempt])
            args = _draw(specs, rng, positive=attempt % 2 == 1)
            try:
                fits = any(step.kind == "vmap" for step in chain) or _is_finite(plain_function(function), args)
            except Exception as problem:            # the user's function, at arguments that it may not be for
                fits, failure = False, problem
            if fits:
                drawn.append(args)
                break
        else:
            if failure is not None:
                raise function_raises(getattr(function, "__name__", "the function"), function, failure)
            raise error("E508", f"no arguments were found at which {getattr(function, '__name__', 'the function')} of "
                                f"{', '.join(names)} is finite", help="give some with --inputs")
    return drawn


def _draw(specs: Sequence[Spec], rng: np.random.Generator, *, positive: bool) -> tuple[Any, ...]:
    sizes: dict[str, int] = {}

    def length(dim: int | str | None) -> int:
        if isinstance(dim, int):
            return dim
        if dim is None:
            return SIZES[0]
        return sizes.setdefault(dim, SIZES[len(sizes) % len(SIZES)])

    def numbers(dtype: str, shape: tuple[int, ...]) -> Any:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            return rng.integers(0, 3, shape).astype(dtype) if shape else np.dtype(dtype).type(rng.integers(1, 4))
        values = rng.uniform(0.3, 1.7, shape) if positive else rng.normal(size=shape)
        if kind == "c":
            values = values + 1j * rng.normal(size=shape)
        return np.asarray(values).astype(dtype)[()]

    def leaf(spec: ScalarSpec | ArraySpec) -> Any:
        if isinstance(spec, ScalarSpec):
            made = numbers(spec.dtype, ())
            return made.item() if spec.dtype in _PYTHON else made
        array = numbers(spec.dtype, tuple(map(length, spec.dims)))
        return np.asfortranarray(array) if spec.layout == "F" else array

    return tuple(built(spec, leaf) for spec in specs)


def _is_finite(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    from gradsmith.checking import leaves_of
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = function(*copy.deepcopy(args))
    return all(bool(np.all(np.isfinite(leaf))) for leaf in leaves_of(value))


@contextmanager
def located(name: str, function: Callable[..., Any]) -> Iterator[None]:
    """What the user's own function raises inside becomes an error at the line that raises it (E120)."""
    try:
        yield
    except TranspileError:
        raise
    except Exception as problem:
        if _line_of(function, problem) is None:
            raise
        raise function_raises(name, function, problem) from problem


def function_raises(name: str, function: Callable[..., Any], problem: Exception) -> TranspileError:
    """The error for a function that cannot be called with the arguments that there are."""
    if isinstance(problem, TranspileError):
        return problem
    text = f": {problem}" if str(problem) else ""
    return error("E120", f"{name} raises {type(problem).__name__}{text}", _line_of(function, problem),
                 help="give arguments at which it can be evaluated with --inputs")


def _line_of(function: Callable[..., Any], problem: Exception) -> Location | None:
    """The innermost line of the function's own file that the exception passed through."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    lines = [] if code is None else [frame.lineno for frame in traceback.extract_tb(problem.__traceback__)
                                     if frame.filename == code.co_filename and frame.lineno]
    if code is None or not lines:
        return None
    text = linecache.getline(code.co_filename, lines[-1]).rstrip()
    return Location(code.co_filename, lines[-1], len(text) - len(text.lstrip()), lines[-1], len(text))
