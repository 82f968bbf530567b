"""NumPy code as loops over elements, after PolyBench and textbooks: what is to be raised, and what is not.

`RAISED` are funcs in which no loop over elements is left, with the types of their arguments.
"""

from __future__ import annotations

from unit.raise_loops.elements import (
    alternating,
    best_of,
    count_below,
    counted_by_hand,
    differences,
    every_third,
    extremes_so_far,
    fills_up,
    gathered,
    histogram,
    last_least,
    lower_triangle,
    pairs_energy,
    place_of_least,
    places_in_rows,
    polynomial,
    range_of,
    relu_with_branch,
    reversed_copy,
    roots_of_positive,
    rows_times,
    running_sum,
    running_sums_in_place,
    saxpy,
    shifted_in_place,
    summed_area,
    switched,
    trace_of,
)
from unit.raise_loops.linear_algebra import (
    atax,
    banded,
    bicg,
    doitgen,
    gemm,
    gemver,
    gesummv,
    matmul,
    mvt,
    syr2k,
    syrk,
    trmm,
    two_products,
)
from unit.raise_loops.ordered import cholesky, gauss_seidel, recurrence, self_scatter, smoothed, swaps, until_negative
from unit.raise_loops.statistics import (
    correlation,
    covariance,
    distances,
    floyd_warshall,
    layer_norm,
    mean_and_variance,
    softmax,
    softmax_rows,
)
from unit.raise_loops.stencils import (
    average_pool,
    conv2d,
    conv2d_channels,
    conv2d_same,
    conv_strided,
    fdtd_2d,
    heat_3d,
    jacobi_1d,
    jacobi_2d,
    max_pool,
)

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
    last_least: "f64[9]", alternating: "f64[6]", banded: "f64[6,6], f64[6]",
    relu_with_branch: "f64[9]", roots_of_positive: "f64[9]", differences: "f64[6]", reversed_copy: "f64[6]",
    every_third: "f64[11]", histogram: "i64[9], f64[9]", gathered: "f64[5], i64[7]", best_of: "f64[9]",
    count_below: "f64[9], f64", trmm: "f64, f64[5,5], f64[5,3]", lower_triangle: M, trace_of: M,
    floyd_warshall: M, rows_times: "f64[4,5], f64[5]", pairs_energy: "f64[6]",
    shifted_in_place: "f64[6]", fills_up: "f64[5]", running_sums_in_place: "f64[9]", extremes_so_far: "f64[9]",
    summed_area: "f64[3,4]", place_of_least: "f64[9]", places_in_rows: "f64[3,5]", switched: "f64[9]",
    range_of: "f64[9]", counted_by_hand: "f64[4,5], f64[5]",
}

KEPT = {
    gauss_seidel: "f64[7]", recurrence: "f64[5], f64", cholesky: M, swaps: "f64[6], i64[6]",
    self_scatter: "f64[6], i64[6]", smoothed: "f64[5]", until_negative: "f64[6]",
    polynomial: "f64[5], f64[4]",
}

WITHOUT_GRADIENT = {count_below}
SLOW_BACKWARDS = {syrk, syr2k, trmm, fdtd_2d, conv2d_same, max_pool, floyd_warshall, fills_up, running_sums_in_place,
                  summed_area, extremes_so_far, place_of_least, counted_by_hand}
