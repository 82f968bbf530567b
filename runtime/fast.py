"""The quick way into a specialisation, for calls like the one it was made for.

`fast_path(spec)` gives a callable on the user's positional arguments that raises `Miss` whenever the specialisation
may not serve.  Where nothing stands between the user's arguments and the compiled entry, it is Numba's C dispatcher
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from .array import Array, captured
from .compile import EntryTable
from .kernels.guard import Miss
from .parallel import adaptive
from .specialise import Specialisation, result_form
from .transpiler.frontend.guards import StaticGuard
from .transpiler.frontend.trees import rebuild
from .transpiler.frontend.values import Leaf
from .transpiler.ir.nodes import Block, For

_MISSING = object()
_WIDE = {"float64", "complex128", "int64", "bool"}
_TREES = (tuple, list, dict)


def fast_path(spec: Specialisation, arrays: bool = False) -> Callable[..., Any] | None:
    """None where only the slow path can serve (keyword arguments, objects as arguments).

    arrays: a path that also takes Arrays, and returns Arrays if there are any; without, those miss.
    """
    described = spec.described
    if described.kwargs:
        return None
    table = new_table(spec)
    arguments = _arguments(spec)
    if arguments is None:
        return None
    checks = _checks(spec.trace.static_guards)
    captures = [_getter(c.get) for c in spec.trace.captures]
    finish = _finish(spec, spec.converters)
    call: Callable[..., Any] = table
    if _has_parallel_loops(spec.func.body) and all(isinstance(a, Leaf) for a in described.args):
        call = adaptive(table, lambda: _parallel_table(spec), tuple(described.values))
    if arrays or spec.captures_arrays():
        call = _with_arrays(call, finish, _finish(spec, spec.array_converters), spec.captures_arrays())
        return call if arguments is _PLAIN and not checks and not captures else _guarded(
            call, arguments, checks, captures, None)
    if arguments is _PLAIN and not checks and not captures:
        return call if finish is None else _finished(call, finish)
    return _guarded(call, arguments, checks, captures, finish)


def _parallel_table(spec: Specialisation) -> EntryTable | None:
    compiled = spec.parallel_entry()
    return None if compiled is None else new_table(spec, compiled)


def _has_parallel_loops(block: Block) -> bool:
    """Whether a loop may run in parallel; those that could with scratch arrays of their own are told by a second
    lowering only, so any outer loop counts."""
    return any(isinstance(s, For) for s in block.stmts)


def new_table(spec: Specialisation, compiled: Any = None) -> EntryTable:
    """A dispatcher that holds one compiled version of this specialisation alone."""
    table = EntryTable(spec.entry.py_func, targetoptions={"nopython": True, "nogil": True, "error_model": "numpy"})
    table.put(spec.compiled if compiled is None else compiled)
    return table


def is_direct(path: Callable[..., Any] | None) -> bool:
    return isinstance(path, EntryTable)


# ---------------------------------------------------------------------------------------------------------------


def _PLAIN(args: Sequence[Any]) -> Sequence[Any]:
    return args


def _arguments(spec: Specialisation) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """From positional arguments to flat leaves, raising Miss for another tree, other static parts or other kinds of
    Python number than those that were traced."""
    described = spec.described
    args, known = described.args, {id(leaf): value for leaf, value in spec.trace.static_args}
    kinds = [(k, type(v)) for k, (leaf, v) in enumerate(zip(described.leaves, described.values))
             if not leaf.type.shape and _kind_matters(spec)]
    if all(isinstance(a, Leaf) for a in args) and not known:
        return _PLAIN if not kinds else _kinds_checked(kinds, len(args))
    if not _is_plain_tree(args):
        return None
    _, tree = optree.tree_flatten(described.args, none_is_leaf=True)
    found, _ = optree.tree_flatten(described.args, none_is_leaf=True)
    place = {id(leaf): k for k, leaf in enumerate(described.leaves)}
    statics = [(k, x) for k, x in enumerate(found) if not isinstance(x, Leaf)]
    statics += [(k, known[id(x)]) for k, x in enumerate(found) if isinstance(x, Leaf) and id(x) in known]
    order = sorted((place[id(x)], k) for k, x in enumerate(found) if isinstance(x, Leaf) and id(x) not in known)
    picks = [k for _, k in order]
    by_position = {place[id(x)]: k for k, x in enumerate(found) if isinstance(x, Leaf)}
    kinds = [(by_position[k], kind) for k, kind in kinds]

    def flatten(args: Sequence[Any]) -> Sequence[Any]:
        leaves, actual = optree.tree_flatten(args, none_is_leaf=True)
        if actual != tree:
            raise Miss
        for k, expected in statics:
            value = leaves[k]
            if value is not expected and (type(value) is not type(expected) or value != expected):
                raise Miss
        for k, kind in kinds:
            if type(leaves[k]) is not kind and not _is_same_kind(leaves[k], kind):
                raise Miss
        return [leaves[k] for k in picks]

    return flatten


def _kind_matters(spec: Specialisation) -> bool:
    """Whether Python's numbers and NumPy's promote differently somewhere in this function."""
    types = {v.type.dtype for p in spec.trace.func.params for v in (p,)}
    types |= {t.type.dtype for s in spec.trace.func.body.stmts for t in s.targets}
    return not types <= _WIDE


def _kinds_checked(kinds: Sequence[tuple[int, type]], count: int) -> Callable[[Sequence[Any]], Sequence[Any]]:
    def same(args: Sequence[Any]) -> Sequence[Any]:
        if len(args) != count:
            raise Miss
        for k, kind in kinds:
            if type(args[k]) is not kind and not _is_same_kind(args[k], kind):
                raise Miss
        return args

    return same


def _is_same_kind(x: Any, kind: type) -> bool:
    """Arrays promote as NumPy's arrays do."""
    return type(x) is Array and kind is np.ndarray


