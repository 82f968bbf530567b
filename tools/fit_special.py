"""Fit the polynomials of `gradsmith.kernels.special` and write `runtime/kernels/special_polynomials.py`.

    python tools/fit_special.py

As `fit_polynomials`, with the functions that special functions need.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from fit_polynomials import Fit, fewest_coefficients
from mpmath import mp, mpf

OUTPUT = Path(__file__).parents[1] / "runtime" / "kernels" / "special_polynomials.py"
HALF = mpf(1) / 2
FINE, COARSE = mpf(2) ** -58, mpf(2) ** -30
ERFC_TOP = {32: 11, 64: 28}
ERFC_MIDDLE = {32: mpf("2.5"), 64: mpf("3.75")}
ERFINV_EDGES = {32: (mp.sqrt(5), mpf("4.01")), 64: (mp.sqrt(5), mpf("3.8"), mpf("6.02"))}


def constantly_one(t: mpf) -> mpf:
    return mpf(1)


def erf_fit() -> Fit:
    def of(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return (mp.erf(x) - x) / x

    return Fit("ERF", "erf(x) = x + x * P(x**2), |x| <= 1", of, mpf("1e-20"), mpf(1), constantly_one,
               ((32, COARSE), (64, FINE)))  # fmt: skip


def erfc_fit(width: int) -> Fit:
    k = ERFC_MIDDLE[width]

    def scaled(x: mpf) -> mpf:
        return (x + k) * mp.exp(x * x) * mp.erfc(x)

    def argument(t: mpf) -> mpf:
        return k * (1 + t) / (1 - t)

    low, high = ((x - k) / (x + k) for x in (mpf("0.89"), mpf(ERFC_TOP[width])))
    return Fit(
        f"ERFC_{width}", f"(x + k) * exp(x**2) * erfc(x) = P((x - k) / (x + k)), k = {mp.nstr(k)}, 0.9 <= x",
        lambda t: scaled(argument(t)), low, high, lambda t: 1 / scaled(argument(t)),
        ((width, {32: COARSE, 64: mpf(2) ** -60}[width]),),
    )  # fmt: skip


def erfinv_ratio(w: mpf) -> mpf:
    """erfinv(x) / x for w = -log(1 - x**2)."""
    x = mp.sqrt(-mp.expm1(-w))
    if x < HALF:
        return mp.erfinv(x) / x if x else mp.sqrt(mp.pi) / 2
    rest = mp.exp(-w) / (1 + x)
    y = mp.sqrt(max(w - mp.log(mp.pi * max(w, 1)) / 2, mpf("0.1")))
    for _ in range(60):
        step = (mp.erfc(y) - rest) / (2 / mp.sqrt(mp.pi) * mp.exp(-y * y))
        y += step / (1 + y * step)
        if abs(step) < mpf(10) ** -55:
            break
    return y / x


def erfinv_fits(width: int) -> list[Fit]:
    target = ((width, {32: COARSE, 64: FINE}[width]),)
    middle = mpf("2.5")
    fits = [
        Fit(f"ERFINV_{width}_0", "erfinv(x) = x * P(w - 2.5), w = -log(1 - x**2) <= 5",
            lambda v: erfinv_ratio(v + middle), -middle, middle, lambda v: 1 / erfinv_ratio(v + middle), target)
    ]  # fmt: skip
    edges = ERFINV_EDGES[width]
    for number, (low, high) in enumerate(pairwise(edges), 1):
        centre = mpf(float(mp.nint((low + high) * 8) / 16))
        fits.append(
            Fit(f"ERFINV_{width}_{number}",
                f"erfinv(x) = x * P(sqrt(w) - {mp.nstr(centre)}), sqrt(w) <= {mp.nstr(high)}",
                lambda v, centre=centre: erfinv_ratio((v + centre) ** 2), low - centre, high - centre,
                lambda v, centre=centre: 1 / erfinv_ratio((v + centre) ** 2), target)
        )  # fmt: skip
    return fits


def stirling_rest(z: mpf) -> mpf:
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - ((x - HALF) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)) * x


def digamma_rest(z: mpf) -> mpf:
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z


def sin_pi_rest(z: mpf) -> mpf:
    r = mp.sqrt(z)
    return (mp.sin(mp.pi * r) / r - mp.pi) / z


ROOT = mp.findroot(mp.digamma, mpf("1.4616321449683623"))
ONLY_64 = ((64, FINE),)

FITS = (
    erf_fit(),
    *(erfc_fit(width) for width in (32, 64)),
    *(fit for width in (32, 64) for fit in erfinv_fits(width)),
    Fit("LGAMMA", "log(gamma(2 + v)) = v * P(v), |v| <= 1/2",
        lambda v: mp.loggamma(2 + v) / v if v else mp.digamma(2), -HALF, HALF,
        lambda v: v / mp.loggamma(2 + v) if v else 1 / mp.digamma(2), ONLY_64),
    Fit("STIRLING", "log(gamma(x)) = (x - 1/2) * log(x) - x + log(2 * pi) / 2 + P(1 / x**2) / x, x >= 10",
        stirling_rest, mpf("1e-12"), mpf("0.01"), lambda z: mpf("0.01"), ONLY_64),
    Fit("DIGAMMA", "digamma(x) = (x - root) * P(x - 3/2), 1 <= x <= 2",
        lambda v: mp.digamma(v + 3 * HALF) / (v + 3 * HALF - ROOT), -HALF, HALF,
        lambda v: (v + 3 * HALF - ROOT) / mp.digamma(v + 3 * HALF), ONLY_64),
    Fit("DIGAMMA_TAIL", "digamma(x) = log(x) - 1 / (2 * x) - z * P(z), z = 1 / x**2, x >= 10",
        digamma_rest, mpf("1e-12"), mpf("0.01"), lambda z: z / 2, ONLY_64),
    Fit("SIN_PI", "sin(pi * r) = pi * r + r**3 * P(r**2), |r| <= 1/2", sin_pi_rest, mpf("1e-20"), HALF**2,
        lambda z: z / 2, ONLY_64),
)  # fmt: skip


def main() -> None:
    lines = [
        '"""Polynomial coefficients of the special functions, lowest power first. Written by tools/fit_special.py."""',
        "",
    ]
    high = float(ROOT)
    lines += ["# The positive root of digamma, in two parts", f"DIGAMMA_ROOT = ({high!r}, {float(ROOT - high)!r})", ""]
    for fit in FITS:
        for width, target in fit.targets:
            coefficients, error = fewest_coefficients(fit, target)
            name = f"ERF_{width}" if fit.name == "ERF" else fit.name
            lines.append(f"# {fit.meaning}; relative error 2**{mp.nstr(mp.log(error, 2), 4)}")
            lines += [f"{name} = (", *(f"    {float(c)!r}," for c in coefficients), ")", ""]
            if name.startswith("ERFC"):
                rounded = np.float32 if width == 32 else np.float64
                lost = tuple(float(c - mpf(float(rounded(float(c))))) for c in coefficients[:2])
                lines += [f"# What rounding took from the first coefficients\n{name}_LOST = {lost!r}", ""]
    OUTPUT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
