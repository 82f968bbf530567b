"""The transformations under the names that JAX made standard: options in, callable out.

Each returns a `Function` (or, for `vjp`, `jvp`, `linearize` and `hvp`, results at once).  `argnums` is an int, or a
tuple or list of ints: one derivative, or a tuple of them.  Arguments and results may be trees: tuples, lists, dicts,
named tuples, dataclasses.  A derivative has the containers, shapes and dtypes of the argument that it belongs to.

Every one also works inside transpiled code, on functions that close over run-time values, to any depth.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from . import from_numba  # noqa: F401  (tells Numba what a Function is)
from .arguments import NOTHING_STATIC, Static
from .compile import prepare
from .function import Function, is_itself_alone
from .target import HERE, Target, parse_target
from .transpiler.errors import error
from .transpiler.ops.spelling import as_value, is_value, spelled

Fun = Callable[..., Any]


@functools.lru_cache(maxsize=1024)
def _shared(kind: str, fun: Fun, options: _Options, static: Static, target: Target) -> Function:
    return Function(kind, fun, options.args, options.kwargs, static=static, target=target)


class _Options:
    """Options of a transform, equal to those that say the same: dicts among them, too; 1, 1.0 and True differ."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = tuple(map(_frozen, args)), {k: _frozen(v) for k, v in kwargs.items()}
        self.key = (_hashable((self.args, tuple(self.kwargs.items()))), repr((self.args, self.kwargs)))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and self.key == other.key


def function(kind: str, fun: Fun, *args: Any, source: str | None = None, static: Static = NOTHING_STATIC,
             target: Target | None = None, **kwargs: Any) -> Function:
    """The Function of a kind; the same transform of the same function is one object, with its compilations.

    target: where it runs; without, where `fun` does.
    """
    prepare()
    if not callable(fun):
        raise error("E104", f"gradsmith.{kind} takes a function, not {_text(fun)}", None, kind=TypeError)
    if target is None:
        target = fun.target if isinstance(fun, Function) else HERE
    given = {k: v for k, v in kwargs.items() if v is not None and v is not False}
    options = _Options(args, given)
    if source is None and is_itself_alone(fun) and _is_hashable(options):
        return _shared(kind, fun, options, static, target)
    return Function(kind, fun, args, given, source=source, static=static, target=target)


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _frozen(x: Any) -> Any:
    """Options that the caller cannot change any more."""
    if type(x) is dict:
        return {k: _frozen(v) for k, v in x.items()}
    return tuple(map(_frozen, x)) if type(x) in (tuple, list) else x


def _hashable(x: Any) -> Any:
    if type(x) is dict:
        return (dict, tuple((k, _hashable(v)) for k, v in x.items()))
    return tuple(map(_hashable, x)) if type(x) is tuple else x


def _text(x: Any) -> str:
    return f"a {type(x).__name__}"


def _marked(kind: str) -> Callable[[Fun], Fun]:
    """Mark a transform, so that the frontend knows it when it meets it in the user's code."""

    def mark(transform: Fun) -> Fun:
        transform.__gradsmith_transform__ = kind  # type: ignore[attr-defined]
        return transform

    return mark


@_marked("jit")
def jit(fun: Fun | None = None, *, static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None, source: str | None = None, target: str | None = None,
        checked: bool = True, cast: str | None = None, max_trips: int | None = None, donate_argnums: Any = None,
        donate_argnames: Any = None, keep_unused: bool = False, inline: bool = False) -> Any:
    """Compile a function.  A function with typed parameters is compiled at once, else at its first call.

    static_argnums, static_argnames: arguments known while compiling; each new value compiles anew.  What is not a
    number or an array always is, and an int is where a shape or an unrolled loop needs it, so few functions need this.
    source: the function's text, where Python has not kept it.  Usable as `@jit` and `@jit(...)`.
    target: "cpu"; "xla" or "tpu", for which XLA compiles (docs/tpu.md).  Without it, where `fun` runs if it was
    compiled itself; what is made of the function (`grad(jit(f, target="xla"))`) runs there, too.
    checked: what the function raises is raised; False leaves that out on those targets.  cast: "f32", "f16" or "bf16",
    which all floats become there.  max_trips: how often a `while` loop runs at most there, where its steps are saved
    for a derivative and nothing else tells; should it run more often, results are NaN.
    donate_argnums, donate_argnames, keep_unused, inline: taken for JAX's sake, without effect.  Arguments stay the
    caller's own.
    """
    if fun is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames, source=source,
                                 target=target, checked=checked, cast=cast, max_trips=max_trips)
    is_open = target is None and cast is None and max_trips is None
    where = None if is_open else parse_target(target or "cpu", checked, cast, max_trips)
    made = function("jit", fun, source=source, static=_static(fun, static_argnums, static_argnames), target=where)
    if not made.target.is_xla:
        from .on_import import compile_if_typed
        compile_if_typed(made, fun)
    return made


