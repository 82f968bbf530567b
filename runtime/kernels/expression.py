"""Arithmetic on LLVM values, written as Python expressions.

A kernel is a Python function over `Value`s. Running it once writes the body of an LLVM function as text:

    x * x + 1.0      becomes      %v1 = fmul double %x, %x
                                  %v2 = fadd double %v1, 0x3FF0000000000000

Everything is straight-line: `where` is a select, so LLVM's loop vectoriser takes whatever is written here. None of the
instructions carries a fast-math flag, and `muladd` is the only place where the target may fuse a product and a sum.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Union

import numpy as np


@dataclass(frozen=True)
class Format:
    """A binary floating-point format of IEEE 754, and the integers of the same width."""

    name: str  # as in symbols: f64
    llvm: str
    width: int
    mantissa: int  # stored bits
    bias: int

    @property
    def integer(self) -> str:
        return f"i{self.width}"

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.mantissa

    def bits(self, value: float) -> int:
        """The bits of `value`, rounded to this format."""
        return int(np.dtype(f"f{self.width // 8}").type(value).view(f"i{self.width // 8}"))


F32 = Format("f32", "float", 32, 23, 127)
F64 = Format("f64", "double", 64, 52, 1023)

Operand = Union["Value", float, int]


@dataclass
class Code:
    """The lines of one LLVM function, and what they refer to outside it."""

    lines: list[str] = field(default_factory=list)
    intrinsics: set[tuple[str, str]] = field(default_factory=set)  # (llvm.fma, double)
    externals: set[tuple[str, str]] = field(default_factory=set)  # (sin, double), of the C library
    support: dict[str, str] = field(default_factory=dict)  # further definitions and declarations, by name
    count: int = 0

    def write(self, instruction: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {instruction}")
        return name


@dataclass(frozen=True, eq=False)
class Value:
    """A float, an integer of the same width or (`type` is "i1") a truth value in the function being written."""

    code: Code
    format: Format
    type: str
    name: str

    # Writing instructions

    def _like(self, name: str, type: str | None = None) -> "Value":
        return Value(self.code, self.format, type or self.type, name)

    def _write(self, instruction: str, type: str | None = None) -> "Value":
        return self._like(self.code.write(instruction), type)

    def _operand(self, other: Operand) -> str:
        if isinstance(other, Value):
            if other.type != self.type:
                raise TypeError(f"{self.type} {self.name} meets {other.type} {other.name}")
            return other.name
        return self.constant(other).name

    def constant(self, number: float | int) -> "Value":
        """`number` as a constant of this value's type."""
        if self.type == self.format.llvm:
            rounded = np.float32(number) if self.format is F32 else number  # LLVM spells floats as doubles
            return self._like(f"0x{struct.pack('>d', rounded).hex().upper()}")
        bits = int(number) % (1 << self.format.width)
        return self._like(str(bits))

    def _binary(self, float_name: str, int_name: str, other: Operand, swapped: bool = False) -> "Value":
        left, right = self.name, self._operand(other)
        if swapped:
            left, right = right, left
        name = float_name if self.is_float else int_name
        return self._write(f"{name} {self.type} {left}, {right}")

    def _compare(self, float_name: str, int_name: str, other: Operand) -> "Value":
        name = f"fcmp {float_name}" if self.is_float else f"icmp {int_name}"
        return self._write(f"{name} {self.type} {self.name}, {self._operand(other)}", "i1")

    def _intrinsic(self, name: str, *others: Operand) -> "Value":
        self.code.intrinsics.add((name, self.type))
        operands = ", ".join(f"{self.type} {operand}" for operand in (self.name, *map(self._operand, others)))
        return self._write(f"call {self.type} @{name}.{self.format.name}({operands})")

    @property
    def is_float(self) -> bool:
        return self.type == self.format.llvm

    # Arithmetic

    def __add__(self, other: Operand) -> "Value":
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Operand) -> "Value":
        return self._binary("fadd", "add", other, swapped=True)

    def __sub__(self, other: Operand) -> "Value":
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> "Value":
        return self._binary("fsub", "sub", other, swapped=True)

    def __mul__(self, other: Operand) -> "Value":
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: Operand) -> "Value":
        return self._binary("fmul", "mul", other, swapped=True)

    def __truediv__(self, other: Operand) -> "Value":
        return self._binary("fdiv", "", other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return self._binary("fdiv", "", other, swapped=True)

    def __neg__(self) -> "Value":
        return self._write(f"fneg {self.type} {self.name}")

    def __abs__(self) -> "Value":
        return self._intrinsic("llvm.fabs")

    # Integers and truth values

    def __and__(self, other: Operand) -> "Value":
        return self._binary("", "and", other)

    def __or__(self, other: Operand) -> "Value":
        return self._binary("", "or", other)

    def __xor__(self, other: Operand) -> "Value":
        return self._binary("", "xor", other)

    def __lshift__(self, other: Operand) -> "Value":
        return self._binary("", "shl", other)

    def __rshift__(self, other: Operand) -> "Value":
        """Zeros come in from the left."""
        return self._binary("", "lshr", other)

    def __invert__(self) -> "Value":
        return self._write(f"xor i1 {self.name}, true")

    # Comparisons, all false when an operand is NaN

    def __lt__(self, other: Operand) -> "Value":
        return self._compare("olt", "slt", other)

    def __le__(self, other: Operand) -> "Value":
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Operand) -> "Value":
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Operand) -> "Value":
        return self._compare("oge", "sge", other)

    def equals(self, other: Operand) -> "Value":
        return self._compare("oeq", "eq", other)

    def is_nan(self) -> "Value":
        return self._write(f"fcmp uno {self.type} {self.name}, {self.name}", "i1")

    # Views of the same bits, and the other format

    def bits(self) -> "Value":
        """The integer with the bits of this float."""
        return self._write(f"bitcast {self.type} {self.name} to {self.format.integer}", self.format.integer)

    def floats(self) -> "Value":
        """The float with the bits of this integer."""
        return self._write(f"bitcast {self.type} {self.name} to {self.format.llvm}", self.format.llvm)

    def to(self, format: Format) -> "Value":
        """This float rounded to `format`."""
        if format is self.format:
            return self
        cast = "fpext" if format.width > self.format.width else "fptrunc"
        name = self.code.write(f"{cast} {self.type} {self.name} to {format.llvm}")
        return Value(self.code, format, format.llvm, name)


