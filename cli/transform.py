"""Transform expressions of the command line: `grad(argnums=(0, 1))`, `jit(grad(vmap))`, `vmap | grad`.

    transform   = step { "|" step }                  joined: the function goes through them from left to right
    step        = NAME [ "(" [ transform ] { "," option } ")" ]
    option      = NAME "=" literal

Nested steps apply from the inside out, as calls do: `grad(vmap)` is the gradient of the batched function.  Only
names and literals are read; nothing is evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gradsmith.transpiler.errors import Location, SourceText, TranspileError, did_you_mean, error

_DIFFERENTIATING = ("argnums", "has_aux", "holomorphic")
_JACOBIAN = (*_DIFFERENTIATING, "chunk")
OPTIONS: dict[str, tuple[str, ...]] = {
    "jit": (),
    "functional": (),
    "grad": _DIFFERENTIATING,
    "value_and_grad": _DIFFERENTIATING,
    "vjp": ("argnums", "has_aux"),
    "jvp": ("argnums", "has_aux"),
    "hvp": ("argnums",),
    "jacfwd": _JACOBIAN,
    "jacrev": _JACOBIAN,
    "jacobian": _JACOBIAN,
    "hessian": _JACOBIAN,
    "vmap": ("in_axes", "out_axes", "axis_size"),
}
FILE = "<transform>"


@dataclass(frozen=True)
class Step:
    """One transform with its options; those left out have their usual values."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_default(self, name: str, value: Any) -> Step:
        """The step with this option, where it takes it and does not have it yet."""
        if name not in OPTIONS[self.kind] or name in self.options:
            return self
        return replace(self, options={**self.options, name: value})

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.kind}({given})" if given else self.kind


Chain = tuple[Step, ...]        # in the order of application: the innermost first


def parse_transform(text: str, *, file: str = FILE) -> Chain:
    """Read an expression.  TranspileError (E506), with a caret in the text, for what is none."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as fault:
        line, column = fault.lineno or 1, max((fault.offset or 1) - 1, 0)
        at = Location(file, line, column, line, column + 1, SourceText(text.strip()))
        raise error("E506", "the transform cannot be read", at, label=fault.msg, help=_FORMS) from None
    return _Reader(text.strip(), file).chain(tree.body)


_FORMS = "write it as a call without the function: grad, grad(argnums=(0, 1)), jit(grad(vmap))"


@dataclass(frozen=True)
class _Reader:
    text: str
    file: str

    def fault(self, node: ast.expr | ast.keyword, message: str, *, label: str = "",
              help: str | None = None) -> TranspileError:
        lines = self.text.split("\n")
        start = len(lines[node.lineno - 1].encode()[:node.col_offset].decode())
        end_line = node.end_lineno or node.lineno
        end = len(lines[end_line - 1].encode()[:node.end_col_offset].decode())
        at = Location(self.file, node.lineno, start, end_line, end, SourceText(self.text))
        return error("E506", message, at, label=label, help=help)

    def chain(self, node: ast.expr) -> Chain:
        match node:
            case ast.BinOp(left, ast.BitOr(), right):
                return (*self.chain(left), *self.chain(right))
            case ast.Call(func, args, keywords):
                kind = self.kind(func)
                if len(args) > 1:
                    raise self.fault(args[1], f"{kind} is applied to one thing", help=_FORMS)
                inner = self.inner(kind, args[0]) if args else ()
                return (*inner, Step(kind, dict(self.option(kind, keyword) for keyword in keywords)))
            case _:
                return (Step(self.kind(node)),)

    def inner(self, kind: str, node: ast.expr) -> Chain:
        if isinstance(node, (ast.Constant, ast.Tuple, ast.List)):
            names = OPTIONS[kind]
            help = f"write {kind}({names[0]}={ast.unparse(node)})" if names else _FORMS
            raise self.fault(node, "an option without its name", help=help)
        return self.chain(node)

    def kind(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gradsmith":
            name = node.attr
        elif isinstance(node, ast.Name):
            name = node.id
        else:
            raise self.fault(node, "not a transform", help=_FORMS)
        if name not in OPTIONS:
            help = did_you_mean(name, OPTIONS) or f"the transforms are {', '.join(OPTIONS)}"
            raise self.fault(node, f"`{name}` is not a transform", help=help)
        return name

    def option(self, kind: str, keyword: ast.keyword) -> tuple[str, Any]:
        name = keyword.arg or "**"
        if name not in OPTIONS[kind]:
            known = OPTIONS[kind]
            help = did_you_mean(name, known) or (f"its options are {', '.join(known)}" if known else
                                                 f"{kind} has no options")
            raise self.fault(keyword, f"{kind} has no option `{name}`", help=help)
        try:
            value = ast.literal_eval(keyword.value)
        except ValueError:
            raise self.fault(keyword.value, f"{name} must be a literal", help=_EXAMPLES.get(name)) from None
        if not _CHECKS[name](value):
            raise self.fault(keyword.value, f"{value!r} is no {name}", help=_EXAMPLES.get(name))
        return name, tuple(value) if isinstance(value, list) else value


def parse_option(name: str, text: str) -> Any:
    """The value of an option that the command line gives by itself, such as `--in-axes "None, 0"`."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        value = ...
    if value is ... or not _CHECKS[name](value):
        at = Location(f"<--{name.replace('_', '-')}>", 1, 0, 1, max(len(text), 1), SourceText(text))
        raise error("E506", f"not a value for {name}", at, help=_EXAMPLES[name])
    return tuple(value) if isinstance(value, list) else value


