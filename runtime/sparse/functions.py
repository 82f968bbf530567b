"""`sparse_jacobian` and `sparse_hessian`.

What depends on what is found by running the function on marks (`pattern`), and kept for as long as nothing that it
follows from has changed: sizes, and the values that the function on marks reads.  A few products with colours
(`compression`) then tell all entries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..device_array import DeviceArray, adopted
from ..function import Function
from ..parted import structure_of
from ..specialise import Specialisation
from ..transforms import function
from ..transpiler.errors import error
from ..transpiler.frontend.trees import Structure, build, leaf_count
from ..transpiler.ir.library import main_of
from ..transpiler.ir.walk import reads
from .colouring import Ints
from .compression import Compression, compress_hessian, compress_jacobian
from .pattern import Pattern, detect, pattern_of

_NONE = np.zeros(0, np.int64)
KEPT = 8                # patterns for other sizes or data that are remembered


class Passes(NamedTuple):
    """How many products a sparse derivative takes: tangents (forward mode) and cotangents (reverse mode)."""

    tangents: int
    cotangents: int


@dataclass(frozen=True, eq=False)
class Block:
    """The entries of one array of the result and one of the arguments.

    entries: their numbers in the whole pattern; None for all.
    """

    indptr: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    shape: tuple[int, int]
    dtype: str
    entries: Ints | None

    def matrix(self, data: np.ndarray[Any, Any], dtype: str | None = None) -> sparse.csr_array:
        """In arrays of its own, since people may change a matrix in place."""
        own = (data if self.entries is None else data[self.entries]).astype(dtype or self.dtype, copy=False)
        return sparse.csr_array((own, self.indices.copy(), self.indptr.copy()), shape=self.shape)


@dataclass(frozen=True, eq=False)
class Reading:
    """Which entries are read in products of one kind, and where: at colour * width + place.

    colours: one array for each array of the arguments (tangents) or of the result (cotangents); count: how many.
    """

    colours: tuple[Any, ...]
    count: int
    width: int
    entries: Ints
    positions: Ints

    def fill(self, data: np.ndarray[Any, Any], products: Sequence[Any], which: Ints) -> None:
        """The entries that stand in the products with the colours `which`, which are neighbours."""
        flat = [np.asarray(p).reshape(len(which), -1) for p in products]
        table = (flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)).reshape(-1)
        if len(which) == self.count:
            data[self.entries] = table[self.positions]
            return
        first = which[0] * self.width
        here = (self.positions >= first) & (self.positions < first + len(which) * self.width)
        data[self.entries[here]] = table[self.positions[here] - first]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is computed for some sizes (and data).

    spec, shapes, values: what the pattern follows from.  template: the result's containers, with numbers of arrays.
    prints: whether the function does.  blocks: [result][argument]; nothing: those of a result that is known while
    transpiling.
    """

    spec: Specialisation
    shapes: tuple[tuple[int, ...], ...]
    values: dict[int, Any]
    template: Any
    prints: bool
    compression: Compression
    tangents: Reading
    cotangents: Reading
    blocks: list[list[Block]]
    nothing: list[Block]
    structures: list[Structure]

    def fits(self, spec: Specialisation, shapes: tuple[tuple[int, ...], ...], flat: Sequence[Any]) -> bool:
        return spec is self.spec and shapes == self.shapes and all(
            np.array_equal(flat[k], value) for k, value in self.values.items())


class Call(NamedTuple):
    """numbers: of the arguments that are differentiated, in order; order: for each of argnums, its place in there."""

    args: tuple[Any, ...]
    numbers: tuple[int, ...]
    order: tuple[int, ...]


class Derivatives(NamedTuple):
    """The compiled functions for some argnums."""

    marks: Function
    columns: Function
    rows: Function
    besides: Function


