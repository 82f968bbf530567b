"""What LLVM is told about memory: a new array shares none with any other.

Without it, a loop that writes one array and reads others is preceded by a comparison of their addresses and compiled
twice, vectorised and not.  Each place where an array is made is a scope; a load or store of such an array is in that
scope, and outside of all the others' scopes.  Arrays that one place in a loop makes in turn are not told apart.  Memory
that was freed may come back as another array, with calls in between that LLVM moves no access past.  Memory that is not
known to be of one array is said nothing about.

Reference: "noalias and alias.scope metadata" in LLVM's language reference.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

ARGUMENT = 0            # the root of all arguments, which may share memory with each other


class Aliases:
    """Collects the loads and stores of one function; `write` attaches what is known when all arrays are."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._roots = 0
        self._accesses: list[tuple[Any, int]] = []

    def new_root(self) -> int:
        self._roots += 1
        return self._roots

    def note(self, access: Any, root: int | None) -> None:
        """access: a load or store."""
        if root is not None:
            self._accesses.append((access, root))

    def write(self) -> None:
        if not self._roots or not self._accesses:
            return
        domain = distinct(self.module)
        scopes = [distinct(self.module, domain) for _ in range(self._roots)]
        lists: dict[int, tuple[Any, Any]] = {}
        for access, root in self._accesses:
            if root not in lists:
                others = [scope for k, scope in enumerate(scopes, 1) if k != root]
                own = _node(self.module, scopes[root - 1]) if root != ARGUMENT else None
                lists[root] = own, _node(self.module, *others) if others else None
            own, others_list = lists[root]
            if own is not None:
                access.set_metadata("alias.scope", own)
            if others_list is not None:
                access.set_metadata("noalias", others_list)


def _node(module: Any, *operands: Any) -> Any:
    return ir.MDValue(module, list(operands), name=str(len(module.metadata)))


def distinct(module: Any, *operands: Any) -> Any:
    """A metadata node that begins with itself, so that it is equal to no other."""
    node = _node(module, *operands)
    node.operands = (node, *operands)
    return node
