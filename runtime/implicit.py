"""Derivatives of what a solver finds, by the implicit function theorem: of x with residual(x, *args) = 0, or with
step(x, *args) = x.

    @gradsmith.implicit.custom_root(lambda x, a: x**3 - a)
    def cube_root(start, a):
        low, high = 0.0, start
        while high - low > 1e-13:
            middle = 0.5 * (low + high)
            if middle**3 < a:
                low = middle
            else:
                high = middle
        return 0.5 * (low + high)

    gradsmith.grad(cube_root, 1)(10.0, 2.0)

The tangent of x is t_x = -(d residual / d x)^-1 (d residual / d args) t_args.  Nothing of the solver is differentiated,
so it may be anything, and its memory is free when it has ended.  Both modes, of any order, under `vmap`; values that
the residual reads of the code around it are arguments like others.

Names and calling conventions are those of JAXopt.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import tree
from .custom_rules import custom_jvp
from .implicit_calls import solved_call
from .linear_solvers import bicgstab, cg, gmres
from .transforms import jacfwd, jit, jvp, vjp
from .tree_vectors import from_reals, in_reals, is_complex, ravel, unravel

if TYPE_CHECKING:
    from .transpiler.frontend.interpreter import Interpreter

__all__ = ["bicgstab", "cg", "custom_fixed_point", "custom_root", "fixed_point", "gmres", "newton", "root"]

Solver = Callable[..., Any]
Solve = Callable[[Callable[[Any], Any], Any], Any]


def custom_root(residual: Callable[..., Any], *, solve: Solve | None = None, has_aux: bool = False,
                has_start: bool = True) -> Callable[[Solver], Solver]:
    """A decorator for `solver(start, *args)`, which gives x (a number, an array, or a tree of them) with
    residual(x, *args) = 0; the residual has the structure and shapes of x.

    solve: how linear equations are solved: `solve(matvec, b)` gives y with matvec(y) = b, trees like x.  `cg`, `gmres`
    and `bicgstab` of this module never make the Jacobian of the residual.  None: it is made, and factorised.
    has_aux: the solver returns (x, aux); aux has the derivative zero.
    has_start: the solver's first argument is where it begins, on which x does not depend.
    """
    return functools.partial(_with_rule, residual, solve, has_aux, has_start)


def custom_fixed_point(step: Callable[..., Any], *, solve: Solve | None = None, has_aux: bool = False,
                       has_start: bool = True) -> Callable[[Solver], Solver]:
    """The same for a solver that gives x with step(x, *args) = x."""
    return custom_root(functools.partial(_change, step), solve=solve, has_aux=has_aux, has_start=has_start)


def root(residual: Callable[..., Any], start: Any, *args: Any, solver: Solver | None = None,
         solve: Solve | None = None) -> Any:
    """x with residual(x, *args) = 0, found from `start`, with the derivatives of `custom_root`.

    solver: `solver(start, *args)`; without it, Newton's method.
    """
    found = functools.partial(newton, residual) if solver is None else solver
    return custom_root(residual, solve=solve)(found)(start, *args)


def fixed_point(step: Callable[..., Any], start: Any, *args: Any, tol: float = 1e-12, max_steps: int = 1000,
                solve: Solve | None = None) -> Any:
    """x with step(x, *args) = x, by taking steps until none changes an element by more than `tol` (relative to the
    greatest, where that is over 1), at most `max_steps`, with the derivatives of `custom_fixed_point`."""
    return custom_fixed_point(step, solve=solve)(functools.partial(_iterate, step, tol, max_steps))(start, *args)


def newton(residual: Callable[..., Any], start: Any, *args: Any, tol: float = 1e-12, max_steps: int = 50) -> Any:
    """Newton's method with the whole Jacobian, until a step changes no element by more than `tol` (relative to the
    greatest, where that is over 1)."""
    x = start
    for _ in range(max_steps):
        y = _newton_step(residual)(x, args)
        x = tree.map(lambda a, b: a - b, x, y)
        if _size(y) <= tol * max(1.0, _size(x)):
            break
    return x


@functools.lru_cache(maxsize=256)
def _newton_step(residual: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled once for a residual, where Newton's method is run by Python."""
    return jit(lambda x, args: _dense(residual, x, args, residual(x, *args)))  # type: ignore[no-any-return]


def _iterate(step: Callable[..., Any], tol: float, max_steps: int, start: Any, *args: Any) -> Any:
    x = start
    for _ in range(max_steps):
        y = step(x, *args)
        change = tree.map(lambda a, b: a - b, y, x)
        x = y
        if _size(change) <= tol * max(1.0, _size(x)):
            break
    return x


def _change(step: Callable[..., Any], x: Any, *args: Any) -> Any:
    return tree.map(lambda after, before: after - before, step(x, *args), x)


# ---------------------------------------------------------------------------------------------------------------
# solvers with rules