def where(condition: Value, chosen: Operand, otherwise: Operand) -> Value:
    """`chosen if condition else otherwise`, both computed. At least one of the two is a `Value`."""
    like = chosen if isinstance(chosen, Value) else otherwise
    if not isinstance(like, Value):
        raise TypeError("where() of two constants")
    left, right = like._operand(chosen), like._operand(otherwise)
    return like._write(f"select i1 {condition.name}, {like.type} {left}, {like.type} {right}")


def muladd(a: Value, b: Operand, c: Operand) -> Value:
    """`a * b + c`, rounded once where the target has a fast fused multiply-add, and twice elsewhere."""
    return a._intrinsic("llvm.fmuladd", b, c)


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """`a * b + c` rounded once, on every target. Slow where the hardware cannot."""
    return a._intrinsic("llvm.fma", b, c)


def rint(x: Value) -> Value:
    """x rounded to the nearest integer, a half to the even one."""
    return x._intrinsic("llvm.rint")


def sqrt(x: Value) -> Value:
    return x._intrinsic("llvm.sqrt")


def copysign(magnitude: Value, sign: Operand) -> Value:
    return magnitude._intrinsic("llvm.copysign", sign)


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's scheme, lowest power first in `coefficients`."""
    *lower, top = coefficients
    total = x.constant(top)
    for coefficient in reversed(lower):
        total = muladd(total, x, coefficient)
    return total


def polynomial_in_pairs(x: Value, coefficients: Sequence[float]) -> Value:
    """Neighbours joined by x, pairs of them by x**2, and so on: a chain of instructions as long as the logarithm of
    their number, a little less accurate (G. Estrin, "Organization of computer systems: the fixed plus variable
    structure computer", 1960)."""
    terms = [x.constant(c) for c in coefficients]
    power = x
    while len(terms) > 1:
        joined = [muladd(high, power, low) for low, high in zip(terms[::2], terms[1::2])]
        terms = [*joined, *terms[len(joined) * 2:]]
        if len(terms) > 1:
            power = power * power
    return terms[0]


def polynomial_in_halves(x: Value, coefficients: Sequence[float]) -> Value:
    """Even and odd powers apart: a shorter chain of dependent instructions, and a little less accurate."""
    square = x * x
    return muladd(polynomial(square, coefficients[1::2]), x, polynomial(square, coefficients[::2]))


def exact_sum(a: Value, b: Operand) -> tuple[Value, Value]:
    """The sum of any two numbers and its rounding error (Knuth's TwoSum)."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def exact_sum_ordered(a: Operand, b: Value) -> tuple[Value, Value]:
    """The sum and its rounding error, when |a| >= |b| or a is 0 (Dekker's FastTwoSum)."""
    total = a + b
    return total, b - (total - a)


def exact_product(a: Value, b: Operand) -> tuple[Value, Value]:
    """The product and its rounding error."""
    product = a * b
    return product, fma(a, b, -product)
