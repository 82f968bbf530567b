"""Arguments of a call under the names of a function's parameters, by Python's rules and in its words."""

from __future__ import annotations

from typing import Any

from ..ops.base import RuleError
from .environment import Frame


def bind(frame: Frame, parameters: Any, name: str, defaults: tuple[Any, ...], kw_defaults: dict[str, Any],
         args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Put arguments into the frame's variables.  TypeError with the words that Python has for it."""
    positional_only = [a.id for a in parameters.posonlyargs]
    positional = [*positional_only, *(a.id for a in parameters.args)]
    keyword_only = [a.id for a in parameters.kwonlyargs]
    found: dict[str, Any] = dict(zip(positional, args))
    if len(args) > len(positional):
        if parameters.vararg is None:
            raise wrong_call(too_many_text(name, positional, len(defaults), len(args)))
    if parameters.vararg is not None:
        found[parameters.vararg.id] = tuple(args[len(positional):])
    extra: dict[str, Any] = {}
    for key, value in kwargs.items():
        if (key in positional and key not in positional_only) or key in keyword_only:
            if key in found:
                raise wrong_call(f"{name}() got multiple values for argument '{key}'")
            found[key] = value
        elif parameters.kwarg is not None:
            extra[key] = value
        elif key in positional_only:
            raise wrong_call(f"{name}() got some positional-only arguments passed as keyword arguments: '{key}'")
        else:
            raise wrong_call(f"{name}() got an unexpected keyword argument '{key}'")
    first_default = len(positional) - len(defaults)
    missing = []
    for k, key in enumerate(positional):
        if key not in found:
            if k >= first_default:
                found[key] = defaults[k - first_default]
            else:
                missing.append(key)
    if missing:
        raise wrong_call(missing_text(name, "positional", missing))
    for key in keyword_only:
        if key not in found and key in kw_defaults:
            found[key] = kw_defaults[key]
    missing = [key for key in keyword_only if key not in found]
    if missing:
        raise wrong_call(missing_text(name, "keyword-only", missing))
    if parameters.kwarg is not None:
        found[parameters.kwarg.id] = extra
    frame.variables.update(found)


def wrong_call(message: str) -> RuleError:
    return RuleError(message, kind=TypeError, code="E118")


def missing_text(name: str, kind: str, missing: list[str]) -> str:
    quoted = [f"'{key}'" for key in missing]
    listed = quoted[0] if len(quoted) == 1 else (f"{quoted[0]} and {quoted[1]}" if len(quoted) == 2 else
                                                 f"{', '.join(quoted[:-1])}, and {quoted[-1]}")
    plural = "" if len(missing) == 1 else "s"
    return f"{name}() missing {len(missing)} required {kind} argument{plural}: {listed}"


def too_many_text(name: str, positional: list[str], with_default: int, given: int) -> str:
    least = len(positional) - with_default
    takes = f"{len(positional)}" if not with_default else f"from {least} to {len(positional)}"
    plural = "" if len(positional) == 1 and not with_default else "s"
    return f"{name}() takes {takes} positional argument{plural} but {given} {'was' if given == 1 else 'were'} given"
