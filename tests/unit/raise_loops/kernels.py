"""NumPy code as loops over elements, after PolyBench and textbooks: what is to be raised, and what is not.

`RAISED` are funcs in which no loop over elements is left, with the types of their arguments.
"""

from __future__ import annotations

import numpy as np

# --- products ------------------------------------------------------------------------------------------------------


def gemm(alpha, beta, C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += alpha * A[i, k] * B[k, j]
    return C


def matmul(A, B):
    C = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            C[i, j] = s
    return C


def two_products(alpha, beta, A, B, C, D):
    tmp = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(A.shape[0]):
        for j in range(C.shape[1]):
            D[i, j] *= beta
            for k in range(B.shape[1]):
                D[i, j] += tmp[i, k] * C[k, j]
    return D


def atax(A, x):
    m, n = A.shape
    y = np.zeros(n)
    tmp = np.zeros(m)
    for i in range(m):
        for j in range(n):
            tmp[i] = tmp[i] + A[i, j] * x[j]
        for j in range(n):
            y[j] = y[j] + A[i, j] * tmp[i]
    return y


def bicg(A, p, r):
    n, m = A.shape
    s = np.zeros(m)
    q = np.zeros(n)
    for i in range(n):
        for j in range(m):
            s[j] = s[j] + r[i] * A[i, j]
            q[i] = q[i] + A[i, j] * p[j]
    return s, q


def mvt(x1, x2, y1, y2, A):
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            x1[i] = x1[i] + A[i, j] * y1[j]
    for i in range(n):
        for j in range(n):
            x2[i] = x2[i] + A[j, i] * y2[j]
    return x1, x2


def gesummv(alpha, beta, A, B, x):
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(n):
        tmp = 0.0
        other = 0.0
        for j in range(n):
            tmp = A[i, j] * x[j] + tmp
            other = B[i, j] * x[j] + other
        y[i] = alpha * tmp + beta * other
    return y


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(n):
        for j in range(n):
            x[i] = x[i] + beta * A[j, i] * y[j]
    for i in range(n):
        x[i] = x[i] + z[i]
    for i in range(n):
        for j in range(n):
            w[i] = w[i] + alpha * A[i, j] * x[j]
    return w


def doitgen(A, C4):
    nr, nq, n = A.shape
    total = np.zeros(n)
    for r in range(nr):
        for q in range(nq):
            for p in range(n):
                total[p] = 0.0
                for s in range(n):
                    total[p] += A[r, q, s] * C4[s, p]
            for p in range(n):
                A[r, q, p] = total[p]
    return A


def syrk(alpha, beta, C, A):
    n, m = A.shape
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(m):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]
    return C


def syr2k(alpha, beta, C, A, B):
    n, m = A.shape
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(m):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]
    return C


def trmm(alpha, A, B):
    m, n = B.shape
    for i in range(m):
        for j in range(n):
            for k in range(i + 1, m):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]
    return B


# --- stencils ------------------------------------------------------------------------------------------------------


def jacobi_1d(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])
    return A


def jacobi_2d(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])
    return A


def heat_3d(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    B[i, j, k] = (0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                                  + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                                  + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1]) + A[i, j, k])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    A[i, j, k] = (0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                                  + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                                  + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1]) + B[i, j, k])
    return A


def fdtd_2d(ex, ey, hz, fict):
    nx, ny = ex.shape
    for t in range(fict.shape[0]):
        for j in range(ny):
            ey[0, j] = fict[t]
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return hz


def conv2d(x, w):
    h = x.shape[0] - w.shape[0] + 1
    v = x.shape[1] - w.shape[1] + 1
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            s = 0.0
            for di in range(w.shape[0]):
                for dj in range(w.shape[1]):
                    s += x[i + di, j + dj] * w[di, dj]
            y[i, j] = s
    return y


def conv2d_same(x, w):
    h, v = x.shape
    p, q = w.shape[0] // 2, w.shape[1] // 2
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            s = 0.0
            for di in range(w.shape[0]):
                for dj in range(w.shape[1]):
                    a = i + di - p
                    b = j + dj - q
                    if 0 <= a and a < h and 0 <= b and b < v:
                        s += x[a, b] * w[di, dj]
            y[i, j] = s
    return y


def conv2d_channels(x, w):
    channels, h, v = x.shape
    outs, _, kh, kw = w.shape
    y = np.zeros((outs, h - kh + 1, v - kw + 1))
    for o in range(outs):
        for i in range(h - kh + 1):
            for j in range(v - kw + 1):
                for c in range(channels):
                    for di in range(kh):
                        for dj in range(kw):
                            y[o, i, j] += x[c, i + di, j + dj] * w[o, c, di, dj]
    return y


def conv_strided(x, w):
    n = (x.shape[0] - w.shape[0]) // 2 + 1
    y = np.zeros(n)
    for i in range(n):
        for k in range(w.shape[0]):
            y[i] += x[2 * i + k] * w[k]
    return y


def average_pool(x):
    h, v = x.shape[0] // 2, x.shape[1] // 2
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            s = 0.0
            for a in range(2):
                for b in range(2):
                    s += x[2 * i + a, 2 * j + b]
            y[i, j] = s / 4.0
    return y


def max_pool(x):
    h, v = x.shape[0] // 2, x.shape[1] // 2
    y = np.zeros((h, v))
    for i in range(h):
        for j in range(v):
            m = -np.inf
            for a in range(2):
                for b in range(2):
                    m = np.maximum(m, x[2 * i + a, 2 * j + b])
            y[i, j] = m
    return y


# --- statistics ----------------------------------------------------------------------------------------------------


