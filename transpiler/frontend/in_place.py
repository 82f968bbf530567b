"""Functions and methods that write into an array: `np.copyto`, `np.add.at`, `out=`, `x.sort()` and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import for_loop, int_const, size_value
from ..ir.index import At
from ..ir.nodes import Value
from ..ops.base import RuleError
from ..ops.families import broadcast_to
from ..ops.spelling import as_value, cast
from . import written_functions
from .indexing import Index, get_item, index_arrays, parse_index, read_advanced
from .values import ArrayRef, Masked, is_static
from .writes import check_writable, put_whole, scattered, write_all, write_item

if TYPE_CHECKING:
    from .interpreter import Interpreter

_NO_OPERAND = object()


def _array(x: Any, name: str) -> ArrayRef:
    if not isinstance(x, ArrayRef):
        raise RuleError(f"{name} needs an array to write to", kind=TypeError, code="E208")
    return x


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function as Python that is interpreted."""

    def call(it: Interpreter, target: Any, *args: Any, **kwargs: Any) -> Any:
        return it.call(function, (_array(target, f"np.{function.__name__}"), *args), kwargs, it.here)

    return call


def _copyto(it: Interpreter, dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    from .numpy_calls import lower
    target = _array(dst, "np.copyto")
    if not isinstance(src, Masked):
        dtype = as_value(lower(src)).dtype
        if not np.can_cast(dtype, target.dtype, casting):      # type: ignore[arg-type]
            raise RuleError(f"Cannot cast array data from dtype('{dtype}') to dtype('{target.dtype}') according to the "
                            f"rule '{casting}'", kind=TypeError, code="E308")
    if where is True:
        write_item(it, target, Ellipsis, src)
    else:
        it.call(written_functions.copy_where, (target, src, where), {}, it.here)


def _nan_to_num(it: Interpreter, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None,
                neginf: Any = None) -> Any:
    if copy is False and isinstance(x, ArrayRef):
        if x.type.kind not in "fc":
            return x
        return it.call(written_functions.nan_to_num, (x, nan, posinf, neginf), {}, it.here)
    return it.call_numpy(np.nan_to_num, (x,), {"nan": nan, "posinf": posinf, "neginf": neginf})


def _fill(it: Interpreter, x: Any, value: Any) -> None:
    write_item(it, _array(x, "fill"), Ellipsis, value)


def _sort(it: Interpreter, x: Any, axis: Any = -1, **options: Any) -> None:
    write_item(it, _array(x, "sort"), Ellipsis, it.call_numpy(np.sort, (x,), {"axis": axis, **options}))


def _setitem(it: Interpreter, x: Any, key: Any, value: Any) -> None:
    from .assignments import set_item
    set_item(it, x, key, value)


def _view(it: Interpreter, x: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        raise RuleError("ndarray.view of another type is not supported", code="E203", kind=NotImplementedError,
                        help="use .astype() for the values in another dtype")
    return get_item(it, x, Ellipsis)


# ---------------------------------------------------------------------------------------------------------------
# ufunc.at


def at(it: Interpreter, ufunc: np.ufunc, target: Any, key: Any, value: Any = _NO_OPERAND) -> None:
    """`ufunc.at(target, key, value)`: one after another, so that repeated indices work on what was left there."""
    target = _array(target, f"np.{ufunc.__name__}.at")
    check_writable(it, target)
    operands = () if value is _NO_OPERAND else (value,)
    if isinstance(key, ArrayRef) and key.dtype == "bool" and not is_static(key):
        _at_mask(it, ufunc, target, key, operands)
        return
    index = parse_index(it, target.shape, key)
    if index.is_basic:
        new = it.call_numpy(ufunc, (get_item(it, target, key), *operands), {})
        write_item(it, target, key, new)
        return
    if ufunc in (np.add, np.subtract) and operands and _keeps_kind(target, value):
        new = as_value(value.read() if isinstance(value, ArrayRef) else _lowered(value))
        new = cast(new, target.dtype)
        from .numpy_calls import lift
        put_whole(it, target, scattered(it, target.read(), index, lift(new if ufunc is np.add else ops.negative(new)),
                                        ops.scatter_add))
        return
    _one_by_one(it, ufunc, target, index, [as_value(_lowered(v)) for v in operands])


def _lowered(x: Any) -> Any:
    from .numpy_calls import lower
    return lower(x)


def _keeps_kind(target: ArrayRef, value: Any) -> bool:
    """Whether adding the value needs no cast between the additions."""
    kind = as_value(_lowered(value)).type.kind
    return target.type.kind in "fc" if kind == "f" else target.type.kind == "c" if kind == "c" else (
        target.type.kind != "b")


def _at_mask(it: Interpreter, ufunc: np.ufunc, target: ArrayRef, mask: ArrayRef, operands: tuple[Any, ...]) -> None:
    if any(isinstance(v, ArrayRef) and v.rank for v in operands) or mask.rank != target.rank:
        raise RuleError(f"np.{ufunc.__name__}.at with a mask known at run time takes a number", code="E311",
                        kind=NotImplementedError, help="use np.where(mask, a, b)")
    it.call_numpy(ufunc, (target, *operands), {"out": target, "where": mask})


def _one_by_one(it: Interpreter, ufunc: np.ufunc, target: ArrayRef, index: Index, operands: list[Value]) -> None:
    places = _places(it, target, index)
    size, count = dims.product(target.shape), dims.product(places.shape)
    numbers = ops.reshape(places, shape=(count,))
    values = [ops.reshape(broadcast_to(v, places.shape), shape=(count,)) if v.rank else v for v in operands]

    def body(k: Value, whole: Value) -> list[Value]:
        place = ops.load(numbers, k, index=(At(),))
        old = ops.load(whole, place, index=(At(),))
        new = it.spell(ufunc, old, *(ops.load(v, k, index=(At(),)) if v.rank else v for v in values))
        if new.type.kind == "c" and target.type.kind != "c":
            raise RuleError(f"Cannot cast ufunc '{ufunc.__name__}' output from dtype('{new.dtype}') to "
                            f"dtype('{target.dtype}')", kind=TypeError, code="E308")
        return [ops.store(whole, cast(new, target.dtype), place, index=(At(),))]

    flat = ops.reshape(target.read(), shape=(size,))
    (flat,) = for_loop(int_const(0), size_value(count), [flat], body, hints=["flat"])
    put_whole(it, target, ops.reshape(flat, shape=target.shape))


def _places(it: Interpreter, target: ArrayRef, index: Index) -> Value:
    """The numbers of the selected elements, counted through the whole array."""
    if target.rank == 1 and list(index.arrays) == [0] and index.basic_is_whole(target.shape):
        return index_arrays(it, target.shape, index)[0]
    size = dims.product(target.shape)
    numbers = ops.reshape(ops.iota(shape=(size,), axis=0, dtype="int64"), shape=target.shape)
    return read_advanced(it, numbers, index)


# ---------------------------------------------------------------------------------------------------------------
# out=


def with_out(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
    """A call whose result is written into arrays that were given for it; None where none was."""
    is_ufunc = isinstance(key, np.ufunc)
    out = kwargs.get("out")
    if is_ufunc and len(args) > key.nin:
        args, out = args[:key.nin], args[key.nin:]
    outs = out if isinstance(out, tuple) else (out,)
    if not any(isinstance(x, ArrayRef) for x in outs):
        return None
    options = {name: value for name, value in kwargs.items() if name != "out"}
    where = options.pop("where", True) if is_ufunc else True
    result = it.call_numpy(key, args, options)
    results = result if isinstance(result, tuple) else (result,)
    if len(outs) > len(results):
        raise RuleError(f"{len(outs)} arrays are given for {len(results)} result{'s' if len(results) > 1 else ''}",
                        kind=ValueError, code="E208")
    name = getattr(key, "__name__", "")
    made = [_written(it, target, new, where, name) for target, new in zip(outs, results)] + list(results[len(outs):])
    return tuple(made) if isinstance(result, tuple) else made[0]


def _written(it: Interpreter, target: Any, result: Any, where: Any, name: str) -> Any:
    if not isinstance(target, ArrayRef):
        return result
    if where is True:
        write_all(it, target, result, name)
        return target
    chosen = as_value(_lowered(where))
    if chosen.dtype != "bool":
        raise RuleError(f"Cannot cast array data from dtype('{chosen.dtype}') to dtype('bool') according to the rule "
                        "'safe'", kind=TypeError, code="E308")
    new = as_value(_lowered(result))
    if not np.can_cast(new.dtype, target.dtype, "same_kind"):
        write_all(it, target, result, name)             # raises
    old, chosen = target.read(), broadcast_to(chosen, target.shape)
    write_all(it, target, ArrayRef(ops.select(chosen, broadcast_to(cast(new, target.dtype), target.shape), old)), name)
    return target


def set_flat(it: Interpreter, flat: ArrayRef, key: Any, value: Any) -> None:
    """`x.flat[key] = value`."""
    assert flat.base is not None and flat.view is not None
    value_now = None if flat.current_known() is not None else flat.read()
    plain = ArrayRef.of_view(flat.base, flat.view, value_now, layout=flat.layout)
    it.call(written_functions.set_repeated, (plain, key, value), {}, it.here)


def set_array_attribute(it: Interpreter, array: ArrayRef, name: str, value: Any) -> None:
    """`x.flat = v`, `z.real = v`."""
    if name == "flat":
        from .attributes import get_attribute
        set_flat(it, get_attribute(it, array, "flat"), slice(None), value)
    elif name in ("real", "imag"):
        write_item(it, it.call_numpy({"real": np.real, "imag": np.imag}[name], (array,), {}), Ellipsis, value)
    else:
        raise RuleError(f"setting `.{name}` of an array is not supported", code="E126", kind=NotImplementedError,
                        help="use .reshape() or .astype(), which give another array" if name in (
                            "shape", "dtype", "strides") else None)



IN_PLACE: dict[Any, Callable[..., Any]] = {
    np.copyto: _copyto, np.nan_to_num: _nan_to_num, np.put: _interpreted(written_functions.put),
    np.place: _interpreted(written_functions.place), np.putmask: _interpreted(written_functions.putmask),
    np.put_along_axis: _interpreted(written_functions.put_along_axis),
    np.fill_diagonal: _interpreted(written_functions.fill_diagonal),
}
ARRAY_METHODS: dict[str, Callable[..., Any]] = {
    "fill": _fill, "sort": _sort, "put": _interpreted(written_functions.put), "__setitem__": _setitem, "view": _view,
}
REFUSED_METHODS = {
    "partition": "sort it, or use np.partition", "resize": "use np.resize, which gives another array",
    "itemset": "write `x[index] = value`", "setfield": None, "setflags": None, "byteswap": None,
}