class SparseDerivative:
    """A function that gives a sparse matrix, or a tree of them; see `sparse_jacobian` and `sparse_hessian`."""

    def __init__(self, kind: str, fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, sparsity: Any,
                 chunk: int | None) -> None:
        if not callable(fun):
            raise error("E104", f"gradsmith.{kind} takes a function, not a {type(fun).__name__}", None, kind=TypeError)
        if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, (int, np.integer)) or chunk < 1):
            raise error("E402", f"chunk of {kind} must be a positive int, not {chunk!r}", None,
                        kind=ValueError if isinstance(chunk, (int, np.integer)) else TypeError)
        self.__gradsmith_transformed__ = (kind, fun, (argnums,), {"has_aux": has_aux} if has_aux else {})
        functools.update_wrapper(self, fun, updated=())
        self._kind, self._fun, self._argnums, self._has_aux, self._chunk = kind, fun, argnums, has_aux, chunk
        self._given = None if sparsity is None else pattern_of(sparsity)
        self._of_argnums: dict[tuple[int, ...], Derivatives] = {}
        self._plans: list[Plan] = []
        self._read: dict[Specialisation, list[int]] = {}

    def __repr__(self) -> str:
        return f"<gradsmith.{self._kind} of {getattr(self._fun, '__qualname__', self._fun)!s}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self._call(args, kwargs)
        plan = self._plan(call)
        data, aux = self._data(plan, call)
        found = self._assembled(plan, call, lambda block: block.matrix(data))
        return (found, aux) if self._has_aux else found

    def sparsity(self, *args: Any, **kwargs: Any) -> Any:
        """The pattern for these arguments: True at the places that may not be zero."""
        call = self._call(args, kwargs)
        plan = self._plan(call)
        data = np.ones(plan.compression.pattern.count, bool)
        return self._assembled(plan, call, lambda block: block.matrix(data, "bool"))

    def passes(self, *args: Any, **kwargs: Any) -> Passes:
        """How many products a call with these arguments takes."""
        compression = self._plan(self._call(args, kwargs)).compression
        return Passes(compression.tangents, compression.cotangents)

    # --- arguments -------------------------------------------------------------------------------------------------

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if kwargs:
            args, rest = function("jit", self._fun)._positional(args, kwargs)
            if rest:
                raise error("E402", f"{self._kind} takes arguments by position, and {', '.join(rest)} has none here",
                            None, help="pass it by a closure or functools.partial", kind=TypeError)
        args = here(args)
        many = tuple(self._argnums) if isinstance(self._argnums, (tuple, list)) else (self._argnums,)
        if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and -len(args) <= n < len(args)
                   for n in many):
            self._derivatives(many).marks(*args, ())                     # says what is wrong
        found = [int(n) % len(args) for n in many]
        numbers = tuple(sorted(set(found)))
        return Call(args, numbers, tuple(map(numbers.index, found)))

    def _derivatives(self, numbers: tuple[int, ...]) -> Derivatives:
        if numbers not in self._of_argnums:
            fun = self._differentiated(numbers)
            made = [Function(kind, fun, (numbers,), {"has_aux": self._has_aux, "said": self._kind})
                    for kind in ("sparsity", "compressed_columns", "compressed_rows", "besides")]
            for one in made:
                one.parameters = []                                      # most take more than `fun` does
            self._of_argnums[numbers] = Derivatives(*made)
        return self._of_argnums[numbers]

    def _differentiated(self, numbers: tuple[int, ...]) -> Callable[..., Any]:
        """The function whose Jacobian it is."""
        return self._fun

    # --- plans -----------------------------------------------------------------------------------------------------

    def _plan(self, call: Call) -> Plan:
        """The plan for these arguments: a kept one where it must be the same."""
        wanted = [x for n in call.numbers for x in numbers_in(call.args[n])]
        marks = self._derivatives(call.numbers).marks
        nothing = tuple(np.zeros(np.shape(x), np.int64)[()] for x in wanted)
        described = marks.described((*call.args, nothing), {})
        spec = marks.specialisation(described)
        flat = spec.flat(described.values)
        shapes = tuple(np.shape(x) for x in flat)
        for plan in self._plans:
            if plan.fits(spec, shapes, flat):
                return plan
        if spec not in self._read:
            self._read[spec] = what_marks_follow_from(spec, len(wanted))
        values = {k: np.array(flat[k]) for k in self._read[spec]}
        structures = [structure_of(described.args[n], f"argument {n}", self._kind) for n in call.numbers]
        plan = self._made(call, spec, shapes, values, structures, wanted)
        self._plans = [plan, *self._plans[:KEPT - 1]]
        return plan

    def _made(self, call: Call, spec: Specialisation, shapes: tuple[tuple[int, ...], ...], values: dict[int, Any],
              structures: list[Structure], wanted: Sequence[Any]) -> Plan:
        marks, ins = self._derivatives(call.numbers).marks, [np.shape(x) for x in wanted]
        columns = sum(map(_size, ins))
        found, template, dtypes, prints = marks(*call.args, in_parts(np.zeros(columns, np.int64), ins))
        outs = [np.shape(x) for x in found]
        rows = sum(map(_size, outs))
        pattern = self._given
        if pattern is None:
            pattern = detect(lambda seeds: joined(marks(*call.args, in_parts(seeds, ins))[0]), columns, rows)
        elif pattern.shape != (rows, columns):
            raise error("E402", f"the sparsity that {self._kind} was given has the shape {pattern.shape}, but there "
                        f"are {rows} rows and {columns} columns", None, kind=ValueError)
        last = self._plans[0].compression if self._plans else None
        made = self._compressed(pattern, any(np.dtype(d).kind == "c" for d in dtypes), last)
        mine, others = np.flatnonzero(made.by_tangent), np.flatnonzero(~made.by_tangent)
        return Plan(spec, shapes, values, template, prints, made,
                    Reading(in_parts(made.column_colours, ins), made.tangents, rows, mine,
                            made.colours[mine] * rows + made.places[mine]),
                    Reading(in_parts(made.row_colours, outs), made.cotangents, columns, others,
                            made.colours[others] * columns + made.places[others]),
                    _blocks(made.pattern, ins, outs, dtypes),
                    [Block(np.zeros(2, int), _NONE, (1, np.size(x)), np.asarray(x).dtype.name, _NONE) for x in wanted],
                    structures)

    def _compressed(self, pattern: Pattern, is_complex: bool, last: Compression | None) -> Compression:
        """Colours for the pattern; those of the `last` one if it is the same."""
        same = last is not None and last.pattern.equals(pattern)
        return last if same and last is not None else compress_jacobian(pattern, columns_alone=is_complex)

    # --- numbers ---------------------------------------------------------------------------------------------------

    def _data(self, plan: Plan, call: Call) -> tuple[Any, Any]:
        """The entries in the order of the pattern, and aux."""
        derivatives = self._derivatives(call.numbers)
        dtypes = [block.dtype for row in plan.blocks for block in row]
        data = np.empty(plan.compression.pattern.count, np.result_type(*dtypes) if dtypes else np.float64)
        for compute, reading in ((derivatives.columns, plan.tangents), (derivatives.rows, plan.cotangents)):
            for which in _in_chunks(reading.count, self._chunk):
                reading.fill(data, compute(*call.args, reading.colours, which), which)
        return data, derivatives.besides(*call.args) if self._has_aux or plan.prints else None

    def _assembled(self, plan: Plan, call: Call, matrix: Callable[[Block], Any]) -> Any:
        """The result's containers, with matrices in the arguments' containers in the place of each array."""
        return _filled(plan.template, lambda k: self._of_arguments(
            plan, call, [matrix(block) for block in (plan.nothing if k < 0 else plan.blocks[k])]))

    def _of_arguments(self, plan: Plan, call: Call, parts: list[Any]) -> Any:
        """One thing for each array of the arguments, in their containers."""
        trees, at = [], 0
        for structure in plan.structures:
            count = leaf_count(structure)
            trees.append(build(structure, parts[at:at + count], lambda node, leaf: leaf, _object))
            at += count
        many = isinstance(self._argnums, (tuple, list))
        return tuple(trees[k] for k in call.order) if many else trees[0]