def softmax(x):
    m = x[0]
    for i in range(1, x.shape[0]):
        if x[i] > m:
            m = x[i]
    s = 0.0
    e = np.empty_like(x)
    for i in range(x.shape[0]):
        e[i] = np.exp(x[i] - m)
        s += e[i]
    for i in range(x.shape[0]):
        e[i] /= s
    return e


def softmax_rows(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        m = -np.inf
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j] - m)
            s += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / s
    return y


def mean_and_variance(x):
    n = x.shape[0]
    total = 0.0
    for i in range(n):
        total += x[i]
    mean = total / n
    squares = 0.0
    for i in range(n):
        squares += (x[i] - mean) ** 2
    return mean, squares / n


def layer_norm(x, g, b):
    y = np.empty_like(x)
    n = x.shape[1]
    for i in range(x.shape[0]):
        m = 0.0
        for j in range(n):
            m += x[i, j]
        m /= n
        v = 0.0
        for j in range(n):
            v += (x[i, j] - m) * (x[i, j] - m)
        r = 1.0 / np.sqrt(v / n + 1e-5)
        for j in range(n):
            y[i, j] = (x[i, j] - m) * r * g[j] + b[j]
    return y


def covariance(data):
    n, m = data.shape
    mean = np.zeros(m)
    for j in range(m):
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    cov = np.zeros((m, m))
    for i in range(m):
        for j in range(i, m):
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]
    return cov


def correlation(data):
    n, m = data.shape
    mean = np.zeros(m)
    dev = np.zeros(m)
    for j in range(m):
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for j in range(m):
        for i in range(n):
            dev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        dev[j] = np.sqrt(dev[j] / n)
        if dev[j] <= 0.1:
            dev[j] = 1.0
    for i in range(n):
        for j in range(m):
            data[i, j] = (data[i, j] - mean[j]) / (np.sqrt(float(n)) * dev[j])
    corr = np.zeros((m, m))
    for i in range(m):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
    return corr


def distances(x, y):
    d = np.zeros((x.shape[0], y.shape[0]))
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                t = x[i, k] - y[j, k]
                s += t * t
            d[i, j] = np.sqrt(s)
    return d


def floyd_warshall(path):
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = np.minimum(path[i, j], path[i, k] + path[k, j])
    return path


# --- elements, scans, places ---------------------------------------------------------------------------------------


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


N, M = "f64[5]", "f64[5,5]"
RAISED = {
    gemm: "f64, f64, f64[4,6], f64[4,5], f64[5,6]", matmul: "f64[4,5], f64[5,6]",
    two_products: "f64, f64, f64[4,5], f64[5,3], f64[3,6], f64[4,6]", atax: "f64[4,5], f64[5]",
    bicg: "f64[4,5], f64[5], f64[4]", mvt: f"{N}, {N}, {N}, {N}, {M}", gesummv: f"f64, f64, {M}, {M}, {N}",
    gemver: f"f64, f64, {M}, {N}, {N}, {N}, {N}, {N}, {N}, {N}, {N}", doitgen: "f64[3,4,5], f64[5,5]",
    syrk: "f64, f64, f64[5,5], f64[5,3]", syr2k: "f64, f64, f64[5,5], f64[5,3], f64[5,3]",
    jacobi_1d: "i64, f64[7], f64[7]", jacobi_2d: "i64, f64[6,6], f64[6,6]", heat_3d: "i64, f64[5,5,5], f64[5,5,5]",
    fdtd_2d: "f64[4,5], f64[4,5], f64[4,5], f64[3]", conv2d: "f64[7,8], f64[3,2]", conv2d_same: "f64[6,5], f64[3,3]",
    conv2d_channels: "f64[2,5,6], f64[3,2,3,3]", conv_strided: "f64[11], f64[3]", average_pool: "f64[6,8]",
    max_pool: "f64[6,8]", softmax: "f64[7]", softmax_rows: "f64[3,5]", mean_and_variance: "f64[9]",
    layer_norm: "f64[3,5], f64[5], f64[5]", covariance: "f64[6,4]", correlation: "f64[6,4]",
    distances: "f64[4,3], f64[5,3]", saxpy: f"f64, {N}, {N}", running_sum: N,
    relu_with_branch: "f64[9]", roots_of_positive: "f64[9]", differences: "f64[6]", reversed_copy: "f64[6]",
    every_third: "f64[11]", histogram: "i64[9], f64[9]", gathered: "f64[5], i64[7]", best_of: "f64[9]",
    count_below: "f64[9], f64", trmm: "f64, f64[5,5], f64[5,3]", lower_triangle: M, trace_of: M, floyd_warshall: M, rows_times: "f64[4,5], f64[5]", pairs_energy: "f64[6]",
    shifted_in_place: "f64[6]",
}


# --- what needs the order of its trips -----------------------------------------------------------------------------


def gauss_seidel(x):
    for i in range(1, x.shape[0] - 1):
        x[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0
    return x


def recurrence(x, a):
    s = 0.0
    for i in range(x.shape[0]):
        s = a * s * s + x[i]
    return s


def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])
    return A


def swaps(x, places):
    for i in range(places.shape[0]):
        x[i] = x[places[i]]
    return x


def self_scatter(x, places):
    for i in range(places.shape[0]):
        x[places[i]] = x[i] + 1.0
    return x


def fills_up(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1]
    return x


def until_negative(x):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            break
        s += x[i]
    return s


KEPT = {
    gauss_seidel: "f64[7]", recurrence: "f64[5], f64", cholesky: M, swaps: "f64[6], i64[6]",
    self_scatter: "f64[6], i64[6]", fills_up: "f64[5]", until_negative: "f64[6]",
    polynomial: "f64[5], f64[4]",
}

WITHOUT_GRADIENT = {count_below}
SLOW_BACKWARDS = {syrk, syr2k, trmm, fdtd_2d, conv2d_same, max_pool, floyd_warshall}
