"""A table whose cells wait for each other, as a text with holes."""

from __future__ import annotations

CELLS = """
func f(a: f64[n,m], b: f64[n], lo: i64, h: i64, w: i64) -> (f64[n,m]):
  a4: f64[n,m] = for i: i64 in {rows} carry (a1: f64[n,m] = a):
    {before}
    i0: i64 = subtract(i, 1)
    i2: i64 = add(i, 1)
    a3: f64[n,m] = for j: i64 in {cells} carry (a2: f64[n,m] = a1):
      j0: i64 = subtract(j, 1)
      j1: i64 = subtract(j, 2)
      j2: i64 = add(j, 1)
      j3: i64 = add(j, 2)
      u: f64 = load(a2, {above}) {{index=[at,at]}}
      v: f64 = load(a2, {beside}) {{index=[at,at]}}
      s: f64 = multiply(u, {factor})
      t: f64 = add(s, v)
      e: f64 = {dear}(t)
      g: f64 = {again}(e)
      {write}
      yield a5
    yield a3
  return a4
"""
PLAIN = {"rows": "1 .. h step 1", "cells": "lo .. w step 1", "before": "b1: f64 = load(b, i) {index=[at]}",
         "above": "i0, j", "beside": "i, j0", "factor": "b1", "dear": "tanh", "again": "negative",
         "write": "a5: f64[n,m] = store(a2, e, i, j) {index=[at,at]}"}


def table(**changes: str) -> str:
    """The text of a func `f(a, b, lo, h, w)`."""
    return CELLS.format(**{**PLAIN, **changes})
