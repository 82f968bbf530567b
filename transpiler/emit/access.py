"""What emission asks of an operation: how its statement is written.

An operation answers with its attributes, never with its name:

    access   "load", "store" or "add_at": reads or writes `{0}` at the parameter `index`
    scalar   ELEMENTWISE: template of the result on scalars
    kernel   KERNEL: template of a call; one with `{out}` writes into an array allocated before it
    view     template of the result as a NumPy view of `{0}`, or None where there is none
    short    name of an otherwise nameless result (by default a letter after its sign or its name)

`scalar`, `kernel` and `view` are text or functions to it: `scalar(*types, **params)`, `kernel(types, params)` and
`view(types, params)`, of the operands' types and the operation's parameters.
"""

from __future__ import annotations

import ast
import enum
from functools import lru_cache

from ..ir.index import At
from ..ir.nodes import Let
from ..ops.base import Lowering, RuleError
from .templates import Template, parse_template, with_text_parameters


class Role(enum.Enum):
    LOAD = enum.auto()        # one element
    SLICE = enum.auto()       # a view through an index with spans
    STORE = enum.auto()
    ADD = enum.auto()
    VIEW = enum.auto()        # a view through a template
    SCALAR = enum.auto()      # arithmetic on scalars
    RETURNS = enum.auto()     # a kernel whose call is an expression
    FILLS = enum.auto()       # a kernel that writes into arrays allocated before


# What templates call without an import.
BUILTINS = frozenset(("abs", "max", "min", "int", "float", "bool", "complex", "round", "len", "pow", "divmod"))

_WRITES = {"store": Role.STORE, "add_at": Role.ADD}
WRITES = tuple(_WRITES.values())


def role(let: Let) -> Role:
    """How the statement is written.  RuleError: the operation has not been lowered."""
    access: str | None = let.op.access
    if access == "load":
        return Role.LOAD if all(isinstance(item, At) for item in let.params["index"]) else Role.SLICE
    if access is not None:
        return _WRITES[access]
    if getattr(let.op, "lowering", None) is Lowering.KERNEL and let.op.kernel is not None:
        return Role.FILLS if any(p.startswith("out") for p in template(let).counts) else Role.RETURNS
    if len(let.targets) == 1 and let.target.type.shape:
        if _view_text(let) is not None:
            return Role.VIEW
    elif getattr(let.op, "scalar", None) is not None and all(not a.type.shape for a in let.args):
        return Role.SCALAR
    raise RuleError(f"{let.op.name} on {', '.join(str(a.type) for a in let.args)} reached the emission of Python "
                    "without having been lowered to loops")


def _view_text(let: Let) -> str | None:
    view = getattr(let.op, "view", None)
    return view([a.type for a in let.args], let.params) if callable(view) else view


def template(let: Let) -> Template:
    """The operation's source for these operands."""
    op = let.op
    if getattr(op, "lowering", None) is Lowering.KERNEL and op.kernel is not None:
        text = op.kernel([a.type for a in let.args], let.params) if callable(op.kernel) else op.kernel
    elif let.target.type.shape:
        text = _view_text(let)
    else:
        text = op.scalar(*(a.type for a in let.args), **let.params) if callable(op.scalar) else op.scalar
    if text is None:
        raise RuleError(f"{op.name} has no source text for these operands")
    return _parsed(with_text_parameters(text, let.params))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Template:
    try:
        return parse_template(text)
    except SyntaxError as problem:
        raise RuleError(f"the template {text!r} is not Python: {problem.msg}") from problem


_OF_SIGNS: dict[type, str] = {ast.Add: "s", ast.Sub: "d", ast.Mult: "p", ast.Div: "q", ast.Pow: "p", ast.Mod: "r"}


def short_name(let: Let) -> str:
    """`short`; without it `s` for a sum, `d`, `p`, `q` for what `-`, `*` and `/` give, else the first letter."""
    short: str | None = getattr(let.op, "short", None)
    if short is not None:
        return short
    tree = template(let).tree
    return _OF_SIGNS.get(type(tree.op), "b") if isinstance(tree, ast.BinOp) else str(let.op.name[0])
