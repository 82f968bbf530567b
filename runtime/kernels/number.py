"""Arithmetic on LLVM values of Numba's types, bool and integers among them, written as Python expressions.

Unlike `expression`, which writes whole functions as text, a `Number` appends instructions where code is being compiled.
"""

from dataclasses import dataclass
from typing import Any, Union

from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import types

Operand = Union["Number", int, float]


@dataclass(frozen=True, eq=False)
class Number:
    """An LLVM value with its Numba type; operators append instructions. Constants take the other operand's type."""

    builder: IRBuilder
    type: Any  # of Numba's types
    value: ir.Value

    @property
    def is_float(self) -> bool:
        return isinstance(self.type, types.Float)

    @property
    def is_signed(self) -> bool:
        return self.type in types.signed_domain

    @property
    def width(self) -> int:
        """In bits; of a float or an integer."""
        return self.type.bitwidth

    def like(self, value: ir.Value) -> "Number":
        return Number(self.builder, self.type, value)

    def operand(self, other: Operand) -> ir.Value:
        return other.value if isinstance(other, Number) else ir.Constant(self.value.type, other)

    def _binary(self, name: str, other: Operand) -> "Number":
        return self.like(getattr(self.builder, name)(self.value, self.operand(other)))

    def _compare(self, sign: str, other: Operand) -> "Number":
        right = self.operand(other)
        if self.is_float:
            compare = self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered
        else:
            compare = self.builder.icmp_signed if self.is_signed else self.builder.icmp_unsigned
        return Number(self.builder, types.boolean, compare(sign, self.value, right))

    def __add__(self, other: Operand) -> "Number":
        return self._binary("fadd" if self.is_float else "add", other)

    def __sub__(self, other: Operand) -> "Number":
        return self._binary("fsub" if self.is_float else "sub", other)

    def __mul__(self, other: Operand) -> "Number":
        return self._binary("fmul" if self.is_float else "mul", other)

    def __truediv__(self, other: Operand) -> "Number":
        """The quotient of floats, and of integers rounded towards zero. An integer divisor must not be 0."""
        return self._binary("fdiv" if self.is_float else "sdiv" if self.is_signed else "udiv", other)

    def __mod__(self, other: Operand) -> "Number":
        """The remainder of `/` with the sign of the dividend."""
        return self._binary("frem" if self.is_float else "srem" if self.is_signed else "urem", other)

    def __and__(self, other: Operand) -> "Number":
        return self._binary("and_", other)

    def __or__(self, other: Operand) -> "Number":
        return self._binary("or_", other)

    def __xor__(self, other: Operand) -> "Number":
        return self._binary("xor", other)

    def __lshift__(self, other: Operand) -> "Number":
        return self._binary("shl", other)

    def __rshift__(self, other: Operand) -> "Number":
        return self._binary("ashr" if self.is_signed else "lshr", other)

    def __invert__(self) -> "Number":
        return self.like(self.builder.not_(self.value))

    def __neg__(self) -> "Number":
        return self.like(self.builder.fneg(self.value) if self.is_float else self.builder.neg(self.value))

    def __lt__(self, other: Operand) -> "Number":
        return self._compare("<", other)

    def __le__(self, other: Operand) -> "Number":
        return self._compare("<=", other)

    def __gt__(self, other: Operand) -> "Number":
        return self._compare(">", other)

    def __ge__(self, other: Operand) -> "Number":
        return self._compare(">=", other)

    def equals(self, other: Operand) -> "Number":
        return self._compare("==", other)

    def differs(self, other: Operand) -> "Number":
        """True where either is NaN."""
        return self._compare("!=", other)

    def is_nan(self) -> "Number":
        return self.differs(self)

    def where(self, condition: "Number", otherwise: Operand) -> "Number":
        """This number where `condition` holds, `otherwise` elsewhere."""
        return self.like(self.builder.select(condition.value, self.value, self.operand(otherwise)))

    def intrinsic(self, name: str, *others: Operand) -> "Number":
        values = [self.value, *map(self.operand, others)]
        signature = ir.FunctionType(self.value.type, [self.value.type] * len(values))
        function = self.builder.module.declare_intrinsic(f"llvm.{name}", [self.value.type], signature)
        return self.like(self.builder.call(function, values))

    def bits(self) -> "Number":
        """The signed integer with the bits of this float."""
        integer = types.Integer.from_bitwidth(self.width, signed=True)
        return Number(self.builder, integer, self.builder.bitcast(self.value, ir.IntType(self.width)))

    def as_float(self, float_type: "Number") -> "Number":
        """The float with the bits of this integer."""
        return float_type.like(self.builder.bitcast(self.value, float_type.value.type))
