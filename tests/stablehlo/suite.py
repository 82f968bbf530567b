"""The programs that are written as StableHLO and run by XLA: those of the golden files and those about control flow,
each with derivatives of first and second order and as a batch.

docs/stablehlo.md says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gradsmith

KINDS = ("value", "gradient", "second", "batch")


MAX_TRIPS = {"kepler": 5000, "anomaly": 50}


@dataclass(frozen=True)
class Program:
    """fun(*args); argnum: the argument by which it is differentiated.  max_trips: of a `while` that nothing bounds."""

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    argnum: int = 0
    max_trips: int | None = None

    def kinds(self) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
        """What is written of it: the function and its arguments, for each kind."""
        fun, k = self.fun, self.argnum

        def scalar(*args: Any) -> Any:
            return total(fun(*args))

        def slope(*args: Any) -> Any:
            return total(gradsmith.grad(scalar, argnums=k)(*args))

        lanes = tuple(0 if n == k else None for n in range(len(self.args)))
        batched = tuple(stacked(a) if n == k else a for n, a in enumerate(self.args))
        return {"value": (fun, self.args), "gradient": (gradsmith.value_and_grad(scalar, argnums=k), self.args),
                "second": (gradsmith.grad(slope, argnums=k), self.args),
                "batch": (gradsmith.vmap(gradsmith.grad(scalar, argnums=k), in_axes=lanes), batched)}


def total(tree: Any) -> Any:
    """A number that depends on every element."""
    if isinstance(tree, dict):
        return total(list(tree.values()))
    if isinstance(tree, (tuple, list)):
        found = 0.0
        for part in tree:
            found = found + total(part)
        return found
    return np.sum(np.sin(np.real(tree) * 0.7))


def stacked(tree: Any) -> Any:
    """Three lanes that differ."""
    if isinstance(tree, dict):
        return {name: stacked(part) for name, part in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(map(stacked, tree))
    x = np.asarray(tree)
    return np.stack([x, x * 0.5, x + 0.25]).astype(x.dtype)


def all_programs() -> list[Program]:
    return [*golden_programs(), *control_flow()]


def golden_programs() -> Iterator[Program]:
    from golden.golden import HERE, _Sampler, goldens_of

    from gradsmith.cli.chain import apply_chain
    from gradsmith.cli.parameters import arguments_for, names_for
    for path in sorted((Path(HERE) / "cases").glob("*.py")):
        golden = next(iter(goldens_of(path)))
        request = golden.request
        names = names_for(request.function, len(request.specs))
        sampler, arguments = _Sampler(), arguments_for(request.specs, names, 0)
        args = tuple(sampler.tree(a) for a in arguments)
        argnum = next(k for k, a in enumerate(args) if not isinstance(a, (int, np.integer)))
        is_batch = golden.file.startswith(f"{path.stem}.vmap")      # its signature is a batch's, not the function's
        fun = apply_chain(request.function, request.chain, arguments, names).callable if is_batch else request.function
        yield Program(path.stem, fun, args, argnum, MAX_TRIPS.get(path.stem))


# --- control flow: early exits, writes, tapes ---------------------------------------------------------------------


def control_flow() -> Iterator[Program]:
    x = np.array([0.4, -0.3, 0.9])
    for fun in (leaves_early, until_small, factorised, branches_of_branches, halved, first_above, nested_breaks):
        yield Program(fun.__name__, fun, (x,), max_trips=MAX_TRIPS.get(fun.__name__))
    yield Program("scattered", scattered, (x, np.array([2, 0, 2, -1])))


def leaves_early(x):
    sum_ = 0.0
    for i in range(7):
        if sum_ > 1.5:
            break
        if x[i % 3] < 0:
            continue
        sum_ = sum_ + x[i % 3] * sum_ + 0.5
    else:
        sum_ = sum_ * 2
    return sum_


def until_small(x):
    y, count = x, 0
    while np.sum(y * y) > 0.1 and count < 9:
        y = y * 0.6
        count += 1
    return y, count * 1.0


def factorised(x):
    a = np.outer(x, x) + np.eye(3) * 3
    for k in range(3):
        a[k, k] = np.sqrt(a[k, k])
        for i in range(k + 1, 3):
            a[i, k] /= a[k, k]
            for j in range(k + 1, i + 1):
                a[i, j] -= a[i, k] * a[j, k]
    return np.tril(a)


def branches_of_branches(x):
    y = x.copy()
    for i in range(3):
        if x[i] > 0:
            y[i] = np.sqrt(x[i])
            if x[i] > 0.5:
                y[i - 1] += y[i] * x[i]
        elif x[i] < -1:
            y[i] = np.log(-x[i])
    return y


def halved(x):
    if len(x) < 2:
        return x[0] * x[0]
    middle = len(x) // 2
    return halved(x[:middle]) * np.sin(halved(x[middle:]))


def first_above(x):
    for i in range(len(x)):
        for j in range(i, len(x)):
            if x[i] * x[j] > 0.2:
                return x[i] + 3.0 * x[j]
    return -1.0


def nested_breaks(x):
    total, k = 0.0, 0
    while True:
        k += 1
        for v in x:
            if v * k > 2.0:
                break
            total += v * v
        else:
            total *= 0.5
        if k > 4 or total > 3.0:
            return total * k


def scattered(x, places):
    y = np.zeros(4)
    for i in range(len(places)):
        y[places[i]] += np.exp(x[i % 3])
        y[i] *= x[places[i] % 3]
    return y