class SparseHessian(SparseDerivative):
    """The Jacobian of the gradient, whose symmetry halves the work."""

    def _differentiated(self, numbers: tuple[int, ...]) -> Callable[..., Any]:
        return function("grad", self._fun, numbers, has_aux=self._has_aux)

    def _compressed(self, pattern: Pattern, is_complex: bool, last: Compression | None) -> Compression:
        symmetric = pattern.symmetric()
        same = last is not None and last.pattern.equals(symmetric)
        return last if same and last is not None else compress_hessian(symmetric)

    def _assembled(self, plan: Plan, call: Call, matrix: Callable[[Block], Any]) -> Any:
        return self._of_arguments(plan, call, [self._of_arguments(plan, call, list(map(matrix, row)))
                                               for row in plan.blocks])


def what_marks_follow_from(spec: Specialisation, marks: int) -> list[int]:
    """The flat arguments of the function on marks that it reads, besides its last `marks` ones and sizes."""
    params = main_of(spec.func).params
    read = reads(main_of(spec.func).body)
    captures = len(spec.trace.captures)
    own = range(len(params) - captures - marks, len(params) - captures)
    return [k for k, p in enumerate(params)
            if k not in own and (p in read or (not p.type.shape and p.type.kind in "biu"))]


def here(tree: Any) -> Any:
    """An argument with arrays of other devices, and jax's, as NumPy's."""
    if isinstance(tree, tuple):
        parts = map(here, tree)
        return type(tree)._make(parts) if hasattr(tree, "_make") else tuple(parts)
    if type(tree) in (list, dict):
        return list(map(here, tree)) if type(tree) is list else {key: here(part) for key, part in tree.items()}
    found = adopted(tree)
    return np.asarray(found) if isinstance(found, DeviceArray) else found


def numbers_in(tree: Any) -> Iterator[Any]:
    """The arrays and numbers of an argument, in the order in which the transpiler takes them."""
    if isinstance(tree, (np.ndarray, np.generic, float, complex)):
        yield tree
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from numbers_in(part)
    elif isinstance(tree, (tuple, list)):
        for part in tree:
            yield from numbers_in(part)
    elif is_dataclass(tree) and not isinstance(tree, type):
        for f in fields(tree):
            yield from numbers_in(getattr(tree, f.name))