def _is_plain_tree(x: Any) -> bool:
    """Only containers that optree knows by itself, and static parts that compare well."""
    if isinstance(x, Leaf) or x is None or isinstance(x, (str, int, float, bool, bytes)) or callable(x):
        return True
    if type(x) in _TREES or (isinstance(x, tuple) and hasattr(x, "_fields")):
        return all(map(_is_plain_tree, x.values() if isinstance(x, dict) else x))
    return False


def _checks(guards: Sequence[StaticGuard]) -> list[Callable[[], bool]]:
    return [guard.holds for guard in guards]


def _finish(spec: Specialisation, convert: Sequence[Callable[[Any], Any] | None]) -> Callable[[Any], Any] | None:
    """From the entry's result to the user's; None where they are the same."""
    form = result_form(spec.trace.out_tree)
    if form == "one":
        return convert[0]
    if form == "tuple":
        if not any(convert):
            return None
        return lambda flat: tuple([x if c is None else c(x) for x, c in zip(flat, convert)])
    structure, count = spec.trace.out_tree, len(spec.func.results)

    def build(flat: Any) -> Any:
        values = () if count == 0 else (flat,) if count == 1 else flat
        return rebuild(structure, [x if c is None else c(x) for x, c in zip(values, convert)])

    return build


def _finished(table: Callable[..., Any], finish: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return finish(table(*args))

    return call


def _getter(get: Callable[[], Any]) -> Callable[[], Any]:
    """How to read a capture for the compiled entry, which knows ndarrays only."""
    value = get()
    return (lambda: captured(get())) if type(value) is Array or (
        isinstance(value, np.ndarray) and value.ndim == 0) else get


def _with_arrays(table: Callable[..., Any], finish: Callable[[Any], Any] | None,
                 finish_arrays: Callable[[Any], Any] | None, always: bool) -> Callable[..., Any]:
    """Take flat arguments with Arrays among them; the result has Arrays then, or `always`."""
    ndarray = np.ndarray

    def call(*flat: Any) -> Any:
        for x in flat:
            if type(x) is Array:
                break
        else:
            result = table(*flat)
            last = finish_arrays if always else finish
            return result if last is None else last(result)
        result = table(*[x.view(ndarray) if type(x) is Array else x for x in flat])
        return result if finish_arrays is None else finish_arrays(result)

    return call


def _guarded(table: Callable[..., Any], arguments: Callable[[Sequence[Any]], Sequence[Any]],
             checks: Sequence[Callable[[], bool]], captures: Sequence[Callable[[], Any]],
             finish: Callable[[Any], Any] | None) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        for holds in checks:
            if not holds():
                raise Miss
        result = table(*arguments(args), *[get() for get in captures])
        return result if finish is None else finish(result)

    return call
