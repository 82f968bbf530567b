"""Arrays in Numba's layout: members, elements, views, new memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.numpy_support import as_dtype

from ..kernels.kernel import Definition
from .aliases import Aliases
from .numbers import BIT, LLVM, cast, of_index
from .values import BOOL, INT, TYPES, Array, NotCovered, Number, Other, Value

WORD = ir.IntType(64)
BYTE = ir.IntType(8)
POINTER = BYTE.as_pointer()
DATA_OFFSET = 24        # of the data pointer in NRT's MemInfo: after a count, a destructor and its argument


def of_struct(builder: Any, kind: Any, struct: Any, owned: bool) -> Array:
    """The members of an array structure that is one LLVM value."""
    parts = [builder.extract_value(struct, k) for k in range(7)]
    shape, strides = ([builder.extract_value(part, axis) for axis in range(kind.ndim)] for part in parts[5:])
    meminfo, parent, nitems, itemsize, data = parts[:5]
    return Array(kind, meminfo, parent, nitems, itemsize, data, shape, strides, owned)


def to_struct(builder: Any, context: Any, value: Array) -> Any:
    """The structure as one LLVM value."""
    struct = ir.Constant(context.get_value_type(value.type), ir.Undefined)
    members = (value.meminfo, value.parent, value.nitems, value.itemsize, value.data)
    for k, member in enumerate(members):
        struct = builder.insert_value(struct, member, k)
    for k, words in ((5, value.shape), (6, value.strides)):
        for axis, member in enumerate(words):
            struct = builder.insert_value(struct, member, (k, axis))
    return struct


def index_of(builder: Any, index: Number, size: Any) -> Any:
    """A valid index as a word from 0 up.  Generated text wraps what is computed (`ir/index.py`): only a negative number
    that is written down counts from the end.  An unknown sign would keep LLVM from vectorising."""
    if not isinstance(index.type, types.Integer):
        raise NotCovered(f"an index of type {index.type}")
    word = cast(builder, index, INT).llvm
    return builder.add(word, size) if index.literal is not None and index.literal < 0 else word


def place(builder: Any, array: Array, indices: Sequence[Number]) -> Any:
    """The pointer to an element.  Indices are in range: the text checks where they may not be."""
    words = [index_of(builder, index, size) for index, size in zip(indices, array.shape, strict=True)]
    if array.type.layout in "CF":
        pairs = list(zip(words, array.shape))
        if array.type.layout == "F":
            pairs.reverse()
        offset = None
        for word, size in pairs:
            offset = word if offset is None else builder.add(builder.mul(offset, size, flags=("nsw",)), word,
                                                             flags=("nsw",))
        return array.data if offset is None else builder.gep(array.data, [offset], inbounds=True)
    offset = WORD(0)
    for word, stride in zip(words, array.strides):
        offset = builder.add(offset, builder.mul(word, stride))
    bytes_ = builder.gep(builder.bitcast(array.data, POINTER), [offset])
    return builder.bitcast(bytes_, array.data.type)


def load(builder: Any, context: Any, aliases: Aliases, array: Array, pointer: Any) -> Value:
    kind = array.type.dtype
    align = None if array.type.aligned else 1
    if kind in LLVM:
        loaded = builder.load(pointer, align=align)
        aliases.note(loaded, array.root)
        return Number(kind, builder.icmp_unsigned("!=", loaded, BYTE(0)) if kind == BOOL else loaded)
    return Other(kind, context.unpack_value(builder, kind, pointer, align))


def store(builder: Any, context: Any, aliases: Aliases | None, array: Array, pointer: Any,
          value: Value) -> None:
    kind = array.type.dtype
    if not array.type.mutable:
        raise NotCovered("a write to a read-only array")
    align = None if array.type.aligned else 1
    if isinstance(value, Number) and kind in LLVM:
        llvm = cast(builder, value, kind).llvm
        stored = builder.store(builder.zext(llvm, BYTE) if kind == BOOL else llvm, pointer, align=align)
        if aliases is not None:
            aliases.note(stored, array.root)
    elif isinstance(value, Other) and value.type == kind:
        context.pack_value(builder, kind, value.llvm, pointer, align)
    else:
        raise NotCovered(f"an element of {kind} from a {type(value).__name__}")


def transposed(value: Array) -> Array:
    """`x.T`, of the same memory."""
    kind = value.type
    if kind.ndim > 1:
        kind = kind.copy(layout={"C": "F", "F": "C"}.get(kind.layout, "A"))
    return Array(kind, value.meminfo, value.parent, value.nitems, value.itemsize, value.data, value.shape[::-1],
                 value.strides[::-1], root=value.root)


_NEW = """define internal noalias ptr @{name}(i64 %itemsize, i32 %align{parameters}) noinline nounwind {{
{products}  br i1 %{overflow}, label %large, label %fits
large:
  ret ptr inttoptr (i64 1 to ptr)
fits:
  %memory = call noalias ptr @NRT_MemInfo_alloc_aligned(i64 %{total}, i32 %align)
  ret ptr %memory
}}"""
_PRODUCT = """  %{pair} = call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 %{total}, i64 %size{axis})
  %{product} = extractvalue {{ i64, i1 }} %{pair}, 0
  %{flag} = extractvalue {{ i64, i1 }} %{pair}, 1
  %{any} = or i1 {before}, %{flag}