def _static(fun: Fun, argnums: int | Sequence[int] | None, argnames: str | Sequence[str] | None) -> Static:
    """Both ways to name static arguments, each completed by the other."""
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if not numbers and not names:
        return NOTHING_STATIC
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return Static(numbers, names)
    known = [p.name for p in parameters]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return Static(numbers, (*names, *(known[n] for n in numbers if -len(known) <= n < len(known))))
    for number in numbers:
        if not -len(known) <= number < len(known):
            raise error("E402", f"static_argnums names argument {number} of a function of {len(known)}", None,
                        kind=ValueError)
    for name in names:
        if name not in known:
            raise error("E402", f"static_argnames names {name!r}, which is none of {', '.join(known)}", None,
                        kind=ValueError)
    return Static(tuple(n % len(known) for n in numbers), (*names, *(known[n] for n in numbers)))


@_marked("grad")
def grad(fun: Fun | None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False, *, nan_check: bool = False, source: str | None = None) -> Any:
    """The gradient of a function that returns one number.

    has_aux: `fun` returns (value, aux), the result is (gradient, aux).  holomorphic: a complex function of a complex
    argument; the result is its complex derivative.  allow_int: ints and bools have zeros of JAX's dtype `float0`,
    arrays without bytes, in the place of a derivative; inside transpiled functions, False.  nan_check: a NaN in the
    result raises FloatingPointError naming the line that first made it.  TypeError for arguments that are ints, bools
    or strings.
    """
    if fun is None:
        return functools.partial(grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int,
                                 nan_check=nan_check, source=source)
    return _gradient("grad", fun, argnums, has_aux, holomorphic, allow_int, nan_check, source)