def parse_statics(text: str) -> dict[str, Any]:
    """Arguments that are fixed: `n=3, mode="fast"`.  TranspileError (E501) for anything but literals."""
    whole = f"f({text})"
    try:
        call = ast.parse(whole, mode="eval").body
    except SyntaxError as fault:
        column = max((fault.offset or 1) - 3, 0)
        raise _bad_static(text, column, column + 1, fault.msg) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise _bad_static(text, 0, len(text), "not a list of NAME=VALUE")
    if call.args:
        raise _bad_static(text, call.args[0].col_offset - 2, (call.args[0].end_col_offset or 3) - 2, "has no name")
    found: dict[str, Any] = {}
    for keyword in call.keywords:
        start, end = keyword.value.col_offset - 2, (keyword.value.end_col_offset or 0) - 2
        if keyword.arg is None:
            raise _bad_static(text, start, end, "has no name")
        try:
            found[keyword.arg] = ast.literal_eval(keyword.value)
        except ValueError:
            raise _bad_static(text, start, end, "not a literal") from None
    return found


def _bad_static(text: str, start: int, end: int, label: str) -> TranspileError:
    at = Location("<--static>", 1, start, 1, end, SourceText(text))
    return error("E501", "these are no fixed arguments", at, label=label, help='write --static "n=3, mode=\'fast\'"')


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_axes(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_axes, value.values()))
    return value is None or _is_int(value) or (isinstance(value, (tuple, list)) and all(map(_is_axes, value)))


_CHECKS: dict[str, Any] = {
    "argnums": lambda v: _is_int(v) or (isinstance(v, (tuple, list)) and len(v) > 0 and all(map(_is_int, v))),
    "has_aux": lambda v: isinstance(v, bool),
    "holomorphic": lambda v: isinstance(v, bool),
    "chunk": lambda v: _is_int(v) and v > 0,
    "in_axes": _is_axes,
    "out_axes": _is_axes,
    "axis_size": lambda v: _is_int(v) and v > 0,
}
_EXAMPLES: dict[str, str] = {
    "argnums": "a position or several: argnums=1, argnums=(0, 2)",
    "has_aux": "has_aux=True",
    "holomorphic": "holomorphic=True",
    "chunk": "a number: chunk=16",
    "in_axes": "an axis, None, or one for each argument: in_axes=0, in_axes=(None, 0)",
    "out_axes": "an axis, None, or one for each result: out_axes=0",
    "axis_size": "a number: axis_size=10",
}


def transform_text(chain: Chain) -> str:
    """The expression that `parse_transform` reads as this chain, nested."""
    text = ""
    for step in chain:
        inside = [text] if text else []
        inside += [f"{name}={value!r}" for name, value in step.options.items()]
        text = f"{step.kind}({', '.join(inside)})" if inside else step.kind
    return text


def generated_name(stem: str, chain: Chain) -> str:
    """FUNC_TRANSFORM: `loss_grad`, `loss_vmap_grad` for grad(vmap); jit shows only where there is nothing else."""
    kinds = [step.kind for step in chain if step.kind != "jit"]
    if not kinds and chain:
        kinds = ["jit"]
    stem = stem if stem.isidentifier() else "lambda_"
    return "_".join([stem, *kinds])
