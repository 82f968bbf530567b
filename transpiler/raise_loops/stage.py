"""The stage `raise`: loops raised, and what that leaves tidied up."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.nodes import Func
from ..optimize.dead_code import drop_dead_code
from .contract import contract_sums
from .counted import with_counted
from .decided import with_decided
from .findings import Finding
from .nests import raised


def raise_loops(func: Func, tidy: Callable[[Func], Func], findings: list[Finding] | None = None, *,
                keeps: bool = True) -> Func:
    """The func with its loops raised (see `nests.raised`).  `tidy` shares what is equal and drops what nobody reads."""
    counted = with_counted(func)
    decided = with_decided(counted, indices=counted is not func)
    if decided is not func:
        func = tidy(decided)
    after = raised(func, findings, keeps=keeps)
    if after is func:
        return func
    return tidy(drop_dead_code(contract_sums(tidy(after))))         # what is dead must not be shared with
