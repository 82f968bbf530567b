"""What the transformations share: names of derived values and the errors for what they cannot do."""

from __future__ import annotations

from typing import NoReturn

from ..errors import error
from ..ir.build import current, is_plain
from ..ir.nodes import For, If, Stmt, Value, Var, While


def name_like(value: Value, prefix: str, source: Var) -> Value:
    """Give a value that still has a stock name the prefixed name of the variable that it belongs to."""
    if isinstance(value, Var) and is_plain(value.name) and not is_plain(source.name):
        value.name = current().names.fresh(prefix + source.name)
    return value


def unsupported_statement(stmt: Stmt, transform: str) -> NoReturn:
    """Run-time control flow has no rule in this transformation yet."""
    what = {If: "a branch on a run-time value", For: "a loop with run-time bounds", While: "a while loop"}[type(stmt)]  # type: ignore[index]
    raise error("E204", f"{transform} of {what} is not supported yet", stmt.loc,
                help="write it with np.where or whole-array operations", kind=NotImplementedError)
