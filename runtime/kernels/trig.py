"""Trigonometric functions: sin, cos, tan.

Cody and Waite's reduction x = n pi / 2 + r with pi / 2 in parts of 31 bits, so that the products with n are exact, and
error-free sums, so that r keeps all its digits however close x is to a multiple of pi / 2. Then polynomials for the
sine and cosine of r, of which n chooses one. Where a loop has both sin(x) and cos(x), LLVM finds that they share nearly
all. For a float32 three float32 parts will do, with products and sums rounded as one.

Beyond `LARGE` that no longer works, and such arguments are rare: they go to the C library. A branch with a call in it
would keep a loop from being vectorised. So the call is unconditional, to a function that gives its argument back at
once if that is ordinary, and that names vector variants of itself for LLVM to use (its "vector-function-abi-variant"
attribute), which look whether any of their elements is large.
"""

import numpy as np

from gradsmith.kernels import complex_numbers, polynomials
from gradsmith.kernels.exponential import nearest_integer
from gradsmith.kernels.expression import (
    F32,
    F64,
    Code,
    Format,
    Value,
    exact_sum,
    exact_sum_ordered,
    fma,
    muladd,
    polynomial,
    polynomial_in_pairs,
    where,
)
from gradsmith.kernels.kernel import kernel

LARGE = {32: 1e5, 64: 3e6}  # keeps n below 2**16 and 2**21
# pi / 2 in three parts of 31 bits and the rest. Two parts will do for the tangent of a float32.
HALF_PI = (1.5707963267341256, 6.07710050359346e-11, 2.9127320548227e-20, 1.2706558760139878e-29)
HALF_PI_HIGH, HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11
# pi / 2 as the sum of three float32.
HALF_PI_SINGLE = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
TWO_OVER_PI = 0.6366197723675814
WIDTHS = (2, 4, 8, 16)


def reduce(x: Value) -> tuple[Value, Value, Value]:
    """r, r_low and the integer n with x = n pi / 2 + r + r_low and |r| <= pi / 4, for |x| < LARGE.

    r and r_low are float64. r_low matters for a float64 x only.
    """
    wide = x.to(F64)
    n, n_bits = nearest_integer(wide * TWO_OVER_PI)
    if x.format is F32:
        r = muladd(n, -HALF_PI_LOW, muladd(n, -HALF_PI_HIGH, wide))
        return r, r.constant(0.0), n_bits
    a, b, c, d = HALF_PI
    high = muladd(n, -a, x)  # exact, as is every product here but the last
    high, low = exact_sum(high, n * -b)
    high, lower = exact_sum(high, n * -c)
    r, r_low = exact_sum_ordered(high, muladd(n, -d, low + lower))
    return r, r_low, n_bits


def reduce_single(x: Value) -> tuple[Value, Value, Value]:
    """As `reduce`, all in float32: r is off by half an ulp, which its sine and cosine can bear.

    The first difference is exact: both sides are multiples of 2**-24 and it is below 1. (Beside |x| < LARGE this wants
    every product with n rounded once, with its sum.)
    """
    n, n_bits = nearest_integer(x * TWO_OVER_PI)
    a, b, c = HALF_PI_SINGLE
    return fma(n, -b, fma(n, -a, x)), n * -c, n_bits


def sin_reduced(r: Value, r_low: Value) -> Value:
    """sin(r + r_low) for |r| <= pi / 4 and a little."""
    z = r * r
    return r + muladd(z * r, polynomial_in_pairs(z, polynomials.SIN[r.format.width]), r_low)


def cos_reduced(r: Value, r_low: Value) -> Value:
    """cos(r + r_low) for |r| <= pi / 4 and a little."""
    z = r * r
    half_square = z * 0.5
    high, low = exact_sum_ordered(r.constant(1.0), -half_square)
    return high + (low + muladd(z * z, polynomial_in_pairs(z, polynomials.COS[r.format.width]), -(r * r_low)))


def sin_of_quadrants(x: Value, quadrants: int) -> Value:
    """sin(x + quadrants pi / 2)."""
    r, r_low, n_bits = (reduce_single if x.format is F32 else reduce)(x)
    n_bits = n_bits + quadrants
    result = where(is_odd(n_bits), cos_reduced(r, r_low), sin_reduced(r, r_low))
    return (result.bits() ^ ((n_bits & 2) << (x.format.width - 2))).floats()