def in_parts(flat: Ints, shapes: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
    """One array of each shape (numbers for the shape of one), one after the other out of a flat one."""
    found, at = [], 0
    for shape in shapes:
        found.append(flat[at:at + _size(shape)].reshape(shape)[()])
        at += _size(shape)
    return tuple(found)


def joined(marks: Sequence[Any]) -> Ints:
    """The arrays one after the other as a flat one."""
    return np.concatenate([np.asarray(m).reshape(-1) for m in marks]) if len(marks) != 1 else (
        np.asarray(marks[0]).reshape(-1))


def _size(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _in_chunks(count: int, chunk: int | None) -> Iterator[Ints]:
    """Runs of neighbouring colours, all of one length, which is at most `chunk`; they may overlap."""
    if not count:
        return
    rounds = 1 if chunk is None else -(-count // chunk)
    length = -(-count // rounds)
    for k in range(rounds):
        first = min(k * length, count - length)
        yield np.arange(first, first + length)


def _blocks(pattern: Pattern, ins: Sequence[tuple[int, ...]], outs: Sequence[tuple[int, ...]],
            dtypes: Sequence[str]) -> list[list[Block]]:
    """The pattern cut up: one block for each array of the result and each of the arguments."""
    index = np.int32 if max(*pattern.shape, pattern.count) < 2**31 else np.int64
    if len(ins) == 1 and len(outs) == 1:
        return [[Block(pattern.indptr.astype(index), pattern.indices.astype(index), pattern.shape, dtypes[0], None)]]
    row_of, found, top = pattern.rows(), [], 0
    for out, dtype in zip(outs, dtypes, strict=True):
        row: list[Block] = []
        left = 0
        for given in ins:
            mine = ((row_of >= top) & (row_of < top + _size(out)) & (pattern.indices >= left)
                    & (pattern.indices < left + _size(given)))
            part = pattern.only(mine)
            row.append(Block(part.indptr[top:top + _size(out) + 1].astype(index), (part.indices - left).astype(index),
                             (_size(out), _size(given)), dtype, np.flatnonzero(mine)))
            left += _size(given)
        found.append(row)
        top += _size(out)
    return found


def _filled(template: Any, of: Callable[[int], Any]) -> Any:
    """The template with `of(k)` in the place of the number k."""
    if type(template) is int:
        return of(template)
    if isinstance(template, tuple) and hasattr(template, "_make"):
        return type(template)._make(_filled(part, of) for part in template)
    if isinstance(template, (tuple, list)):
        return type(template)(_filled(part, of) for part in template)
    if isinstance(template, dict):
        return {key: _filled(part, of) for key, part in template.items()}
    if is_dataclass(template) and not isinstance(template, type):
        return _object(type(template), [f.name for f in fields(template)],
                       [_filled(getattr(template, f.name), of) for f in fields(template)])
    return template


def _object(cls: type, names: Sequence[str], parts: Sequence[Any]) -> Any:
    made: Any = object.__new__(cls)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def sparse_jacobian(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, *,
                    sparsity: Any = None, chunk: int | None = None) -> SparseDerivative:
    """A function that gives the Jacobian as a SciPy CSR array of the shape (numbers in the result, numbers in the
    argument), both in C order.  Trees and several argnums give trees of them, as in `jacfwd`.

    Which entries are stored follows from what depends on what in the function: never one too few, zeros by coincidence
    and both sides of a `where` among them.  Branches and loops count as they run.  sparsity: the pattern, for those who
    know it: what SciPy takes for a sparse matrix, True or not zero where an entry may be; a wrong one gives wrong
    numbers.  chunk: how many products are computed at a time.  has_aux: `fun` returns (value, aux), the result is
    (Jacobian, aux).

    `.sparsity(*args)` is the pattern, `.passes(*args)` tells how many products are computed.
    TypeError for arguments that are ints, bools, strings or complex.  It cannot be called in transpiled code.
    """
    return SparseDerivative("sparse_jacobian", fun, argnums, has_aux, sparsity, chunk)


def sparse_hessian(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, *,
                   sparsity: Any = None, chunk: int | None = None) -> SparseHessian:
    """A function that gives the Hessian of a function that returns one real number, as a SciPy CSR array; see
    `sparse_jacobian`.  Products with the colours of a star colouring tell it, forward over reverse.  A given `sparsity`
    is made symmetric."""
    return SparseHessian("sparse_hessian", fun, argnums, has_aux, sparsity, chunk)


for _transform in (sparse_jacobian, sparse_hessian):
    _transform.__gradsmith_transform__ = _transform.__name__  # type: ignore[attr-defined]