"""


def _allocator(module: Any, rank: int) -> Any:
    """The function that allocates for an array of a rank: a MemInfo, null where there is no memory, 1 where the
    number of bytes does not fit in 64 bits."""
    name = f"gradsmith_new_{rank}"
    if name not in module.globals:
        products, total, overflow = "", "itemsize", "false"
        for axis in range(rank):
            names = {kind: f"{kind}{axis}" for kind in ("pair", "product", "flag", "any")}
            products += _PRODUCT.format(total=total, axis=axis, before=overflow, **names)
            total, overflow = names["product"], f"%{names['any']}"
        text = _NEW.format(name=name, parameters="".join(f", i64 %size{axis}" for axis in range(rank)),
                           products=products, overflow=overflow.removeprefix("%"), total=total)
        signature = ir.FunctionType(POINTER, [WORD, ir.IntType(32), *[WORD] * rank])
        if rank == 0:
            text = text.replace("br i1 %false", "br i1 false")
        if "NRT_MemInfo_alloc_aligned" not in module.globals:
            ir.Function(module, ir.FunctionType(POINTER, [WORD, ir.IntType(32)]), "NRT_MemInfo_alloc_aligned")
        pair = ir.LiteralStructType([WORD, BIT])
        module.declare_intrinsic("llvm.smul.with.overflow", [WORD], ir.FunctionType(pair, [WORD, WORD]))
        Definition(module, signature, name, text)
    return module.globals[name]


def new(calls: Any, builder: Any, context: Any, dtype: Any, sizes: Sequence[Number], clear: bool = False) -> Array:
    """A new C-contiguous array, zeros if `clear`.  `calls` raises: ValueError where the number of bytes does not fit
    in 64 bits, MemoryError where there is no memory."""
    itemsize = WORD(as_dtype(dtype).itemsize)
    shape = [cast(builder, size, INT).llvm for size in sizes]
    align = ir.IntType(32)(context.get_preferred_array_alignment(dtype))
    meminfo = builder.call(_allocator(builder.module, len(shape)), [itemsize, align, *shape])
    number = builder.ptrtoint(meminfo, WORD)
    failed = builder.icmp_unsigned("<=", number, WORD(1))
    calls.branch_off(failed, lambda: builder.cbranch(
        builder.icmp_unsigned("==", number, WORD(1)), calls.raising(ValueError, ("array is too big",), None),
        calls.raising(MemoryError, ("Allocation failed (probably too large).",), None)))
    member = builder.bitcast(builder.gep(meminfo, [WORD(DATA_OFFSET)], inbounds=True), POINTER.as_pointer())
    memory = builder.load(member)
    nitems = WORD(1)
    strides: list[Any] = []
    for k in reversed(range(len(shape))):
        strides.insert(0, builder.mul(nitems, itemsize) if strides else itemsize)
        nitems = builder.mul(nitems, shape[k]) if strides[1:] else shape[k]
    if clear:
        clearing = builder.module.declare_intrinsic("llvm.memset", [POINTER, WORD])
        builder.call(clearing, [memory, BYTE(0), builder.mul(nitems, itemsize), BIT(0)])
    kind = TYPES.Array(dtype, len(shape), "C")
    data = builder.bitcast(memory, context.get_data_type(dtype).as_pointer())
    return Array(kind, meminfo, POINTER(None), nitems, itemsize, data, shape, strides, owned=True)


def copied(calls: Any, builder: Any, context: Any, value: Array) -> Array:
    """A C-contiguous copy."""
    made = new(calls, builder, context, value.type.dtype, [of_index(size) for size in value.shape])
    if value.type.layout == "C":
        copying = builder.module.declare_intrinsic("llvm.memcpy", [POINTER, POINTER, WORD])
        size = builder.mul(made.nitems, made.itemsize)
        builder.call(copying, [builder.bitcast(made.data, POINTER), builder.bitcast(value.data, POINTER), size, BIT(0)])
        return made
    with cgutils.loop_nest(builder, value.shape, WORD) as words:
        indices = [of_index(word) for word in words]
        element = builder.load(place(builder, value, indices), align=None if value.type.aligned else 1)
        builder.store(element, place(builder, made, indices))
    return made


def fill(builder: Any, context: Any, value: Array, element: Value) -> None:
    """Set all elements of a C-contiguous array."""
    flat = replace(value, type=value.type.copy(ndim=1), shape=[value.nitems], strides=[value.itemsize])
    with cgutils.for_range(builder, value.nitems) as loop:
        store(builder, context, None, flat, place(builder, flat, [of_index(loop.index)]), element)


def size_of(value: Array, axis: int) -> Number:
    return of_index(value.shape[axis])
