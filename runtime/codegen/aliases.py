"""What LLVM is told about memory: a new array shares none with any other.

Without it, a loop that writes one array and reads others is preceded by a comparison of their addresses and compiled
twice, vectorised and not.  Each place where an array is made is a scope; a load or store of such an array is in that
scope, and outside of all the others' scopes.  Arrays that one place in a loop makes in turn are not told apart.  Memory
that was freed may come back as another array, with calls in between that LLVM moves no access past.  A variable that
holds one array or another, such as two that a loop swaps, is in the scopes of all that it may hold.  Memory of other
origin is said nothing about.

Reference: "noalias and alias.scope metadata" in LLVM's language reference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

ARGUMENT = 0            # the root of all arguments, which may share memory with each other


@dataclass(eq=False)
class Held:
    """What a variable may hold: the roots that it was assigned, some of them perhaps later in the text."""

    roots: list[Root] = field(default_factory=list)


Root = int | Held | None        # one place's memory; what a variable holds; unknown


class Aliases:
    """Collects the loads and stores of one function; `write` attaches what is known when all arrays are."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._roots = 0
        self._accesses: list[tuple[Any, int | Held]] = []

    def new_root(self) -> int:
        self._roots += 1
        return self._roots

    def note(self, access: Any, root: Root) -> None:
        """access: a load or store."""
        if root is not None:
            self._accesses.append((access, root))

    def write(self) -> None:
        if not self._roots or not self._accesses:
            return
        domain = distinct(self.module)
        scopes = [distinct(self.module, domain) for _ in range(self._roots)]
        lists: dict[frozenset[int], tuple[Any, Any]] = {}
        for access, root in self._accesses:
            found = _all_of(root)
            if found is None:
                continue
            if found not in lists:
                own = [scopes[k - 1] for k in sorted(found) if k != ARGUMENT]
                others = [scope for k, scope in enumerate(scopes, 1) if k not in found]
                lists[found] = (_node(self.module, *own) if ARGUMENT not in found else None,
                                _node(self.module, *others) if others else None)
            own_list, others_list = lists[found]
            if own_list is not None:
                access.set_metadata("alias.scope", own_list)
            if others_list is not None:
                access.set_metadata("noalias", others_list)


def _all_of(root: Root) -> frozenset[int] | None:
    """The places whose memory it may be; None where that is not known."""
    found: set[int] = set()
    seen: set[Held] = set()
    left = [root]
    while left:
        now = left.pop()
        if now is None:
            return None
        if isinstance(now, int):
            found.add(now)
        elif now not in seen:
            seen.add(now)
            left += now.roots
    return frozenset(found) or None


def _node(module: Any, *operands: Any) -> Any:
    return ir.MDValue(module, list(operands), name=str(len(module.metadata)))


def distinct(module: Any, *operands: Any) -> Any:
    """A metadata node that begins with itself, so that it is equal to no other."""
    node = _node(module, *operands)
    node.operands = (node, *operands)
    return node