def is_odd(n_bits: Value) -> Value:
    return (n_bits & 1).equals(1)


def for_large(function: str, x: Value, result: Value) -> Value:
    """`result`, but the C library's `function` of x where x is large, infinite or NaN."""
    name = f"gradsmith_large_{function}_{x.format.name}"
    define_large(x.code, name, function if x.format is F64 else f"{function}f", x.format)
    variants = ",".join(f"_ZGV_LLVM_N{width}v_{name}({name}_{width})" for width in WIDTHS)
    instruction = f'call {x.type} @{name}({x.type} {x.name}) nounwind "vector-function-abi-variant"="{variants}"'
    return where(abs(x) < LARGE[x.format.width], result, x._write(instruction))


def define_large(code: Code, name: str, library: str, format: Format) -> None:
    """Define `name`, which is `library` where |x| is `LARGE` and x elsewhere, and its vector variants."""
    number = format.llvm
    limit = f"0x{F64.bits(LARGE[format.width]):016X}"
    attributes = "noinline nounwind willreturn memory(none)"
    code.externals.add((library, number))
    code.support[name] = f"""
        define weak_odr hidden {number} @{name}({number} %x) {attributes} {{
          %size = call {number} @llvm.fabs.{format.name}({number} %x)
          %is_small = fcmp olt {number} %size, {limit}
          br i1 %is_small, label %small, label %large
        small:
          ret {number} %x
        large:
          %result = call {number} @{library}({number} %x) nounwind
          ret {number} %result
        }}"""
    for width in WIDTHS:
        vector, bits = f"<{width} x {number}>", f"<{width} x i1>"
        fabs, reduce_and = f"llvm.fabs.v{width}{format.name}", f"llvm.vector.reduce.and.v{width}i1"
        code.support[fabs] = f"declare {vector} @{fabs}({vector})"
        code.support[reduce_and] = f"declare i1 @{reduce_and}({bits})"
        # Written out: a loop over a place in memory would give the function a stack frame even where all are small.
        one_by_one = "".join(
            f"""
          %x{i} = extractelement {vector} %x, i32 {i}
          %y{i} = call {number} @{name}({number} %x{i})
          %r{i + 1} = insertelement {vector} %r{i}, {number} %y{i}, i32 {i}"""
            for i in range(width)
        )
        code.support[f"{name}_{width}"] = f"""
        define weak_odr hidden {vector} @{name}_{width}({vector} %x) {attributes} {{
          %size = call {vector} @{fabs}({vector} %x)
          %are_small = fcmp olt {vector} %size, splat ({number} {limit})
          %all_small = call i1 @{reduce_and}({bits} %are_small)
          br i1 %all_small, label %small, label %large
        small:
          ret {vector} %x
        large:
          %r0 = freeze {vector} poison{one_by_one}
          ret {vector} %r{width}
        }}"""


@kernel(np.sin)
def sin(x: Value) -> Value:
    """The sine of an angle in radians."""
    return for_large("sin", x, where(x.equals(0.0), x, sin_of_quadrants(x, 0)))


@kernel(np.cos)
def cos(x: Value) -> Value:
    """The cosine of an angle in radians."""
    return for_large("cos", x, sin_of_quadrants(x, 1))


@kernel(np.tan, of_complex=complex_numbers.tan)
def tan(x: Value) -> Value:
    """The tangent of an angle in radians."""
    r, r_low, n_bits = reduce(x)
    z = r * r
    rest = muladd(z * r, polynomial(z, polynomials.TAN[x.format.width]), muladd(r_low, z, r_low))
    high, low = exact_sum_ordered(r, rest)
    # -1 / (high + low), corrected to first order.
    inverse = 1.0 / high
    inverse = muladd(inverse, fma(-high, inverse, 1.0) - low * inverse, inverse)
    result = where(is_odd(n_bits), -inverse, high + low).to(x.format)
    return for_large("tan", x, where(x.equals(0.0), x, result))
