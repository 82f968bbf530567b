"""`custom_vjp` and `custom_jvp`: functions whose derivative the user gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .transforms import Fun, _marked
from .transpiler.errors import RuleError, error
from .transpiler.frontend.ruled_calls import rules_given


class Ruled:
    """What `custom_vjp` and `custom_jvp` give: the function, which is called as it is, and takes a rule.

    A function may have both rules: then the forward mode uses the one of `defjvp`, the reverse mode that of `defvjp`.
    """

    def __init__(self, kind: str, fun: Fun, nondiff_argnums: Sequence[int | str]) -> None:
        self.fun, self._kind, self.nondiff_argnums = fun, kind, tuple(nondiff_argnums)
        self.rules: dict[str, Any] = {}
        functools.update_wrapper(self, fun, updated=())

    @property
    def __gradsmith_transformed__(self) -> tuple[str, Fun, tuple[Any, ...], dict[str, Any]]:
        return self._kind, self.fun, (self.nondiff_argnums,), self.rules

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """In a class it is a method; `self` is the first argument of the rules, too."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<gradsmith.{self._kind} function {getattr(self.fun, '__qualname__', self.fun)!s}>"

    def defvjp(self, *functions: Fun, **named: Any) -> None:
        """Give the rule of the reverse mode: `fwd` takes the function's arguments and returns (result, residuals);
        `bwd` takes the arguments of nondiff_argnums, the residuals and the result's cotangent, and returns a tuple with
        the cotangent of each other argument, None for zero."""
        self._define("defvjp", functions, named)

    def defjvp(self, *functions: Fun, **named: Any) -> Fun | None:
        """Give the rule of the forward mode: it takes the arguments of nondiff_argnums, a tuple of the other arguments
        and a tuple of their tangents, and returns (result, tangent).  A decorator, too."""
        self._define("defjvp", functions, named)
        return functions[0] if functions else None

    def defjvps(self, *functions: Fun | None) -> None:
        """Give a rule for each argument, None for zero: from (tangent, result, *arguments) to what it adds to the
        result's tangent."""
        self._define("defjvps", functions, {})

    def _define(self, name: str, functions: Sequence[Any], named: dict[str, Any]) -> None:
        try:
            found = rules_given(self._kind, name, functions, named, self.nondiff_argnums)
        except RuleError as problem:
            raise error(problem.code or "E411", str(problem), None, help=problem.help, kind=problem.kind) from None
        self.rules = {**self.rules, **found}


def _ruled(kind: str, fun: Fun | None, nondiff_argnums: Sequence[int | str], nondiff_argnames: Sequence[str]) -> Any:
    numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, (int, str)) else tuple(nondiff_argnums)
    names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
    if fun is None:
        return functools.partial(_ruled, kind, nondiff_argnums=numbers, nondiff_argnames=names)
    if not callable(fun):
        raise error("E104", f"gradsmith.{kind} takes a function, not a {type(fun).__name__}", None, kind=TypeError)
    return Ruled(kind, fun, (*numbers, *names))


@_marked("custom_vjp")
def custom_vjp(fun: Callable[..., Any] | None = None, nondiff_argnums: Sequence[int] = (),
               nondiff_argnames: Sequence[str] = ()) -> Any:
    """A function whose reverse mode is given with `defvjp`.

        @gradsmith.custom_vjp
        def log1pexp(x):
            return np.log(1.0 + np.exp(x))

        log1pexp.defvjp(lambda x: (log1pexp(x), x), lambda x, ct: (ct / (1.0 + np.exp(-x)),))

    The forward mode follows from it, where `bwd` is linear in the cotangent.  nondiff_argnums, nondiff_argnames:
    arguments that the rule is not about, such as functions.
    """
    return _ruled("custom_vjp", fun, nondiff_argnums, nondiff_argnames)


@_marked("custom_jvp")
def custom_jvp(fun: Callable[..., Any] | None = None, nondiff_argnums: Sequence[int] = (),
               nondiff_argnames: Sequence[str] = ()) -> Any:
    """A function whose forward mode is given with `defjvp` or `defjvps`; the reverse mode follows, since tangents are
    linear.

        @gradsmith.custom_jvp
        def log1pexp(x):
            return np.log(1.0 + np.exp(x))

        @log1pexp.defjvp
        def rule(primals, tangents):
            (x,), (t,) = primals, tangents
            return log1pexp(x), t / (1.0 + np.exp(-x))
    """
    return _ruled("custom_jvp", fun, nondiff_argnums, nondiff_argnames)