def _with_rule(residual: Callable[..., Any], solve: Solve | None, has_aux: bool, has_start: bool,
               solver: Solver) -> Solver:
    @functools.wraps(solver, updated=())
    def solved(*args: Any, **kwargs: Any) -> Any:
        return solver(*args, **kwargs)

    solved.__gradsmith_native__ = functools.partial(  # type: ignore[attr-defined]
        _solved, solver, residual, solve, has_aux, has_start)
    return solved


def _with_rule_inside(it: Interpreter, residual: Any, solve: Any, has_aux: bool, has_start: bool, solver: Any) -> Any:
    """What the frontend does with a call of `_with_rule`."""
    from .transpiler.frontend.values import Native
    return Native(lambda it, *args, **kwargs: _solved(solver, residual, solve, has_aux, has_start, it, *args, **kwargs))


_with_rule.__gradsmith_native__ = _with_rule_inside  # type: ignore[attr-defined]


def _solved(solver: Any, residual: Any, solve: Any, has_aux: bool, has_start: bool, it: Interpreter, *args: Any,
            **kwargs: Any) -> Any:
    rule = functools.partial(_rule, solve, has_aux)
    return solved_call(it, solver, residual, rule, has_aux, has_start, args, kwargs)


def _rule(solve: Solve | None, has_aux: bool, residual: Callable[..., Any], solver: Solver, primals: Any,
          tangents: Any) -> tuple[Any, Any]:
    """The forward rule of `solver(params)`: (what it gives, its tangent)."""
    (params,), (moving,) = primals, tangents
    found = solver(params)
    x = found[0] if has_aux else found
    right = jvp(lambda p: residual(x, p), (params,), (moving,))[1]
    _check_like(x, right)
    if solve is None:
        y = _dense(residual, x, (params,), right)
    else:
        y = _solve_at(residual, solve, False, x, params, right)
    slope = tree.map(lambda part: -part, y)
    return found, (slope, None) if has_aux else slope


def _dense(residual: Callable[..., Any], x: Any, args: tuple[Any, ...], right: Any) -> Any:
    """y with (d residual / d x) y = right.  The derivative of a complex residual need not be complex linear: real and
    imaginary parts are unknowns of their own."""
    if is_complex(x):
        matrix = jacfwd(lambda v: in_reals(residual(from_reals(v, x), *args)))(in_reals(x))
        return from_reals(np.linalg.solve(matrix, in_reals(right)), x)
    if not isinstance(x, (tuple, list, dict)) and np.ndim(x) == 0:
        return right / jvp(lambda z: residual(z, *args), (x,), (np.ones_like(x),))[1]
    matrix = jacfwd(lambda v: ravel(residual(unravel(v, x), *args)))(ravel(x))
    return unravel(np.linalg.solve(matrix, ravel(right)), x)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1, 2))
def _solve_at(residual: Callable[..., Any], solve: Solve, transposed: bool, x: Any, params: Any, right: Any) -> Any:
    """y with J y = right, or J^T y = right, for J = d residual / d x."""
    return solve(lambda y: _product(residual, transposed, x, params, y), right)


def _product(residual: Callable[..., Any], transposed: bool, x: Any, params: Any, y: Any) -> Any:
    """J y, or J^T y."""
    if transposed:
        return vjp(lambda z: residual(z, params), x)[1](y)[0]
    return jvp(lambda z: residual(z, params), (x,), (y,))[1]


@_solve_at.defjvp
def _solve_at_jvp(residual: Callable[..., Any], solve: Solve, transposed: bool, primals: Any, tangents: Any) -> Any:
    x, params, right = primals
    y = _solve_at(residual, solve, transposed, x, params, right)
    moved = jvp(lambda z, p: _product(residual, transposed, z, p, y), (x, params), tangents[:2])[1]
    rest = tree.map(lambda a, b: a - b, tangents[2], moved)
    return y, _solve_at(residual, solve, transposed, x, params, rest)


def _solve_at_fwd(residual: Callable[..., Any], solve: Solve, transposed: bool, x: Any, params: Any,
                  right: Any) -> tuple[Any, Any]:
    y = _solve_at(residual, solve, transposed, x, params, right)
    return y, (x, params, y)


def _solve_at_bwd(residual: Callable[..., Any], solve: Solve, transposed: bool, saved: Any, ct: Any) -> Any:
    x, params, y = saved
    d_right = _solve_at(residual, solve, not transposed, x, params, ct)
    pullback = vjp(lambda z, p: _product(residual, transposed, z, p, y), x, params)[1]
    d_x, d_params = pullback(tree.map(lambda part: -part, d_right))
    return d_x, d_params, d_right


_solve_at.defvjp(_solve_at_fwd, _solve_at_bwd)


def _size(x: Any) -> Any:
    """The greatest absolute value of an element."""
    return np.max(np.abs(ravel(x)))


def _check_like(x: Any, found: Any) -> None:
    if [np.shape(leaf) for leaf in tree.leaves(x)] != [np.shape(leaf) for leaf in tree.leaves(found)]:
        raise ValueError("the residual must have the structure and the shapes of what the solver gives")
