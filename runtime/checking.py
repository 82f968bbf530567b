"""Checking derivatives: against the complex step or differences of the plain function, and forward against reverse.

    report = check(loss, w, x)            raises ArithmeticError where something disagrees
    report = check(loss, w, x, raises=False);  print(report)

The function's result is projected on a random cotangent ct, so that results of any shape are one number:

    gradient            <ct, f>' by x, from vjp, against differences of <ct, f(x)> along single elements of x
    forward and reverse <ct, jvp(v)> against <vjp(ct), v> along a random v

Differences are central, at halved steps, extrapolated by Richardson's scheme; the table that they form also tells
their error (C. J. F. Ridders, Advances in Engineering Software 4, 1982).  Where the function takes complex arguments
and Im f(x + ih) / h agrees with the differences to within their error, that is used: it has no cancellation
(W. Squire and G. Trapp, SIAM Review 40, 1998).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import transforms
from .transpiler.errors import Location, TranspileError, error
from .transpiler.frontend.source import find_source
from .transpiler.frontend.transform_tracing import returns_nothing

Fun = Callable[..., Any]
STEPS = 8                    # halvings of the step
DOUBT = 1e-3                 # differences that are less certain than this, relatively, excuse nothing
COMPLEX_STEP = 1e-30
TOLERANCE = {"float64": 1e-7, "float32": 2e-3}
FORWARD_TOLERANCE = {"float64": 1e-9, "float32": 1e-3}


@dataclass(frozen=True)
class Row:
    """One comparison.  error: largest difference, relative to the largest entry; tolerance: what it may be."""

    what: str
    against: str
    error: float
    tolerance: float
    detail: str = ""

    @property
    def agrees(self) -> bool:
        return bool(self.error <= self.tolerance)


@dataclass
class Report:
    """All comparisons of one check.  `print` shows a table."""

    name: str
    rows: list[Row] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        return all(row.agrees for row in self.rows)

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        cells = [("", "against", "error", "tolerance", ""), *(
            (row.what, row.against, f"{row.error:.1e}", f"{row.tolerance:.0e}", "" if row.agrees else "disagrees")
            for row in self.rows)]
        widths = [max(len(cell[k]) for cell in cells) for k in range(5)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(cell, widths)).rstrip() for cell in cells]
        return "\n".join([f"{self.name}: {'agrees' if self.agrees else 'DISAGREES'}", *(f"  {t}" for t in lines)])

    def raise_if_not(self) -> None:
        """ArithmeticError (E511) that names what disagrees."""
        wrong = [row for row in self.rows if not row.agrees]
        if wrong:
            first = wrong[0]
            more = f" ({first.detail})" if first.detail else ""
            raise error("E511", f"{self.name}: {first.what} disagrees with {first.against} by {first.error:.1e}{more}",
                        label=f"{len(wrong)} of {len(self.rows)} comparisons disagree" if len(wrong) > 1 else "",
                        help="if the arguments are at a kink or tie, move them; else please report the function")


def check(fun: Fun, *args: Any, argnums: int | Sequence[int] | None = None, rtol: float | None = None,
          seed: int = 0, most: int = 64, name: str | None = None, source: str | None = None,
          raises: bool = True) -> Report:
    """Check the derivatives of `fun` at these arguments.

    argnums: the arguments to differentiate; without it all whose leaves are floats.  rtol: the tolerance of every
    comparison, relative to the largest entry (by default 1e-7 for float64 against differences, 1e-9 for forward
    against reverse, 2e-3 and 1e-3 for float32).  most: elements of one array that are compared with differences; of
    larger arrays, that many are drawn.  TranspileError (ArithmeticError, E511) for disagreement, unless `raises` is
    false; (TypeError, E401) where an argument has no derivative.
    """
    numbers = _numbers(args, argnums)
    report = Report(name or str(getattr(fun, "__name__", "function")))
    rng = np.random.default_rng(seed)
    single = any(leaf.dtype == np.float32 for k in numbers for leaf in leaves_of(args[k]))
    kind = "float32" if single else "float64"
    plain = plain_function(fun)
    expected = plain(*_copied(args))
    if expected is None:
        raise returns_nothing(f"{report.name} returns None, so there is no derivative to check",
                              _heading(plain, source))
    some = functools.partial(_with, fun, args, numbers)
    wanted = [args[k] for k in numbers]
    value, pullback = transforms.vjp(_sourced(some, source), *wanted)
    report.rows.append(_values(value, expected, rtol or (1e-4 if single else 1e-10)))
    ct = _random_like(rng, value)
    bars = pullback(ct)
    weights = leaves_of(ct)

    def projected(*moved: Any) -> Any:
        full = list(_copied(args))
        for k, x in zip(numbers, moved):
            full[k] = x
        with np.errstate(all="ignore"):
            return _dot(weights, leaves_of(plain(*full)))

    wide = [_widened(x) for x in wanted]
    for position, (k, bar) in enumerate(zip(numbers, bars)):
        report.rows.append(_against_differences(projected, wide, position, bar, rng, most, rtol or TOLERANCE[kind],
                                                _argument_name(fun, k)))
    tangents = tuple(_random_like(rng, x) for x in wanted)
    _, slope = transforms.jvp(_sourced(some, source), tuple(wanted), tangents)
    report.rows.append(_forward_and_reverse(weights, slope, bars, tangents, rtol or FORWARD_TOLERANCE[kind]))
    if raises:
        report.raise_if_not()
    return report


def check_batch(fun: Fun, *args: Any, in_axes: Any = 0, out_axes: Any = 0, rtol: float = 1e-10,
                name: str | None = None, raises: bool = True) -> Report:
    """Check `vmap(fun, in_axes, out_axes)` against calls of `fun` on one example after the other."""
    axes = in_axes if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    batched = transforms.vmap(fun, in_axes=in_axes, out_axes=out_axes)(*args)
    one = transforms.jit(fun)
    count = _batch_size(args, axes)
    lanes = [leaves_of(one(*[example(arg, axis, k) for arg, axis in zip(args, axes)]))
             for k in range(count)]
    expected = [np.stack(parts, axis=out_axes if isinstance(out_axes, int) else 0) for parts in zip(*lanes)]
    report = Report(name or str(getattr(fun, "__name__", "function")))
    report.rows.append(_compared("batch", "one example at a time", leaves_of(batched), expected, rtol))
    if raises:
        report.raise_if_not()
    return report


def _batch_size(tree: Any, axes: Any) -> int:
    """The length of the first batch axis."""
    if isinstance(axes, (tuple, list)):
        found = [_batch_size(part, axis) for part, axis in zip(tree, axes, strict=True)]
        return max(found, default=-1)
    if isinstance(axes, dict):
        return max((_batch_size(tree[key], axis) for key, axis in axes.items()), default=-1)
    leaves = leaves_of(tree) if axes is not None else []
    return int(leaves[0].shape[axes]) if leaves else -1


def example(arg: Any, axis: Any, k: int) -> Any:
    """One example of a batch: `arg` at place k of its batch axis, which is None where it has none."""
    if axis is None:
        return arg
    if isinstance(axis, dict):
        return {key: example(part, axis[key], k) for key, part in arg.items()}
    if isinstance(axis, (tuple, list)):
        return type(arg)(example(part, a, k) for part, a in zip(arg, axis, strict=True))
    return map_numbers(lambda leaf: np.take(leaf, k, axis=axis), arg)


# ---------------------------------------------------------------------------------------------------------------
# comparisons


def _values(value: Any, expected: Any, tolerance: float) -> Row:
    return _compared("value", "the function itself", leaves_of(value), leaves_of(expected),
                     tolerance)


def _compared(what: str, against: str, found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> Row:
    if [np.shape(a) for a in found] != [np.shape(b) for b in expected]:
        return Row(what, against, float("inf"), tolerance, "the shapes differ")
    worst = 0.0
    for a, b in zip(found, expected):
        worst = max(worst, _relative(np.asarray(a), np.asarray(b)))
    return Row(what, against, worst, tolerance)


def _relative(a: Any, b: Any) -> float:
    """The largest |a - b| over the largest |b|; NaN and infinities must be in the same places."""
    if a.size == 0:
        return 0.0
    if a.dtype.kind not in "fc":
        return 0.0 if bool(np.all(a == b)) else float("inf")
    finite = np.isfinite(b)
    same = np.array_equal(a[~finite], b[~finite], equal_nan=True) and bool(np.all(np.isfinite(a[finite])))
    if not same:
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(float(np.max(np.abs(b[finite]))), 1e-8)
    return float(np.max(np.abs(a[finite].astype(b.dtype) - b[finite]))) / scale


def _against_differences(projected: Fun, wide: list[Any], position: int, bar: Any, rng: np.random.Generator,
                         most: int, tolerance: float, name: str) -> Row:
    found = [np.asarray(leaf, np.float64) for leaf in leaves_of(bar)]
    leaves = leaves_of(wide[position])
    if [f.shape for f in found] != [leaf.shape for leaf in leaves]:
        return Row(f"gradient by {name}", "differences", float("inf"), tolerance, "the shapes differ")
    scale = max([float(np.max(np.abs(f))) for f in found if f.size] + [1e-8])
    worst, where, methods = 0.0, "", set[str]()
    for number, (leaf, derivative) in enumerate(zip(leaves, found)):
        chosen = np.arange(leaf.size) if leaf.size <= most else np.sort(rng.choice(leaf.size, most, replace=False))
        for flat in map(int, chosen):
            line = functools.partial(_moved, projected, wide, position, number, flat)
            expected, uncertain, method = slope(line, float(leaf.reshape(-1)[flat]))
            methods.add(method)
            off = abs(float(derivative.reshape(-1)[flat]) - expected)
            off = float("inf") if np.isnan(off) else max(off - min(uncertain, DOUBT * scale), 0.0)
            if off / scale > worst:
                worst = off / scale
                index = ", ".join(map(str, np.unravel_index(flat, leaf.shape)))
                where = (f"at {name}[{index}]: " if leaf.shape else "") + (
                    f"{derivative.reshape(-1)[flat]:.8g}, not {expected:.8g}")
    method = "complex step" if methods == {"complex step"} else "differences"
    return Row(f"gradient by {name}", method, worst, tolerance, where)


def _forward_and_reverse(weights: Sequence[Any], slope: Any, bars: Any, tangents: Any, tolerance: float) -> Row:
    forward_parts = _products(weights, leaves_of(slope))
    reverse_parts = _products(leaves_of(bars), leaves_of(tangents))
    size = max(float(np.sum(np.abs(forward_parts))), float(np.sum(np.abs(reverse_parts))), 1e-8)
    off = abs(float(np.sum(forward_parts)) - float(np.sum(reverse_parts))) / size
    return Row("forward mode", "reverse mode", float("inf") if np.isnan(off) else off, tolerance)


def _products(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return np.concatenate([np.zeros(1), *(np.ravel(np.asarray(x, np.float64) * np.asarray(y, np.float64))
                                          for x, y in zip(a, b, strict=True))])


# ---------------------------------------------------------------------------------------------------------------
# slopes of the plain function


def slope(line: Callable[[Any], Any], x: float) -> tuple[float, float, str]:
    """(derivative of `line` at 0, bound on its error, method); `line(h)` may be given a complex h.  x: the size of
    what h is added to."""
    estimate, uncertain = differences(line, 0.02 * max(1.0, abs(x)))
    exact = _complex_step(line)
    if exact is not None and abs(exact - estimate) <= max(10 * uncertain, 1e-6 * abs(estimate), 1e-10):
        return exact, 0.0, "complex step"
    return estimate, uncertain, "differences"


def differences(line: Callable[[float], float], step: float) -> tuple[float, float]:
    """Richardson extrapolation of central differences: the best entry of the table, and its error."""
    before: list[float] = []
    best, least = float("nan"), float("inf")
    for row in range(STEPS):
        h = step / 2.0 ** row
        ahead, behind = line(h), line(-h)
        current = [(ahead - behind) / (2.0 * h)]
        rounding = 4e-16 * (abs(ahead) + abs(behind)) / h
        for order, older in enumerate(before):
            finer = current[order] + (current[order] - older) / (4.0 ** (order + 1) - 1.0)
            off = max(abs(finer - current[order]), abs(finer - older)) + rounding
            if off < least:
                best, least = finer, off
            current.append(finer)
        before = current
        if row > 2 and least <= 1e-13 * abs(best):
            break
    return best, least


def _complex_step(line: Callable[[Any], Any]) -> float | None:
    """Im line(ih) / h; None where the function does not take complex numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")            # a cast that discards the imaginary part
            value = line(COMPLEX_STEP * 1j)
    except Exception:                                 # the user's function, at arguments that it was not written for
        return None
    found = float(np.imag(value)) / COMPLEX_STEP
    return found if np.isfinite(found) else None


