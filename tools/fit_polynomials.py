"""Fit the polynomials of `gradsmith.kernels` and write `runtime/kernels/polynomials.py`.

    python tools/fit_polynomials.py

Each fit interpolates at the Chebyshev nodes of its interval in 60-digit arithmetic, which is within a small factor of
the minimax error (Powell, "On the maximum errors of polynomial approximations", 1967), and takes the fewest
coefficients that keep the function's relative error below the target of its format.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 60
OUTPUT = Path(__file__).parents[1] / "runtime" / "kernels" / "polynomials.py"


@dataclass(frozen=True)
class Fit:
    """`of(t)` on [low, high]; an error of `of` weighs `weight(t)` in the relative error of the whole function."""

    name: str
    meaning: str
    of: Callable[[mpf], mpf]
    low: mpf
    high: mpf
    weight: Callable[[mpf], mpf]
    targets: tuple[tuple[int, mpf], ...] = ((32, mpf(2) ** -29), (64, mpf(2) ** -58))


def odd(name: str, function: Callable[[mpf], mpf], end: mpf, label: str) -> Fit:
    """Fit `P` in `function(x) = x + x**3 * P(x**2)` on [-end, end]."""

    def of(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return (function(x) - x) / x**3

    def weight(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return x**3 / function(x)

    return Fit(name, f"{label}(x) = x + x**3 * P(x**2), |x| <= {mp.nstr(end, 4)}", of, mpf(0), end**2, weight)


def series_log(z: mpf) -> mpf:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / s**3


FITS = (
    Fit(
        "EXP",
        "exp(r) = 1 + r + r**2 * P(r), |r| <= log(2) / 2 and a little",
        lambda r: (mp.exp(r) - 1 - r) / r**2,
        mpf("-0.3475"),
        mpf("0.3475"),
        lambda r: r**2 / mp.exp(r),
    ),
    Fit(
        "LOG",
        "2 * atanh(s) = 2 * s + s**3 * P(s**2), |s| <= 3 - sqrt(8)",
        series_log,
        mpf(0),
        (3 - mp.sqrt(8)) ** 2,
        lambda z: z / 2,
    ),
    Fit(
        "LOG_TAIL",
        "3 * atanh(s) = 3 * s + s**3 + s**5 * P(s**2), |s| <= 3 - sqrt(8)",
        lambda z: (series_log(z) * 3 / 2 - 1) / z,
        mpf(0),
        (3 - mp.sqrt(8)) ** 2,
        lambda z: z**2 / 3,
        ((64, mpf(2) ** -69),),
    ),
    Fit(
        "POWER_LOG2",
        "log2(m) = s * P(s**2), s = (m - 1) / (m + 1), |s| <= 3 - sqrt(8)",
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.log(2),
        mpf("1e-20"),
        (3 - mp.sqrt(8)) ** 2,
        lambda z: mpf(1) / 2,
        ((32, mpf(2) ** -36),),
    ),
    Fit(
        "POWER_EXP2",
        "2**r = P(r), |r| <= 1/2",
        lambda r: mpf(2) ** r,
        mpf("-0.5"),
        mpf("0.5"),
        lambda r: mpf(1),
        ((32, mpf(2) ** -27),),
    ),
    Fit(
        "CBRT",
        "t * P(t**3 / x) is cbrt(x) to some 21 bits for a t within 5 %",
        lambda r: 1 / mp.cbrt(r),
        mpf("0.85"),
        mpf("1.16"),
        lambda r: mpf(1),
        ((64, mpf(2) ** -20),),
    ),
    odd("SIN", mp.sin, mp.pi / 4, "sin"),
    Fit(
        "COS",
        "cos(x) = 1 - x**2 / 2 + x**4 * P(x**2), |x| <= 0.7854",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        mpf(0),
        (mp.pi / 4) ** 2,
        lambda z: z**2,
    ),
    odd("TAN", mp.tan, mp.pi / 4, "tan"),
    odd("ARCSIN", mp.asin, mpf("0.5"), "arcsin"),
    odd("ARCTAN", mp.atan, mpf(1), "arctan"),
    odd("SINH", mp.sinh, mpf(1), "sinh"),
    odd("TANH", mp.tanh, mpf("0.55"), "tanh"),
)


def chebyshev_nodes(low: mpf, high: mpf, count: int) -> list[mpf]:
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * mp.cos((2 * i + 1) * mp.pi / (2 * count)) for i in range(count)]


def interpolate(fit: Fit, count: int) -> list[mpf]:
    """The coefficients, lowest power first, of the interpolant through `count` Chebyshev nodes."""
    nodes = chebyshev_nodes(fit.low, fit.high, count)
    matrix = mp.matrix([[node**power for power in range(count)] for node in nodes])
    return list(mp.lu_solve(matrix, mp.matrix([fit.of(node) for node in nodes])))


def relative_error(fit: Fit, coefficients: list[mpf]) -> mpf:
    points = chebyshev_nodes(fit.low, fit.high, 200)
    return max(abs((value(coefficients, t) - fit.of(t)) * fit.weight(t)) for t in points)


def value(coefficients: list[mpf], t: mpf) -> mpf:
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * t + coefficient
    return total


def fewest_coefficients(fit: Fit, target: mpf) -> tuple[list[mpf], mpf]:
    for count in range(2, 30):
        coefficients = interpolate(fit, count)
        error = relative_error(fit, coefficients)
        if error < target:
            return coefficients, error
    raise ValueError(f"{fit.name} needs more than 30 coefficients")


def main() -> None:
    title = "Polynomial coefficients by format width, lowest power first. Written by tools/fit_polynomials.py."
    lines = [f'"""{title}"""', ""]
    for fit in FITS:
        lines += [f"# {fit.meaning}", f"{fit.name} = {{"]
        for width, target in fit.targets:
            coefficients, error = fewest_coefficients(fit, target)
            lines.append(f"    {width}: (  # relative error 2**{mp.nstr(mp.log(error, 2), 4)}")
            lines += [f"        {float(c)!r}," for c in coefficients]
            lines.append("    ),")
        lines += ["}", ""]
    OUTPUT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
