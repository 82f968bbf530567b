"""Casts between dtypes, and complex numbers and their parts.

These are linear over the reals.  The cotangent c of a complex z means that the result changes by Re(c * dz): that of
`real(z)` comes back as a real number in c, that of `imag(z)` as -1j times it, that of `conj(z)` conjugated.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.nodes import Value
from ..ir.types import Type
from .arithmetic import COMPLEX_OF, REAL_OF
from .base import Into, RuleError, Sample, sample
from .families import Elementwise, register
from .samples import between, complex_plane, corner, integers, truths


@register
class Convert(Elementwise):
    """x in another dtype, as `astype`: floats to integers truncate, complex numbers lose their imaginary part."""

    name = "convert"

    def infer(self, x: Type, *, dtype: str, **params: Any) -> Type:  # type: ignore[override]
        if dtype == "float16":
            raise RuleError("float16 is not supported", kind=TypeError, code="E307", help="use np.float32")
        return super().infer(x).with_dtype(dtype)

    def reference(self, x: Any, *, dtype: str, **params: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")       # NumPy warns when an imaginary part is lost
            return x.astype(dtype)

    def simplify(self, args: Sequence[Value], *, dtype: str, **params: Any) -> Value | None:  # type: ignore[override]
        return args[0] if args[0].dtype == dtype else None

    @staticmethod
    def scalar(x: Type, *, dtype: str) -> str:
        if dtype == "bool":
            return "{0} != 0"
        kind = np.dtype(dtype).kind
        return f"np.{dtype}({{0}}.real)" if x.kind == "c" and kind != "c" else f"np.{dtype}({{0}})"

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
            dtype: str, **params: Any) -> Any:
        if not result.type.is_inexact or tangents[0] is None:
            return None
        return ops.convert(tangents[0], dtype=dtype)

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *,  # type: ignore[override]
            dtype: str, **params: Any) -> list[Value | Into | None]:
        if not (wanted[0] and args[0].type.is_inexact and result.type.is_inexact):
            return [None]
        return [ops.convert(ct, dtype=args[0].dtype)]

    def stablehlo(self, h: Any, x: Any, *, dtype: str, **params: Any) -> Any:
        if x.type.kind == "c" and np.dtype(dtype).kind != "c":
            if dtype == "bool":
                return h.compare("NE", x, h.constant(0, x.type))
            x = h.op("real", x, type=x.type.with_dtype(REAL_OF[x.type.dtype]))
        return x if x.type.dtype == dtype else h.convert(x, dtype)

    def samples(self) -> list[Sample]:
        x = between(-2, 2)[0].args[0]
        return [sample(x, dtype="float32"), sample(x.astype("float32"), dtype="float64"), sample(x, dtype="int64"),
                sample(x, dtype="bool"), sample(x, dtype="complex128"), *integers(-9, 9, dtype="float64"),
                *integers(-900, 900, dtype="int8"), *integers(-900, 900, dtype="uint8"),
                *integers(-9, 9, dtypes=("int8",), dtype="int64"),
                sample(truths().args[0], dtype="float64"), sample(truths().args[0], dtype="int32"),
                complex_plane(dtype="complex64"), complex_plane(dtype="float64"),
                sample(np.array([0.0, -0.5]), dtype="bool"), sample(np.float64(2.5), dtype="int32")]


class Part(Elementwise):
    """The real or imaginary part of a complex number, a real number."""

    kinds = "c"

    def infer(self, x: Type, **params: Any) -> Type:  # type: ignore[override]
        return super().infer(x).with_dtype(REAL_OF[x.dtype])

    @property
    def scalar(self) -> str:  # type: ignore[override]
        return f"{{0}}.{self.name}"

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        return None if tangents[0] is None else self(tangents[0])

    def stablehlo(self, h: Any, x: Any, **params: Any) -> Any:
        return h.op(self.name, x, type=self.infer(x.type))

    def samples(self) -> list[Sample]:
        return [complex_plane(), sample(complex_plane().args[0].astype("complex64"))]


@register
class Real(Part):
    """The real part of a complex number."""

    name = "real"

    def reference(self, x: Any, **params: Any) -> Any:
        return np.array(np.real(x))[()]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [ops.make_complex(ct, const(0, ct.type))]


@register
class Imag(Part):
    """The imaginary part of a complex number."""

    name = "imag"

    def reference(self, x: Any, **params: Any) -> Any:
        return np.array(np.imag(x))[()]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [ops.make_complex(const(0, ct.type), -ct)]


@register
class Conj(Elementwise):
    """The complex conjugate."""

    name = "conj"
    kinds = "c"
    scalar = "{0}.conjugate()"

    def reference(self, x: Any, **params: Any) -> Any:
        return np.conj(x)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        return None if tangents[0] is None else ops.conj(tangents[0])

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [ops.conj(ct)]

    def stablehlo(self, h: Any, x: Any, **params: Any) -> Any:
        part = x.type.with_dtype(REAL_OF[x.type.dtype])
        return h.op("complex", h.op("real", x, type=part), h.op("negate", h.op("imag", x, type=part)), type=x.type)

    def samples(self) -> list[Sample]:
        return [complex_plane(), sample(complex_plane().args[0].astype("complex64"))]


@register
class MakeComplex(Elementwise):
    """re + 1j * im, exactly: zeros keep their signs and infinities make no NaN."""

    name = "make_complex"
    kinds = "f"

    @staticmethod
    def scalar(re: Type, im: Type) -> str:
        return "complex({0}, {1})" if re.dtype == "float64" else "np.complex64(complex({0}, {1}))"

    def infer(self, re: Type, im: Type, **params: Any) -> Type:  # type: ignore[override]
        return super().infer(re, im).with_dtype(COMPLEX_OF[re.dtype])

    def reference(self, re: Any, im: Any, **params: Any) -> Any:
        result = np.empty(np.shape(re), COMPLEX_OF[re.dtype.name])
        result.real, result.imag = re, im
        return result[()]

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        zero = const(0, args[0].type)
        return ops.make_complex(*(zero if t is None else t for t in tangents))

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [ops.real(ct) if wanted[0] else None, -ops.imag(ct) if wanted[1] else None]

    def stablehlo(self, h: Any, re: Any, im: Any, **params: Any) -> Any:
        return h.op("complex", re, im, type=self.infer(re.type, im.type))

    def samples(self) -> list[Sample]:
        return [*between(-2, 2, arity=2), corner([0.0, 1.0], [-0.0, 0.0])]
