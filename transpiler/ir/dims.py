"""Symbolic array dimensions: polynomials with integer coefficients over named sizes.

A dimension is an ``int`` where it is known, else a `DimExpr`.  Sums, differences and products stay in one
normal form, so two dimensions are equal exactly when they compare equal; quotients, remainders, minima and
maxima become atoms of the polynomial.  `str()` of a dimension is Python source text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Any, Protocol, TypeGuard

Dim = "int | DimExpr"


@total_ordering
@dataclass(frozen=True, slots=True)
class Symbol:
    """A named size.  `low` is a bound known from specialisation (sizes 0 and 1 are made static, so 2) or 0."""

    name: str
    low: int = field(default=2, compare=False)

    def __lt__(self, other: object) -> bool:
        return str(self) < str(other)

    def __str__(self) -> str:
        return self.name


@total_ordering
@dataclass(frozen=True, slots=True)
class DimCall:
    """An operation that polynomials lack: `kind` is one of floordiv, mod, max, min."""

    kind: str
    args: tuple[Any, ...]

    def __lt__(self, other: object) -> bool:
        return str(self) < str(other)

    def __str__(self) -> str:
        a, b = self.args
        if self.kind in ("max", "min"):
            return f"{self.kind}({a}, {b})"
        return f"({a}) {'//' if self.kind == 'floordiv' else '%'} {b if isinstance(b, int) else f'({b})'}"


Atom = Symbol | DimCall
Monomial = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class DimExpr:
    """A polynomial in normal form: `terms` maps sorted monomials to non-zero coefficients, as sorted pairs."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Any) -> Any:
        return _combine(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _combine(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return _combine(other, self, -1)

    def __neg__(self) -> Any:
        return self * -1

    def __mul__(self, other: Any) -> Any:
        if not is_dim(other):
            return NotImplemented
        found: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = tuple(sorted(left + right))
                found[monomial] = found.get(monomial, 0) + a * b
        return _normal(found)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return floordiv(other, self)

    def __mod__(self, other: Any) -> Any:
        return self - floordiv(self, other) * other

    def __rmod__(self, other: Any) -> Any:
        return other - floordiv(other, self) * self

    def __str__(self) -> str:
        text = ""
        ordered = sorted(self.terms, key=lambda term: (term[0] == (), term[1] < 0, [str(a) for a in term[0]]))
        for monomial, coefficient in ordered:
            factors = [str(atom) if isinstance(atom, Symbol) or atom.kind in ("max", "min") else f"({atom})"
                       for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            text += (f" {sign} " if text else "-" if coefficient < 0 else "") + "*".join(factors)
        return text

    def __repr__(self) -> str:
        return f"<{self}>"


class Decider(Protocol):
    """Who knows more about sizes than their names tell: the frontend, while it traces a function."""

    def are_equal(self, a: Any, b: Any) -> bool: ...

    def example(self, dim: Any) -> int | None: ...

    def shown(self, dim: Any) -> int | None: ...


deciding: ContextVar[Decider | None] = ContextVar("deciding", default=None)


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes that an operation needs to be equal are so.

    While a function is traced, the frontend decides (`deciding`) and guards its answer; later, sizes that are not
    known to differ are equal.
    """
    if a == b:
        return True
    decider = deciding.get()
    return decider.are_equal(a, b) if decider is not None else not isinstance(a - b, int)


def shown_shape(shape: Any) -> str:
    """A shape as NumPy's messages write it, with the sizes of this call where they are known."""
    decider = deciding.get()
    sizes = [decider.shown(d) if decider is not None else None for d in shape]
    text = ",".join(str(d if size is None else size) for d, size in zip(shape, sizes))
    return f"({text},)" if len(sizes) == 1 else f"({text})"


def is_dim(value: object) -> TypeGuard[int | DimExpr]:
    return isinstance(value, (int, DimExpr)) and not isinstance(value, bool)


def symbol(name: str, low: int = 2) -> DimExpr:
    """The dimension that is the size `name`."""
    return DimExpr((((Symbol(name, low),), 1),))


def _terms(dim: Any) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(dim, DimExpr):
        return dim.terms
    return (((), dim),) if dim else ()


def _normal(found: Mapping[Monomial, int]) -> Any:
    kept = tuple(sorted(((m, c) for m, c in found.items() if c), key=lambda term: [str(a) for a in term[0]]))
    if not kept:
        return 0
    if len(kept) == 1 and kept[0][0] == ():
        return kept[0][1]
    return DimExpr(kept)


def _combine(left: Any, right: Any, sign: int) -> Any:
    if not (is_dim(left) and is_dim(right)):
        return NotImplemented
    found = dict(_terms(left))
    for monomial, coefficient in _terms(right):
        found[monomial] = found.get(monomial, 0) + sign * coefficient
    return _normal(found)


def _of(atom: Atom) -> DimExpr:
    return DimExpr((((atom,), 1),))


def floordiv(a: Any, b: Any) -> Any:
    """`a // b` rounded down, exact where every coefficient divides."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if a == b:
        return 1
    if isinstance(b, int):
        whole = _normal({m: c // b for m, c in _terms(a) if c % b == 0})
        rest = _normal({m: c for m, c in _terms(a) if c % b})
        if whole != 0 or isinstance(rest, int):
            return whole + floordiv(rest, b)
    else:
        quotient = _exact_quotient(a, b)
        if quotient is not None:
            return quotient
    return _of(DimCall("floordiv", (a, b)))


def _exact_quotient(a: Any, b: Any) -> Any | None:
    """a / b where b is a single monomial that divides every term of a."""
    if len(b.terms) != 1:
        return None
    (divisor, scale), = b.terms
    found: dict[Monomial, int] = {}
    for monomial, coefficient in _terms(a):
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % scale:
            return None
        found[tuple(rest)] = coefficient // scale
    return _normal(found)


def _order(dim: Any) -> tuple[bool, str]:
    return isinstance(dim, int), str(dim)


def maximum(a: Any, b: Any) -> Any:
    """max(a, b), decided where the bounds of a - b tell."""
    low, high = bounds(a - b)
    if low is not None and low >= 0:
        return a
    if high is not None and high <= 0:
        return b
    return _of(DimCall("max", tuple(sorted((a, b), key=_order))))


def minimum(a: Any, b: Any) -> Any:
    """min(a, b), decided where the bounds of a - b tell."""
    low, high = bounds(a - b)
    if low is not None and low >= 0:
        return b
    if high is not None and high <= 0:
        return a
    return _of(DimCall("min", tuple(sorted((a, b), key=_order))))


def bounds(dim: Any) -> tuple[int | None, int | None]:
    """Lowest and highest possible value, None where unbounded; symbols are at least their `low`."""
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in _terms(dim):
        least: int | None = 1
        most: int | None = 1
        for atom in monomial:
            atom_low, atom_high = (atom.low, None) if isinstance(atom, Symbol) else _call_bounds(atom)
            if atom_low is None or atom_low < 0 or least is None:
                least = most = None
                break
            least *= atom_low
            most = None if most is None or atom_high is None else most * atom_high
        if coefficient < 0:
            least, most = most, least
        low = None if low is None or least is None else low + coefficient * least
        high = None if high is None or most is None else high + coefficient * most
    return low, high


def _call_bounds(call: DimCall) -> tuple[int | None, int | None]:
    (a_low, a_high), (b_low, b_high) = (bounds(arg) for arg in call.args)
    if call.kind == "max":
        low = b_low if a_low is None else a_low if b_low is None else max(a_low, b_low)
        return low, None if a_high is None or b_high is None else max(a_high, b_high)
    if call.kind == "min":
        high = b_high if a_high is None else a_high if b_high is None else min(a_high, b_high)
        return None if a_low is None or b_low is None else min(a_low, b_low), high
    divisor = call.args[1]
    if isinstance(divisor, int) and divisor > 0:
        if call.kind == "mod":
            return 0, divisor - 1
        return (None if a_low is None else a_low // divisor), (None if a_high is None else a_high // divisor)
    nonnegative = a_low is not None and a_low >= 0 and b_low is not None and b_low > 0
    return (0 if nonnegative else None), None


def symbols_of(dim: Any) -> dict[str, Symbol]:
    """The named sizes inside a dimension, by name."""
    found: dict[str, Symbol] = {}
    for monomial, _ in _terms(dim):
        for atom in monomial:
            if isinstance(atom, Symbol):
                found[atom.name] = atom
            else:
                for arg in atom.args:
                    found.update(symbols_of(arg))
    return found


def substitute(dim: Any, sizes: Mapping[str, Any] | Callable[[Symbol], Any]) -> Any:
    """The dimension with named sizes replaced by other dimensions or ints; names not in `sizes` stay."""
    if isinstance(dim, int):
        return dim
    lookup = sizes if callable(sizes) else lambda s: sizes.get(s.name, _of(s))
    total: Any = 0
    for monomial, coefficient in dim.terms:
        term: Any = coefficient
        for atom in monomial:
            term = term * (lookup(atom) if isinstance(atom, Symbol) else _apply(atom, lookup))
        total = total + term
    return total


def _apply(call: DimCall, lookup: Callable[[Symbol], Any]) -> Any:
    a, b = (substitute(arg, lookup) for arg in call.args)
    if call.kind == "mod":
        return a % b if isinstance(a, int) and isinstance(b, int) else a - floordiv(a, b) * b
    return {"floordiv": floordiv, "max": maximum, "min": minimum}[call.kind](a, b)


def product(dims: Any) -> Any:
    """The number of elements of a shape."""
    total: Any = 1
    for dim in dims:
        total = total * dim
    return total


def slice_length(start: Any, stop: Any, step: int) -> Any:
    """How many indices `range(start, stop, step)` has, for bounds already wrapped and clipped as slices do."""
    span = stop - start if step > 0 else start - stop
    return maximum(floordiv(span + abs(step) - 1, abs(step)), 0)
