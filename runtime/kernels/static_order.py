"""Kernels of a literal order and a float: `polygamma(2, x)`. Each order is a kernel of its own."""

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

from gradsmith.kernels.kernel import FORMATS, Body, declare


def with_static_order(
    reference: Callable[[int, Any], Any], highest: int
) -> Callable[[Callable[[int], Body]], Callable[..., Any]]:
    """Make `function(n, x)` from `make(n)`, the kernel of the order n. In plain Python it is `reference`."""

    def register(make: Callable[[int], Body]) -> Callable[..., Any]:
        name = make.__name__

        @cache
        def of_order(n: int) -> Body:
            body = make(n)
            body.__name__ = f"{name}_{n}"
            return body

        def call(n: int, x: Any) -> Any:
            n = operator.index(n)
            if not 0 <= n <= highest:
                raise ValueError(f"{name} is for orders from 0 to {highest}, not {n}")
            x = np.asarray(x)
            x = x.astype(np.result_type(x, np.float32) if x.dtype.kind == "f" else np.float64)
            with np.errstate(all="ignore"):
                return np.asarray(reference(n, x)).astype(x.dtype)[()]

        call.__name__ = call.__qualname__ = name
        call.__doc__, call.__module__ = make.__doc__, make.__module__

        class Template(AbstractTemplate):
            key = call
            prefer_literal = True

            def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature:
                if len(arguments) != 2 or keywords:
                    raise TypingError(f"{name} takes an order and a number")
                order, x = arguments[0], types.unliteral(arguments[1])
                if not isinstance(order, types.IntegerLiteral) or not 0 <= order.literal_value <= highest:
                    raise TypingError(f"{name} takes a literal order from 0 to {highest}, not {order}")
                if not isinstance(x, types.Number | types.Boolean) or isinstance(x, types.Complex):
                    raise TypingError(f"{name} takes a real number, not {x}")
                x = x if x in FORMATS else types.float64
                return Signature(x, (order, x), None)

        infer_global(call, types.Function(Template))

        for number, format in FORMATS.items():

            @lower_builtin(call, types.IntegerLiteral, number)
            def lower(
                context: Any, builder: IRBuilder, signature: Signature, values: list[ir.Value], format: Any = format
            ) -> ir.Value:
                body = of_order(signature.args[0].literal_value)
                return builder.call(declare(builder.module, body, format), values[1:])

        return call

    return register
