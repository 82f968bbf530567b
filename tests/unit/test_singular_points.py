"""Gradients at kinks, ties, poles, removable singularities and degenerate spectra, through the whole path.

Each row is a function of one argument, a point, and the gradient there.  A group is compiled as one function of all
its rows' arguments, in reverse and in forward mode; the second derivatives of the rows that have one are the gradients
of a weighted sum of first ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.special as sc

import gradsmith

INF, NAN = math.inf, math.nan
FREE = object()     # a slope that nothing fixes; it must not be NaN


@dataclass(frozen=True)
class Row:
    """second: the derivative of the sum of the gradient's elements."""

    function: Callable[[Any], Any]
    at: Any
    slope: Any
    second: Any = None
    rtol: float = 1e-9

    @property
    def name(self) -> str:
        code = self.function.__code__
        return f"line {code.co_firstlineno} at {self.at}"


def row(function, at, slope, second=None, rtol=1e-9):
    return Row(function, np.array(at, np.float64) if isinstance(at, list) else at, slope, second, rtol)


def softplus(x):
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def logsumexp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def weights(x):
    return 1.0 + np.arange(x.shape[0])


MASKED = [
    row(lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, np.sqrt(x), 0.0), -1.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, np.sqrt(x), 0.0), 4.0, 0.25, -1 / 32),
    row(lambda x: np.sqrt(np.where(x > 0, x, 0.0)), 0.0, 0.0),
    row(lambda x: np.sum(np.where(x > 0, np.sqrt(x), x)), [0.0, -1.0, 4.0], [1.0, 1.0, 0.25], [0.0, 0.0, -1 / 32]),
    row(lambda x: np.where(x > 0, np.log(x), 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, np.log(x), 0.0), -2.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, x * np.log(x), 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, x ** 0.5, 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, x ** -1.5, 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, x ** 0.3, 0.0), -1.0, 0.0, 0.0),
    row(lambda x: np.where(x != 0, 1.0 / x, 0.0), np.float64(0.0), 0.0, 0.0),
    row(lambda x: np.where(x != 0, np.sin(x) / x, 1.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x)), 0.0, 0.0, 0.0),
    row(lambda x: np.where(np.abs(x) < 1, np.arccos(x), 0.0), 1.0, 0.0, 0.0),
    row(lambda x: np.where(np.abs(x) < 1, np.arctanh(x), 0.0), 1.0, 0.0, 0.0),
    row(lambda x: np.where(x > 1, np.arccosh(x), 0.0), 1.0, 0.0, 0.0),
    row(lambda x: np.where(x <= 0, np.exp(x), 1 + 5 * x), 1000.0, 5.0, 0.0),
    row(lambda x: np.where(x <= 0, np.expm1(x), x), 1000.0, 1.0, 0.0),
    row(lambda x: np.where(np.isfinite(1 / x), 1 / x, x), np.float64(0.0), 1.0, 0.0),
    row(lambda x: np.where(np.isnan(x), 0.0, x * x), NAN, 0.0, 0.0),
    row(lambda x: np.where(x > 0, np.linalg.norm(np.stack([x, x])), 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, np.cbrt(x), 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.where(x[0] > 0, np.arctan2(x[1], x[0]), 0.0), [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.where(x > -1, np.log1p(x), 0.0), -1.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, 0.0, np.where(x < 0, 0.0, np.sqrt(np.abs(x)))), 1.0, 0.0, 0.0),
    row(lambda x: np.where(x < 1, 3 * x, np.sqrt(x)), 0.0, 3.0, 0.0),
    row(lambda x: np.where(x > 0, np.tan(x) / x, 1.0), 0.0, 0.0, 0.0),
    row(lambda x: np.select([x > 0, x < 0], [np.sqrt(x), np.sqrt(-x)], 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.select([x > 0, x < 0], [np.sqrt(x), np.sqrt(-x)], 0.0), -4.0, -0.25),
    row(lambda x: np.sum(np.where(x > 0, np.power(x, np.array([0.5, -1.0, 0.0])), 0.0)), [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    row(lambda x: np.nan_to_num(x) * 2.0, NAN, 0.0, 0.0),
    row(lambda x: np.nan_to_num(1.0 / x, posinf=0.0), np.float64(0.0), 0.0),
    row(lambda x: np.sqrt(x) * 0.0, 0.0, FREE),
]

NORMS = [
    row(lambda x: np.linalg.norm(x), [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.linalg.norm(x) ** 2, [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.linalg.norm(x) ** 2 + np.sum(x), [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
    row(lambda x: np.linalg.norm(x) ** 3, [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.sqrt(np.sum(x ** 2)) ** 2, [1.0, 2.0], [2.0, 4.0], [2.0, 2.0]),
    row(lambda x: np.sum(np.linalg.norm(x, axis=1)), np.array([[0.0, 0.0], [3.0, 4.0]]), [[0.0, 0.0], [0.6, 0.8]]),
    row(lambda x: np.linalg.norm(x, ord=1), [0.0, -2.0], [0.0, -1.0]),
    row(lambda x: np.linalg.norm(x, ord=3), [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.linalg.norm(x, ord=np.inf), [2.0, -2.0], [0.5, -0.5]),
    row(lambda x: np.linalg.norm(x, ord=-np.inf), [2.0, -2.0, 3.0], [0.5, -0.5, 0.0]),
    row(lambda x: np.linalg.norm(x, ord=0), [0.0, -2.0], [0.0, 0.0]),
    row(lambda x: np.linalg.norm(x, ord="nuc"), np.eye(2), np.eye(2)),
    row(lambda x: np.linalg.norm(x, ord="nuc"), np.zeros((2, 2)), np.zeros((2, 2))),
    row(lambda x: np.linalg.norm(x, ord=2), np.eye(2), np.eye(2) / 2),
    row(lambda x: np.linalg.norm(x, ord=2), np.diag([3.0, 1.0]), np.diag([1.0, 0.0])),
    row(lambda x: np.linalg.norm(x, ord=-2), np.diag([3.0, 1.0]), np.diag([0.0, 1.0])),
    row(lambda x: np.linalg.norm(x, ord=2) ** 2, np.zeros((2, 2)), np.zeros((2, 2))),
    row(lambda x: np.hypot(x[0], x[1]), [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.hypot(x[0], x[1]) ** 2, [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.hypot(x[0], x[1]), [3e200, 4e200], [0.6, 0.8]),
    row(lambda x: np.abs(x[0] + 1j * x[1]), [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.abs(x[0] + 1j * x[1]) ** 2, [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.real(np.where(x != 0, 1 / (x + 0j), 0j)), np.float64(0.0), 0.0),
    row(lambda x: np.std(x), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
    row(lambda x: np.std(x, ddof=1), [2.0, 2.0], [0.0, 0.0]),
    row(lambda x: np.std(x) ** 2, [2.0, 2.0], [0.0, 0.0]),
    row(lambda x: np.var(x), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    row(lambda x: np.abs(x), 0.0, 0.0, 0.0),
    row(lambda x: np.abs(x) ** 2, 0.0, 0.0),
    row(lambda x: np.abs(x) * x, 0.0, 0.0),
    row(lambda x: np.fabs(x) + x, -0.0, 1.0, 0.0),
]

POWERS = [
    row(lambda x: x ** 0, 0.0, 0.0, 0.0),
    row(lambda x: x ** 1, 0.0, 1.0, 0.0),
    row(lambda x: x ** 2, 0.0, 0.0, 2.0),
    row(lambda x: x ** 3, 0.0, 0.0, 0.0),
    row(lambda x: x ** 2.0, 0.0, 0.0, 2.0),
    row(lambda x: x ** 1.0, 0.0, 1.0, 0.0),
    row(lambda x: x ** 0.0, 0.0, 0.0, 0.0),
    row(lambda x: x ** 1.5, 0.0, 0.0, INF),
    row(lambda x: x ** 0.5, 0.0, INF),
    row(lambda x: np.sqrt(x), 0.0, INF),
    row(lambda x: np.cbrt(x), 0.0, INF),
    row(lambda x: x ** 2, -3.0, -6.0, 2.0),
    row(lambda x: x ** 3, -2.0, 12.0, -12.0),
    row(lambda x: x ** 3.0, -2.0, 12.0, -12.0),
    row(lambda x: x ** -1, -2.0, -0.25, -0.25),
    row(lambda x: x ** -2, -1.0, 2.0, 6.0),
    row(lambda x: np.power(x, 3), -2.0, 12.0, -12.0),
    row(lambda x: np.power(x, np.float64(3.0)), -2.0, 12.0, -12.0),
    row(lambda x: np.float_power(x, 2), 0.0, 0.0, 2.0),
    row(lambda x: np.square(x), 0.0, 0.0, 2.0),
    row(lambda x: np.sum(np.power(x, np.array([0.0, 1.0, 2.0, 3.0]))), [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 2.0, 0.0]),
    row(lambda x: np.sum(np.power(x, np.array([2, 3]))), [-2.0, -2.0], [-4.0, 12.0], [2.0, -12.0]),
    row(lambda x: np.sum(np.power(x - np.floor(x), np.array([0.0]))), [1.0], [0.0], [0.0]),
    row(lambda y: 0.0 ** y, 2.0, 0.0, 0.0),
    row(lambda y: 0.0 ** y, 0.0, 0.0),
    row(lambda y: np.power(0.0, y), 1.0, 0.0, 0.0),
    row(lambda y: 2.0 ** y, 0.0, math.log(2.0), math.log(2.0) ** 2),
    row(lambda x: x[0] ** x[1], [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: x[0] ** x[1], [0.0, 1.0], [1.0, 0.0]),
    row(lambda x: x[0] ** x[1], [0.0, 2.0], [0.0, 0.0]),
    row(lambda x: x[0] ** x[1], [2.0, 3.0], [12.0, 8 * math.log(2)]),
    row(lambda x: x * x, 0.0, 0.0, 2.0),
    row(lambda x: pow(x, 2), 0.0, 0.0, 2.0),
    row(lambda x: math.sqrt(x * x + 1.0), 0.0, 0.0, 1.0),
    row(lambda x: np.sum(x[:, None] ** np.arange(4)), [0.0, 2.0], [1.0, 1 + 4 + 12.0], [2.0, 2 + 12.0]),
]

KINKS = [
    row(lambda x: np.maximum(x, 0.0), 0.0, 0.5, 0.0),
    row(lambda x: np.minimum(x, 0.0), 0.0, 0.5, 0.0),
    row(lambda x: np.clip(x, 0.0, None), 0.0, 0.5, 0.0),
    row(lambda x: np.clip(x, 0.0, 1.0), 1.0, 0.5, 0.0),
    row(lambda x: np.clip(x, 0.0, 1.0), 0.3, 1.0, 0.0),
    row(lambda x: np.clip(x, 0.0, 1.0), 2.0, 0.0, 0.0),
    row(lambda x: np.where(x > 0, x, 0.0), 0.0, 0.0, 0.0),
    row(lambda x: x * (x > 0), 0.0, 0.0, 0.0),
    row(lambda x: 0.5 * (x + np.abs(x)), 0.0, 0.5, 0.0),
    row(lambda x: np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x))), 0.0, 0.5),
    row(lambda x: softplus(x), 0.0, 0.5),
    row(lambda x: np.max(x), [5.0, 5.0, 1.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]),
    row(lambda x: np.min(x), [1.0, 5.0, 1.0], [0.5, 0.0, 0.5]),
    row(lambda x: np.max(x), [3.0, 3.0, 3.0, 3.0], [0.25, 0.25, 0.25, 0.25]),
    row(lambda x: np.sum(np.max(x, axis=0)), np.array([[1.0, 2.0], [1.0, 3.0]]), [[0.5, 0.0], [0.5, 1.0]]),
    row(lambda x: np.maximum(x[0], x[1]), [2.0, 2.0], [0.5, 0.5]),
    row(lambda x: np.maximum(x, x), 2.0, 1.0),
    row(lambda x: np.maximum.reduce(x), [2.0, 2.0], [0.5, 0.5]),
    row(lambda x: max(x[0], x[1]), [2.0, 2.0], FREE),
    row(lambda x: np.fmax(x[0], x[1]), [2.0, NAN], [1.0, 0.0]),
    row(lambda x: np.fmin(x[0], x[1]), [NAN, 2.0], [0.0, 1.0]),
    row(lambda x: np.ptp(x), [1.0, 1.0, 3.0], [-0.5, -0.5, 1.0]),
    row(lambda x: np.median(x), [1.0, 3.0, 2.0], [0.0, 0.0, 1.0]),
    row(lambda x: np.median(x), [1.0, 3.0, 2.0, 9.0], [0.0, 0.5, 0.5, 0.0]),
    row(lambda x: np.sum(np.sort(x) * weights(x)), [3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
    row(lambda x: np.sum(np.sort(x)), [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]),
    row(lambda x: x[np.argmax(x)], [5.0, 5.0], [1.0, 0.0]),
    row(lambda x: np.sum(np.maximum.accumulate(x)), [1.0, 3.0, 2.0], [1.0, 2.0, 0.0]),
    row(lambda x: np.sign(x) * x, 0.0, 0.0),
    row(lambda x: np.floor(x) + np.ceil(x) + np.trunc(x) + np.rint(x), 2.0, 0.0, 0.0),
    row(lambda x: np.round(x), 2.5, 0.0, 0.0),
    row(lambda x: x - np.floor(x), 2.0, 1.0, 0.0),
    row(lambda x: np.mod(x, 2.0), 4.0, 1.0, 0.0),
    row(lambda x: x % 2.0, -4.0, 1.0, 0.0),
    row(lambda x: np.fmod(x, 2.0), -3.0, 1.0, 0.0),
    row(lambda x: np.mod(7.0, x), 2.0, -3.0, 0.0),
    row(lambda x: np.copysign(x, -1.0), 0.0, 0.0),
    row(lambda x: np.copysign(x, 1.0), -2.0, -1.0),
    row(lambda x: np.copysign(2.0, x), 0.0, 0.0),
    row(lambda x: np.heaviside(x, 0.5) + x, 0.0, 1.0, 0.0),
    row(lambda x: np.nansum(x * x), [NAN, 2.0], [0.0, 4.0], [0.0, 2.0]),
    row(lambda x: np.nanmean(x), [NAN, 2.0, 4.0], [0.0, 0.5, 0.5]),
    row(lambda x: np.nanmax(x), [NAN, 2.0, 1.0], [0.0, 1.0, 0.0]),
    row(lambda x: np.nanmin(x), [NAN, 2.0, 1.0], [0.0, 0.0, 1.0]),
    row(lambda x: np.nansum(np.sqrt(x)), [-1.0, 4.0], [FREE, 0.25]),
    row(lambda x: np.interp(x, np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 3.0])), 0.5, 2.0),
]

EXTREMES = [
    row(lambda x: np.tanh(x), 1000.0, 0.0, 0.0),
    row(lambda x: np.tanh(x), -30.0, 4 * math.exp(-60), rtol=1e-6),
    row(lambda x: np.tanh(x), 0.0, 1.0, 0.0),
    row(lambda x: 1 / (1 + np.exp(-x)), -800.0, 0.0),
    row(lambda x: 1 / (1 + np.exp(-x)), 800.0, 0.0, 0.0),
    row(lambda x: 1 / np.cosh(x), 1000.0, 0.0),
    row(lambda x: 1 / (1 + np.exp2(x)), 2000.0, 0.0),
    row(lambda x: 1 / (2 + np.expm1(x)), 2000.0, 0.0),
    row(lambda x: np.exp(x) / (1 + np.exp(x)), -800.0, 0.0, 0.0),
    row(lambda x: 1 / (1 + x ** 4), 1e100, 0.0, 0.0),
    row(lambda x: 1 / (1 + x * x), 1e200, 0.0, 0.0),
    row(lambda x: np.exp(-x * x), 1e200, 0.0, 0.0),
    row(lambda x: sc.expit(x), -800.0, 0.0, 0.0),
    row(lambda x: sc.expit(x), 0.0, 0.25, 0.0),
    row(lambda x: softplus(x), 800.0, 1.0, 0.0),
    row(lambda x: softplus(x), -800.0, 0.0, 0.0),
    row(lambda x: np.logaddexp(x, 0.0), 800.0, 1.0, 0.0),
    row(lambda x: np.logaddexp(x, 0.0), 0.0, 0.5, 0.25),
    row(lambda x: np.logaddexp(0.0, x), -800.0, 0.0, 0.0),
    row(lambda x: np.logaddexp(x, -np.inf), 1.0, 1.0, 0.0),
    row(lambda x: np.logaddexp(-np.inf, x), -INF, FREE),
    row(lambda x: np.logaddexp2(x, 0.0), 0.0, 0.5, 0.25 * math.log(2)),
    row(lambda x: np.logaddexp.reduce(x), [-INF, 1.0], [0.0, 1.0]),
    row(lambda x: np.logaddexp.reduce(x), [1.0, 1.0, 1.0], [1 / 3, 1 / 3, 1 / 3]),
    row(lambda x: np.logaddexp.reduce(x), [-INF, -INF], [FREE, FREE]),
    row(lambda x: np.logaddexp.reduce(x), [1000.0, 0.0], [1.0, 0.0]),
    row(lambda x: sc.logsumexp(x), [-INF, 1.0], [0.0, 1.0]),
    row(lambda x: sc.logsumexp(x), [1000.0, 1000.0], [0.5, 0.5], [0.0, 0.0]),
    row(lambda x: sc.logsumexp(x), [-INF, -INF], [FREE, FREE]),
    row(lambda x: logsumexp(x), [1.0, 1.0], [0.5, 0.5]),
    row(lambda x: logsumexp(x), [-INF, 1.0], [0.0, 1.0]),
    row(lambda x: np.log1p(x), 1e-20, 1.0, -1.0),
    row(lambda x: np.expm1(x), 1e-20, 1.0, 1.0),
    row(lambda x: np.log1p(x), 0.0, 1.0, -1.0),
    row(lambda x: np.exp(x), 1000.0, INF),
    row(lambda x: np.minimum(np.exp(x), 5.0), 1000.0, 0.0),
    row(lambda x: np.cosh(x) / np.cosh(x), 0.0, 0.0),
    row(lambda x: np.sinc(x), 0.0, 0.0, -math.pi ** 2 / 3),
    row(lambda x: np.sinc(x), 1e-8, -math.pi ** 2 * 1e-8 / 3, -math.pi ** 2 / 3),
    row(lambda x: np.sinc(x), 1e-3, -math.pi ** 2 * 1e-3 / 3 * (1 - math.pi ** 2 * 1e-6 / 10), rtol=1e-10),
    row(lambda x: np.sinc(x), 1.0, -1.0, 2.0),
    row(lambda x: sc.xlogy(x, x), 0.0, FREE),
    row(lambda x: sc.xlogy(0.0, x), 0.0, 0.0),
    row(lambda x: sc.xlogy(x, 2.0), 0.0, math.log(2.0), 0.0),
    row(lambda x: sc.xlog1py(0.0, x), -1.0, 0.0),
    row(lambda x: sc.entr(x), 0.0, INF),
    row(lambda x: sc.entr(x), 1.0, -1.0, -1.0),
    row(lambda x: np.where(x > 0, sc.entr(x), 0.0), 0.0, 0.0, 0.0),
    row(lambda x: np.arcsin(x), 0.0, 1.0, 0.0),
    row(lambda x: np.arcsinh(x), 1e200, 1e-200),
    row(lambda x: np.arctan(x), 1e200, 0.0, 0.0),
    row(lambda x: np.arctan2(x[0], x[1]), [0.0, 0.0], [0.0, 0.0]),
    row(lambda x: np.arctan2(x[0], x[1]), [0.0, -1.0], [-1.0, 0.0]),
    row(lambda x: np.arctan2(x[0], x[1]), [1e-200, 1e-200], [0.5e200, -0.5e200]),
    row(lambda x: np.sqrt(1 - x * x), 0.0, 0.0, -1.0),
    row(lambda x: sc.erf(x), 30.0, 0.0, 0.0),
    row(lambda x: sc.gammaln(x), 1.0, -0.5772156649015329, math.pi ** 2 / 6),
    row(lambda x: np.log(x) * 0.0 + x, 1e-300, 1.0),
    row(lambda x: x / (1 + np.abs(x)), 0.0, 1.0, 0.0),
    row(lambda x: np.exp(-1 / x ** 2), 1e-3, 0.0),
    row(lambda x: np.sum(np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x))) * weights(x)), [1000.0, 1000.0],
        [-0.25, 0.25]),
]

PRODUCTS = [
    row(lambda x: np.prod(x), [2.0, 0.0, 3.0], [0.0, 6.0, 0.0], [6.0 - 3.0 + 0.0, 5.0, 2.0]),
    row(lambda x: np.prod(x), [2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 2.0]),
    row(lambda x: np.prod(x), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    row(lambda x: np.sum(np.prod(x, axis=1)), np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]),
        [[2.0, 0.0], [0.0, 0.0], [4.0, 3.0]]),
    row(lambda x: np.sum(np.cumprod(x)), [2.0, 0.0, 0.0, 3.0], [1.0, 2.0, 0.0, 0.0]),
    row(lambda x: np.sum(np.cumprod(x)), [0.0, 2.0, 3.0], [9.0, 0.0, 0.0], [6.0, 4.0, 2.0]),
    row(lambda x: np.sum(np.cumprod(x)), [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]),
    row(lambda x: np.cumprod(x)[-1], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 2.0, 0.0]),
    row(lambda x: np.multiply.reduce(x), [0.0, 5.0], [5.0, 0.0], [1.0, 1.0]),
    row(lambda x: np.linalg.det(x), np.zeros((1, 1)), [[1.0]]),
    row(lambda x: np.linalg.det(x), np.array([[1.0, 2.0], [2.0, 4.0]]), [[4.0, -2.0], [-2.0, 1.0]],
        [[1.0, -1.0], [-1.0, 1.0]]),
    row(lambda x: np.linalg.det(x), np.zeros((2, 2)), np.zeros((2, 2)), [[1.0, -1.0], [-1.0, 1.0]]),
    row(lambda x: np.linalg.det(x), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
        [[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]], np.zeros((3, 3))),
    row(lambda x: np.linalg.det(x), np.ones((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))),
    row(lambda x: np.linalg.det(x), np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))),
    row(lambda x: np.linalg.det(x), np.diag([0.0, 1.0, 2.0, 3.0]), np.diag([6.0, 0.0, 0.0, 0.0])),
    row(lambda x: np.linalg.det(x), np.zeros((0, 0)), np.zeros((0, 0))),
    row(lambda x: np.linalg.det(x) ** 2, np.zeros((3, 3)), np.zeros((3, 3))),
    row(lambda x: np.linalg.slogdet(x)[1], np.eye(2), np.eye(2)),
    row(lambda x: np.trace(np.linalg.matrix_power(x, 2)), np.zeros((2, 2)), np.zeros((2, 2)), 2 * np.ones((2, 2))),
]

GROUPS = {"masked": MASKED, "norms": NORMS, "powers": POWERS, "kinks": KINKS, "extremes": EXTREMES, "products": PRODUCTS}


def total(rows):
    functions = [r.function for r in rows]

    def sum_of_all(*xs):
        result = 0.0
        for function, x in zip(functions, xs):
            result = result + function(x)
        return result

    return sum_of_all


def wanted(at, slope):
    """Slopes as an array of the point's shape; FREE becomes NaN here, where `same` looks no further."""
    shape = np.shape(at)
    values = np.array(slope, dtype=object) if slope is not FREE else np.full(shape, FREE, dtype=object)
    free = np.array([v is FREE for v in values.ravel()], bool).reshape(shape)
    return np.where(free, np.nan, values.reshape(shape)).astype(np.float64), free


def problems_of(rows, found, slopes):
    problems = []
    for r, got, slope in zip(rows, found, slopes):
        want, free = wanted(r.at, slope)
        got = np.asarray(got, np.float64)
        if got.shape != want.shape:
            problems.append(f"{r.name}: shape {got.shape}, expected {want.shape}")
        elif np.isnan(got).any() or not np.allclose(got[~free], want[~free], rtol=r.rtol, atol=1e-11):
            problems.append(f"{r.name}: {got.tolist()}, expected {slope}")
    return problems


def numbers_of(rows):
    return tuple(range(len(rows)))


@functools.cache
def gradients(group):
    rows = GROUPS[group]
    return gradsmith.grad(total(rows), argnums=numbers_of(rows))(*[r.at for r in rows])


@pytest.mark.parametrize("group", GROUPS)
def test_reverse(group):
    rows = GROUPS[group]
    problems = problems_of(rows, gradients(group), [r.slope for r in rows])
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("group", GROUPS)
def test_forward(group):
    """Along the first coordinate that a slope is fixed in, and along all of them together."""
    rows = GROUPS[group]
    pushed = functools.partial(gradsmith.jvp, total(rows))
    points = tuple(r.at for r in rows)
    zeros = [np.zeros_like(p) if isinstance(p, np.ndarray) else 0.0 for p in points]
    problems = []
    for number, r in enumerate(rows):
        want, free = wanted(r.at, r.slope)
        weights = np.where(free, 0.0, 1.0 + np.arange(want.size).reshape(want.shape))
        expected = np.sum(np.where(free, 0.0, want) * weights)
        direction = weights if isinstance(r.at, np.ndarray) else float(weights)
        _, slope = pushed(points, tuple(direction if k == number else z for k, z in enumerate(zeros)))
        if not np.allclose(slope, expected, rtol=r.rtol, atol=1e-11):
            problems.append(f"{r.name}: {slope}, expected {expected}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("group", GROUPS)
def test_second(group):
    rows = [r for r in GROUPS[group] if r.second is not None]
    functions = [r.function for r in rows]

    def sum_of_slopes(*xs):
        result = 0.0
        for function, x in zip(functions, xs):
            result = result + np.sum(gradsmith.grad(function)(x))
        return result

    found = gradsmith.grad(sum_of_slopes, argnums=numbers_of(rows))(*[r.at for r in rows])
    problems = problems_of(rows, found, [r.second for r in rows])
    assert not problems, "\n".join(problems)


SINGLE = [r for r in MASKED + POWERS + KINKS + EXTREMES
          if np.isfinite(np.asarray(r.at)).all() and np.max(np.abs(r.at), initial=0.0) < 1e4
          and not 0 < np.min(np.abs(r.at), initial=1.0) < 1e-4]


def test_reverse_in_single_precision():
    points = [np.asarray(r.at, np.float32)[()] for r in SINGLE]
    found = gradsmith.grad(total(SINGLE), argnums=numbers_of(SINGLE))(*points)
    assert all(np.asarray(g).dtype == np.float32 for g in found)
    loose = [Row(r.function, r.at, r.slope, rtol=2e-5) for r in SINGLE]
    problems = problems_of(loose, [np.where(np.abs(g) < 1e-6, 0.0, g) for g in found], [r.slope for r in SINGLE])
    assert not problems, "\n".join(problems)