def _moved(projected: Fun, wide: list[Any], position: int, number: int, flat: int, h: Any) -> Any:
    """The projected function with one element of one argument moved by h."""
    seen = iter(range(len(leaves_of(wide[position]))))

    def move(leaf: Any) -> Any:
        if next(seen) != number:
            return leaf
        new = np.array(leaf, np.complex128 if isinstance(h, complex) else np.float64)
        new.reshape(-1)[flat] += h
        return new if isinstance(leaf, np.ndarray) else new[()] if isinstance(leaf, np.generic) else new.item()

    moved = list(wide)
    moved[position] = map_numbers(move, wide[position])
    result = projected(*moved)
    return result if isinstance(h, complex) else float(np.real(result))


# ---------------------------------------------------------------------------------------------------------------
# trees of numbers


def _numbers(args: Sequence[Any], argnums: int | Sequence[int] | None) -> tuple[int, ...]:
    if argnums is not None:
        many = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for k in many:
            if not -len(args) <= k < len(args):
                raise error("E402", f"argnums names argument {k}, and there are {len(args)}")
        numbers = tuple(k % len(args) for k in many)
    else:
        numbers = tuple(k for k, arg in enumerate(args) if _is_float(arg))
    for k in numbers:
        if not _is_float(args[k]):
            dtypes = sorted({str(leaf.dtype) for leaf in leaves_of(args[k])})
            raise error("E401", f"argument {k} cannot be checked: it holds {', '.join(dtypes) or 'no numbers'}",
                        help="derivatives are checked by float arguments; split complex ones into their parts")
    if not numbers:
        raise error("E401", "there is no float among the arguments to differentiate",
                    help="pass a float, for example 2.0 instead of 2")
    return numbers


