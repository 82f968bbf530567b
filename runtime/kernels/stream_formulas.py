"""log1p and erfinv as XLA computes them on CPUs: the streams of `gradsmith.random` are JAX's to the last bit.

They are a little less accurate than `log1p` and `erfinv`. log1p(x) is a quotient of polynomials for |x| < sqrt(2) - 1
(S. L. Moshier, Cephes, log1p), else log(1 + x): in float32 that of Cephes (logf), in float64 that of the C library.
erfinv(x) = x P(w) with w = -log1p(-x**2) (M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2010,
tables 3 and 5). Sums and products are fused where LLVM fuses XLA's: a product that is used once.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradsmith.kernels.error_function import piecewise
from gradsmith.kernels.expression import F32, F64, Value, muladd, polynomial, sqrt, where
from gradsmith.kernels.expression import fma as fused
from gradsmith.kernels.kernel import kernel
from gradsmith.kernels.trig import WIDTHS

# Of log1p, highest power first.
NUMERATOR = (4.5270000862445199635215e-5, 4.9854102823193375972212e-1, 6.5787325942061044846969e0,
             2.9911919328553073277375e1, 6.0949667980987787057556e1, 5.7112963590585538103336e1,
             2.0039553499201281259648e1)  # fmt: skip
DENOMINATOR = (1.0, 1.5062909083469192043167e1, 8.3047565967967209469434e1, 2.2176239823732856465394e2,
               3.0909872225312059774938e2, 2.1642788614495947685003e2, 6.0118660497603843919306e1)  # fmt: skip

# Of log(1 + x) in float32, three interleaved polynomials, highest power first.
LOG = ((7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1), (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1),
       (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))  # fmt: skip
LOG_2 = (-2.12194440e-4, 0.693359375)

# Of erfinv, by width: over w - 2.5 (3.125) where w < 5 (6.25), over sqrt(w) - 3 (3.25, and 5 from w = 16 on) else.
ERFINV = {
    32: ((2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
          -0.00417768164, 0.246640727, 1.50140941),
         (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
          1.00167406, 2.83297682)),
    64: ((-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
          -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
          -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
          1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
          -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
          -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356),
         (2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
          1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
          -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
          0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
          0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635),
         (-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
          7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
          2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
          7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
          4.8499064014085844221)),
}  # fmt: skip


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """Highest power first in `coefficients`."""
    return polynomial(x, coefficients[::-1])


def library_log_of(x: Value) -> Value:
    """log(x) as the C library has it, where |x - 1| > 0.41: a call for each lane of a vector that needs one."""
    name = "gradsmith_stream_log_f64"
    attributes = "noinline nounwind willreturn memory(none)"
    x.code.externals.add(("log", "double"))
    x.code.support[name] = f"""
        define weak_odr hidden double @{name}(double %x) {attributes} {{
          %away = fsub double %x, 1.0
          %size = call double @llvm.fabs.f64(double %away)
          %is_near = fcmp ole double %size, 0x{F64.bits(0.41):016X}
          br i1 %is_near, label %near, label %far
        near:
          ret double %x
        far:
          %result = call double @log(double %x) nounwind
          ret double %result
        }}"""
    for width in WIDTHS:
        vector = f"<{width} x double>"
        one_by_one = "".join(
            f"""
          %x{i} = extractelement {vector} %x, i32 {i}
          %y{i} = call double @{name}(double %x{i})
          %r{i + 1} = insertelement {vector} %r{i}, double %y{i}, i32 {i}"""
            for i in range(width)
        )
        x.code.support[f"{name}_{width}"] = f"""
        define weak_odr hidden {vector} @{name}_{width}({vector} %x) {attributes} {{
          %r0 = freeze {vector} poison{one_by_one}
          ret {vector} %r{width}
        }}"""
    variants = ",".join(f"_ZGV_LLVM_N{width}v_{name}({name}_{width})" for width in WIDTHS)
    x.code.intrinsics.add(("llvm.fabs", "double"))
    return x._write(f'call double @{name}(double {x.name}) nounwind "vector-function-abi-variant"="{variants}"')


def stream_log_of(x: Value) -> Value:
    """log(x) for finite x >= 0 with |x - 1| > 0.41."""
    if x.format is F64:
        return library_log_of(x)
    normal = where(x > x.format.smallest_normal, x, x.format.smallest_normal)
    bits = normal.bits()
    m = ((bits & 0x007FFFFF) | x.format.bits(0.5)).floats()
    # An integer below 2**mantissa becomes a float when it is put into the mantissa of 2.0**mantissa.
    offset = 2.0**x.format.mantissa + (x.format.bias - 1)
    exponent = ((bits >> x.format.mantissa) | x.format.bits(2.0**x.format.mantissa)).floats() - offset
    is_low = m < math.sqrt(0.5)
    f = (m - 1.0) + where(is_low, m, 0.0)
    exponent = exponent - where(is_low, x.constant(1.0), 0.0)
    square = f * f
    cube = square * f
    top, middle, low = (horner(f, part) for part in LOG)
    tail = muladd(muladd(top, cube, middle), cube, low)
    rest = muladd(tail, cube, exponent * LOG_2[0])
    result = muladd(exponent, LOG_2[1], (f - square * 0.5) + rest)
    return where(x.equals(0.0), -math.inf, result)


def stream_log1p_of(x: Value) -> Value:
    """log(1 + x) for finite x >= -1."""
    far = stream_log_of(x + 1.0)
    square = x * x
    ratio = horner(x, NUMERATOR) / horner(x, DENOMINATOR)
    near = x + muladd(square, -0.5, x * square * ratio)
    return where(abs(x) < math.sqrt(2.0) - 1.0, near, far)


def _erfinv(x: Any) -> Any:
    from scipy.special import erfinv

    return erfinv(x)


def _fma(x: Any, y: Any, z: Any) -> Any:
    wide = np.longdouble(x) * np.longdouble(y) + np.longdouble(z)
    return wide.astype(np.result_type(x, y, z))


@kernel(_fma, takes_complex=False)
def fma(x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once."""
    return fused(x, y, z)


@kernel(_erfinv, takes_complex=False)
def stream_erfinv(x: Value) -> Value:
    """The y with erf(y) = x, for x in [-1, 1]."""
    w = -stream_log1p_of(x * -x)
    root = sqrt(w)
    if x.format is F32:
        regions, (central, last) = [w < 5.0], ERFINV[32]
        v = where(regions[0], w - 2.5, root - 3.0)
        chosen = [(regions[0], central)]
    else:
        central, middle, last = ERFINV[64]
        is_central, is_middle = w < 6.25, w < 16.0
        v = where(is_central, w - 3.125, root - where(is_middle, x.constant(3.25), 5.0))
        chosen = [(is_central, central), (is_middle, middle)]
    factor = piecewise(v, [(condition, table[::-1]) for condition, table in chosen], last[::-1])
    return x * where(abs(x).equals(1.0), math.inf, factor)
