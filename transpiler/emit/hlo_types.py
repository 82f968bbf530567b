"""StableHLO's types and constants as text.

    tensor(Type("float32", (2, 3)))         tensor<2x3xf32>
    dense(0.25, "float64")                  dense<0.25>
    dense(0.1, "float64")                   dense<0x3FB999999999999A>
    dense(-inf, "float32")                  dense<0xFF800000>
    dense(1 - 2j, "complex128")             dense<(1.0,-2.0)>

A float is written in decimal where it is exactly that (1.0, 0.25), else by its bits in hexadecimal.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

import numpy as np

from ..errors import RuleError
from ..ir.types import Type

ELEMENTS = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8", "uint16": "ui16",
    "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
}
DIGITS = 12                 # significant ones, of a float in decimal
LISTED = 64                 # elements of an array; more of them are written as bytes
HALVES = ("float16", "bfloat16")        # what floats may be stored in; without a cast they are computed with as float32
COMPLEX_PARTS = {"complex64": "float32", "complex128": "float64"}


# What float32 is written as: a module in half precision is one in single precision with other names of types.
half: ContextVar[str | None] = ContextVar("half", default=None)


@contextmanager
def in_half_precision(dtype: str | None) -> Iterator[None]:
    """float32 is written as `dtype` ("float16" or "bfloat16") inside; None: as it is."""
    token = half.set(dtype)
    try:
        yield
    finally:
        half.reset(token)


def _written(dtype: str) -> str:
    shorter = half.get()
    if shorter is None:
        return dtype
    if dtype in COMPLEX_PARTS:
        raise RuleError(f"complex numbers have no parts of {shorter}", code="E207", kind=NotImplementedError,
                        help='cast to "f32"')
    return shorter if dtype == "float32" else dtype


def kind_of(dtype: str) -> str:
    """NumPy's kind letter, also for bfloat16, which NumPy lacks."""
    return "f" if dtype == "bfloat16" else np.dtype(dtype).kind


def element(dtype: str) -> str:
    """MLIR's name of a dtype."""
    try:
        return ELEMENTS[_written(dtype)]
    except KeyError:
        raise RuleError(f"StableHLO has no element type for {dtype}", code="E207", kind=NotImplementedError) from None


def tensor(type: Type) -> str:
    """MLIR's ranked tensor type; RuleError where a size is not an int."""
    for dim in type.shape:
        if not isinstance(dim, int):
            raise RuleError(f"StableHLO needs every size as a number, and {dim} in {type} is not one", code="E207",
                            kind=NotImplementedError)
    return f"tensor<{''.join(f'{d}x' for d in type.shape)}{element(type.dtype)}>"


def function_type(operands: Any, results: Any) -> str:
    """`(A, B) -> R`, with one result bare."""
    left = ", ".join(tensor(t) for t in operands)
    right = ", ".join(tensor(t) for t in results)
    return f"({left}) -> {right if len(results) == 1 else f'({right})'}"


def dense(value: Any, dtype: str) -> str:
    """A splat attribute: every element is `value`."""
    return f"dense<{number(value, dtype)}>"


def dense_array(values: Any, type: Type) -> str:
    """An attribute of these elements: as numbers, or their bytes where they are many."""
    array = np.asarray(values, type.dtype).reshape(type.shape)
    flat = array.ravel()
    if not flat.size:
        return "dense<>"
    if all(one.tobytes() == flat[0].tobytes() for one in flat[1:]):
        return dense(flat[0], type.dtype)
    if flat.size > LISTED and type.dtype != "bool":
        return f'dense<"0x{_bytes(array).hex().upper()}">'

    def nested(part: Any) -> str:
        return number(part, type.dtype) if not part.shape else f"[{', '.join(map(nested, part))}]"

    return f"dense<{nested(array)}>"


def _bytes(array: Any) -> bytes:
    dtype = _written(array.dtype.name)
    if dtype == "bfloat16":
        array = np.array([_bfloat16_bits(v) for v in array.ravel()], "uint16")
    elif dtype != array.dtype.name:
        with np.errstate(over="ignore"):
            array = array.astype(dtype)
    found: bytes = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return found


def number(value: Any, dtype: str) -> str:
    """A literal that reads back as exactly `value` rounded to the dtype."""
    dtype = _written(dtype)
    kind = kind_of(dtype)
    if kind == "b":
        return "true" if value else "false"
    if kind in "iu":
        info = np.iinfo(dtype)
        if not info.min <= int(value) <= info.max:
            raise OverflowError(f"{value} does not fit in {dtype}")
        return str(int(value))
    if kind == "c":
        part = COMPLEX_PARTS[dtype]
        whole = complex(value)
        return f"({_float(whole.real, part)},{_float(whole.imag, part)})"
    return _float(float(value), dtype)


def _float(value: float, dtype: str) -> str:
    """In decimal where few digits say exactly what it is, else its bits in hexadecimal."""
    if dtype == "bfloat16":
        rounded = float(_bits_to_float32(_bfloat16_bits(value) << 16))
    else:
        with np.errstate(over="ignore"):
            rounded = float(np.dtype(dtype).type(value))
    if math.isfinite(rounded):
        text = f"{rounded:.{DIGITS}g}"
        if Decimal(text) == Decimal(rounded):
            return _in_mlir(text)
    return _bits(value, dtype)


def _in_mlir(text: str) -> str:
    """A decimal in MLIR's grammar, which asks for digits on both sides of a point."""
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}" if exponent else mantissa


def _bits(value: float, dtype: str) -> str:
    if dtype == "bfloat16":
        return f"0x{_bfloat16_bits(value):04X}"
    code, width = {"float16": ("e", 4), "float32": ("f", 8), "float64": ("d", 16)}[dtype]
    with np.errstate(over="ignore"):
        rounded = float(np.dtype(dtype).type(value))
    return f"0x{int.from_bytes(struct.pack('>' + code, rounded), 'big'):0{width}X}"


def _bfloat16_bits(value: float) -> int:
    """The upper half of the float32, rounded to nearest even."""
    with np.errstate(over="ignore"):
        whole = int(np.float32(value).view(np.uint32))
    if math.isnan(value):
        return (whole >> 16) | 0x40
    return (whole + 0x7FFF + (whole >> 16 & 1)) >> 16


def _bits_to_float32(bits: int) -> np.float32:
    return np.uint32(bits & 0xFFFFFFFF).view(np.float32)