@_marked("value_and_grad")
def value_and_grad(fun: Fun | None = None, argnums: int | Sequence[int] = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False, *, nan_check: bool = False,
                   source: str | None = None) -> Any:
    """(value, gradient), or ((value, aux), gradient) with has_aux; see `grad`."""
    if fun is None:
        return functools.partial(value_and_grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic,
                                 allow_int=allow_int, nan_check=nan_check, source=source)
    return _gradient("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, nan_check, source)


def _gradient(kind: str, fun: Fun, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool, nan_check: bool,
              source: str | None) -> Function:
    if nan_check:
        from .nan_check import nan_checked
        return nan_checked(kind, fun, argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
    if allow_int:
        from .integers import with_integers
        return with_integers(kind, fun, argnums, has_aux=has_aux, holomorphic=holomorphic, source=source)
    return function(kind, fun, argnums, has_aux=has_aux, holomorphic=holomorphic, source=source)


@_marked("jvp")
def jvp(fun: Fun, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """(value, tangent) of `fun(*primals)` along `tangents`, which has the structure of `primals`."""
    return function("jvp", fun, has_aux=has_aux)(_tuple(primals, "primals"), _tuple(tangents, "tangents"))


def _tuple(x: Any, what: str) -> tuple[Any, ...]:
    if isinstance(x, (tuple, list)):
        return tuple(x)
    raise error("E406", f"{what} must be a tuple or list, one entry for each argument, not {_text(x)}", None,
                help="write (x,) for a single argument", kind=TypeError)


@_marked("vjp")
def vjp(fun: Fun, *primals: Any, has_aux: bool = False) -> Any:
    """(value, pullback), or (value, pullback, aux).  `pullback(ct)` gives a tuple with the cotangent of each primal.

    The value is computed once; the pullback reads what was kept of it, and may be called any number of times.
    """
    from .parted import Pullback, parted
    value, residuals, later = parted("vjp", fun, has_aux)(*primals)
    pullback = Pullback(later, residuals, value[0] if has_aux else value)
    return (value[0], pullback, value[1]) if has_aux else (value, pullback)


@_marked("linearize")
def linearize(fun: Fun, *primals: Any, has_aux: bool = False) -> Any:
    """(value, linear map): the map takes tangents, one for each primal, to the result's tangent.

    What does not depend on tangents is computed once.  has_aux: `fun` returns (value, aux); the result is (value,
    linear map, aux), and the map gives the value's tangent.
    """
    from .parted import Pushforward, parted
    value, residuals, later = parted("linearize", fun, has_aux)(*primals)
    pushforward = Pushforward(later, residuals, primals)
    return (value[0], pushforward, value[1]) if has_aux else (value, pushforward)


@_marked("hvp")
def hvp(fun: Fun, primals: Any, tangents: Any) -> Any:
    """Hessian times vector, forward over reverse, without the Hessian.

    `primals` is one argument, or a tuple or list of them; the result has its structure.
    """
    return function("hvp", fun)(primals, tangents)


@_marked("vmap")
def vmap(fun: Fun | None = None, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
         axis_size: int | None = None, spmd_axis_name: Any = None) -> Any:
    """Map over a batch axis of the arguments.  in_axes: an int, None (not batched), or one for each positional argument
    (which may be trees of them); keyword arguments have their batch in front.  out_axes: where the batch axis of the
    results goes.  axis_size: the size of the batch, where no argument tells.

    axis_name, spmd_axis_name: taken for JAX's sake, without effect.
    """
    if fun is None:
        return functools.partial(vmap, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size)
    return function("vmap", fun, in_axes, out_axes, axis_size=axis_size)


@_marked("jacfwd")
def jacfwd(fun: Fun, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, *,
           chunk: int | None = None) -> Any:
    """The Jacobian, column by column in forward mode; result axes come first.

    Trees give trees: the containers of the result, with those of the argument in the place of each array; a tuple for
    several argnums.  has_aux: `fun` returns (value, aux), the result is (Jacobian, aux).  holomorphic: a complex
    function of complex arguments.  chunk: how many columns are computed at a time, an int; all without it, which takes
    memory for the tangents of every intermediate array in all of them.
    TypeError for arguments that are ints, bools or strings, and for complex ones unless holomorphic.
    """
    return function("jacfwd", fun, argnums, has_aux=has_aux, holomorphic=holomorphic, chunk=chunk)


@_marked("jacrev")
def jacrev(fun: Fun, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
           allow_int: bool = False, *, chunk: int | None = None) -> Any:
    """The Jacobian, row by row in reverse mode; see `jacfwd`.

    allow_int: as of `grad`.  chunk: how many rows at a time.  TypeError for complex results unless holomorphic.
    """
    if allow_int:
        from .integers import with_integers
        return with_integers("jacrev", fun, argnums, has_aux=has_aux, holomorphic=holomorphic, chunk=chunk)
    return function("jacrev", fun, argnums, has_aux=has_aux, holomorphic=holomorphic, chunk=chunk)


@_marked("jacobian")
def jacobian(fun: Fun, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, *,
             chunk: int | None = None) -> Any:
    """The Jacobian in the mode that takes fewer passes: `jacrev` where the result has fewer numbers than the arguments,
    else `jacfwd`, whose options it takes."""
    return function("jacobian", fun, argnums, has_aux=has_aux, holomorphic=holomorphic, chunk=chunk)


@_marked("hessian")
def hessian(fun: Fun, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, *,
            chunk: int | None = None) -> Any:
    """Second derivatives, forward over reverse: the matrix of a function that returns one number; of others, the
    matrices of all their numbers, whose axes come first.

    chunk: how many columns at a time.  See `jacfwd` for the rest.
    """
    return function("hessian", fun, argnums, has_aux=has_aux, holomorphic=holomorphic, chunk=chunk)


@_marked("functional")
def functional(fun: Fun | None = None, *, source: str | None = None) -> Any:
    """`fun` without effects: (result, written) instead of the result alone.

    `written` is a dict with an entry for each argument in which `fun` wrote, under the name of its parameter: what the
    argument is after the call, with its containers.  Arguments after the named ones are a tuple under the name of
    `*args`.  The caller's arrays stay as they are, and each is an array of its own, also where one is passed twice.
    So a function that returns nothing has derivatives: `jacrev(functional(step))(x)` is (None, {"x": Jacobian}).
    TranspileError (E124) for writes to arrays that are no arguments.
    """
    if fun is None:
        return functools.partial(functional, source=source)
    return function("functional", fun, source=source)


def stop_gradient(x: Any) -> Any:
    """x itself, with derivative zero.  Trees are taken leaf by leaf."""
    return x


@spelled(stop_gradient)
def _stop(x: Any) -> Any:
    from .transpiler import ops
    if isinstance(x, (tuple, list)):
        return type(x)(map(_stop, x))
    if isinstance(x, dict):
        return {k: _stop(v) for k, v in x.items()}
    value = x if is_value(x) else as_value(x)
    return ops.stop_gradient(value) if value.type.is_inexact else x