def _is_float(arg: Any) -> bool:
    leaves = leaves_of(arg)
    return bool(leaves) and all(leaf.dtype.kind == "f" for leaf in leaves)


def map_numbers(change: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with every number and array replaced by what `change` gives; other parts stay."""
    if isinstance(tree, (np.ndarray, np.generic, bool, int, float, complex)):
        return change(tree)
    if isinstance(tree, dict):
        return {key: map_numbers(change, part) for key, part in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [map_numbers(change, part) for part in tree]
        return type(tree)._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        made = copy.copy(tree)
        for f in dataclasses.fields(tree):
            object.__setattr__(made, f.name, map_numbers(change, getattr(tree, f.name)))
        return made
    return tree


def leaves_of(tree: Any) -> list[Any]:
    """Every number and array in the tree, as arrays."""
    found: list[Any] = []

    def note(leaf: Any) -> Any:
        found.append(np.asarray(leaf))
        return leaf

    map_numbers(note, tree)
    return found


def _dot(weights: Sequence[Any], values: Sequence[Any]) -> Any:
    total: Any = 0.0
    for w, v in zip(weights, values, strict=True):
        total = total + np.sum(np.asarray(w, np.float64) * v)
    return total


def _widened(tree: Any) -> Any:
    """Floats in double precision, for differences."""
    return map_numbers(lambda leaf: leaf.astype(np.float64) if isinstance(leaf, (np.ndarray, np.generic)) else leaf,
                       tree)


def _random_like(rng: np.random.Generator, tree: Any) -> Any:
    def draw(leaf: Any) -> Any:
        dtype = np.asarray(leaf).dtype
        made = rng.normal(size=np.shape(leaf)) if dtype.kind == "f" else np.zeros(np.shape(leaf))
        return np.asarray(made, dtype) if isinstance(leaf, np.ndarray) else type(leaf)(made)

    return map_numbers(draw, tree)


def _copied(args: Sequence[Any]) -> Sequence[Any]:
    return copy.deepcopy(tuple(args))


def _with(fun: Fun, args: Sequence[Any], numbers: Sequence[int], *some: Any) -> Any:
    """`fun` with the arguments `numbers` replaced."""
    every = list(args)
    for k, x in zip(numbers, some):
        every[k] = x
    return fun(*every)


def _sourced(fun: Fun, source: str | None) -> Fun:
    return transforms.jit(fun, source=source) if source is not None else fun


def plain_function(fun: Fun) -> Fun:
    """The Python function itself, where `fun` is its compiled form."""
    while getattr(fun, "__gradsmith_transformed__", ("",))[0] == "jit":
        fun = fun.__gradsmith_transformed__[1]  # type: ignore[attr-defined]
    return fun


def _heading(fun: Fun, source: str | None) -> Location | None:
    """Where the function is defined; None where its text cannot be found."""
    try:
        return find_source(fun, source).heading()
    except TranspileError:
        return None


def _argument_name(fun: Fun, k: int) -> str:
    try:
        return list(inspect.signature(fun).parameters)[k]
    except (TypeError, ValueError, IndexError):
        return f"argument {k}"
