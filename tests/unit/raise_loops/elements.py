"""Element by element: scans, branches, scatters and places, as loops."""

from __future__ import annotations

import numpy as np


def saxpy(a, x, y):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]
    return y


def running_sum(x):
    y = np.empty_like(x)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        y[i] = s
    return y


def relu_with_branch(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            y[i] = x[i]
        else:
            y[i] = 0.1 * x[i]
    return y


def roots_of_positive(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            s += np.sqrt(x[i])
    return s


def differences(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = x[i] - x[i - 1]
        else:
            y[i] = x[i]
    return y


def reversed_copy(x):
    n = x.shape[0]
    y = np.empty_like(x)
    for i in range(n - 1, -1, -1):
        y[n - 1 - i] = 2.0 * x[i]
    return y


def every_third(x):
    for i in range(1, x.shape[0], 3):
        x[i] = x[i] + x[i - 1]
    return x


def histogram(places, weights):
    h = np.zeros(5)
    for i in range(places.shape[0]):
        h[places[i]] += weights[i]
    return h


def gathered(x, places):
    y = np.zeros(places.shape[0])
    for i in range(places.shape[0]):
        y[i] = 2.0 * x[places[i]]
    return y


def best_of(x):
    best = -1e300
    at = 0
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            at = i
    return best, at


def count_below(x, limit):
    n = 0
    for i in range(x.shape[0]):
        if x[i] < limit:
            n += 1
    return n


def lower_triangle(A):
    L = np.zeros_like(A)
    for i in range(A.shape[0]):
        for j in range(i + 1):
            L[i, j] = A[i, j]
    return L


def trace_of(A):
    s = 0.0
    for i in range(A.shape[0]):
        s += A[i, i]
    return s


def rows_times(A, x):
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        y[i] = A[i, :] @ x
    return y


def pairs_energy(x):
    e = 0.0
    n = x.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            e += 1.0 / np.sqrt((x[i] - x[j]) ** 2 + 0.1)
    return e


def shifted_in_place(x):
    for i in range(x.shape[0] - 1):
        x[i] = 0.5 * x[i + 1]
    return x


def polynomial(x, c):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        p = 0.0
        for k in range(c.shape[0] - 1, -1, -1):
            p = p * x[i] + c[k]
        y[i] = p
    return y


def last_least(x):
    least, at = x[0], 0
    for i in range(1, len(x)):
        if x[i] <= least:
            least, at = x[i], i
    return least * at


def alternating(x):
    total, sign = 0.0, 1.0
    for i in range(len(x)):
        total += sign * x[i]
        sign = -sign
    return total * sign


def fills_up(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1]
    return x


def running_sums_in_place(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    return x


def extremes_so_far(x):
    high, low = np.empty_like(x), x.copy()
    high[0] = x[0]
    for i in range(1, len(x)):
        high[i] = max(high[i - 1], x[i])
    for i in range(len(x) - 2, -1, -1):
        low[i] = min(x[i], low[i + 1])
    return high - low


def summed_area(x):
    n, m = x.shape
    s = np.zeros((n + 1, m + 1))
    for i in range(n):
        for j in range(m):
            s[i + 1, j + 1] = x[i, j] + s[i, j + 1] + s[i + 1, j] - s[i, j]
    return s


def place_of_least(x):
    k, found = 0, 0.0
    for i in range(1, len(x)):
        if x[i] < x[k]:
            k = i
        found += x[k] * k
    return x[k], k, found


def places_in_rows(A):
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        k = 2
        for j in range(A.shape[1]):
            if A[i, k] <= A[i, j]:
                k = j
        y[i] = A[i, k] * k
    return y


def switched(x):
    on, some, total = True, False, 0.0
    for i in range(len(x)):
        if on:
            total += x[i]
        if x[i] > 0.8:
            on = not on
        some = some or x[i] > 1.2
    return total, on, some


def range_of(x):
    low = high = x[0]
    for i in range(1, len(x)):
        if x[i] < low:
            low = x[i]
        elif x[i] > high:
            high = x[i]
    return high - low


def counted_by_hand(A, x):
    y, i = np.zeros(A.shape[0]), 0
    while i < A.shape[0]:
        j = A.shape[1] - 1
        while j >= 0:
            y[i] += A[i, j] * x[j] * (j + 1)
            j -= 2
        y[i] -= j
        i += 1
    return y * i
