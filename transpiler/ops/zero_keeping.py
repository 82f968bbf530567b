"""Products in which zeros stay zeros, whatever they are multiplied by: of cotangents with partials, of tangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.nodes import Const, Value
from .base import Into, Product, Sample
from .families import Elementwise, register
from .identities import scaled
from .samples import between, complex_plane, corner

INF, NAN = float("inf"), float("nan")


@register
class Scale(Elementwise):
    """ct * partial, but exactly 0 wherever ct is exactly 0, also where the partial is infinite or NaN there.

    Derivative rules multiply cotangents by it where a plain product could turn a masked zero into NaN.  Where ct is
    0, its own derivative in ct is the partial, and 0 in the partial.
    """

    name = "scale"
    masks, multiplies = True, Product.ZEROS_WIN
    linear_in = ((0,),)
    kinds = "fc"
    scalar = "0.0 if {0} == 0.0 else {0} * {1}"

    def reference(self, ct: Any, partial: Any, **params: Any) -> Any:
        return np.where(ct == 0, ct.dtype.type(0), ct * partial)[()]

    def simplify(self, args: Sequence[Value], **params: Any) -> Value | None:
        return scaled(*args)

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        t_ct, t_partial = tangents
        ct, partial = args
        terms = [] if t_ct is None else [ops.scale(t_ct, partial)]
        terms += [] if t_partial is None else [ops.scale(ct, t_partial)]
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        first, partial = args
        return [ops.scale(ct, partial) if wanted[0] else None, ops.scale(first, ct) if wanted[1] else None]

    def stablehlo(self, h: Any, ct: Any, partial: Any, **params: Any) -> Any:
        zero = h.constant(0, ct.type)
        return h.select(h.compare("EQ", ct, zero), zero, h.op("multiply", ct, partial))

    def samples(self) -> list[Sample]:
        return [*between(-2, 2, arity=2), complex_plane(2), corner([0, 0, 0, 3, 0], [INF, NAN, 2, 0.5, -INF])]


@register
class Chain(Elementwise):
    """tangent * partial, but exactly 0 wherever one of them is exactly 0, also where the other is infinite or NaN.

    What `scale` is for cotangents, this is for tangents, which meet the same partials in the other order: that of
    1 / (1 + exp(x)) is inf * 0 far out.  It has the derivatives of a product.
    """

    name = "chain"
    masks = True
    linear_in = ((0,), (1,))
    kinds = "fc"
    scalar = "0.0 if {0} == 0.0 or {1} == 0.0 else {0} * {1}"

    def reference(self, tangent: Any, partial: Any, **params: Any) -> Any:
        return np.where((tangent == 0) | (partial == 0), tangent.dtype.type(0), tangent * partial)[()]

    def simplify(self, args: Sequence[Value], **params: Any) -> Value | None:
        for one, other in (args, args[::-1]):
            if isinstance(one, Const) and np.isfinite(one.value):
                return one if one.value == 0 else one * other
        return None

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, **params: Any) -> Any:
        terms = [ops.chain(t, other) for t, other in zip(tangents, args[::-1], strict=True) if t is not None]
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool],
            **params: Any) -> list[Value | Into | None]:
        return [ops.chain(ct, other) if want else None for want, other in zip(wanted, args[::-1], strict=True)]

    def stablehlo(self, h: Any, tangent: Any, partial: Any, **params: Any) -> Any:
        zero = h.constant(0, tangent.type)
        either = h.op("or", h.compare("EQ", tangent, zero), h.compare("EQ", partial, zero))
        return h.select(either, zero, h.op("multiply", tangent, partial))

    def samples(self) -> list[Sample]:
        return [*between(-2, 2, arity=2), complex_plane(2), corner([0, 0, INF, 3, 0], [INF, NAN, 0, 0.5, -INF])]
