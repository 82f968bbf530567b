"""What LLVM is told about loops over `abreast`: no trip reads or writes what another one writes.

So they are vectorised where LLVM cannot prove it: rows of a table, of which each is a few cells behind the one above,
are a stride apart that only the running function knows.

Reference: "llvm.loop.parallel_accesses and llvm.access.group metadata" in LLVM's language reference.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .aliases import distinct

ABREAST = "abreast"         # the kernel that such a loop goes over, as over a `range`


SHORT = 32                  # statements of a trip for which the registers do


def trips_are_apart(function: Any, first: int, latch: Any, dear: bool, length: int) -> None:
    """Mark a loop.  first: the number of its first block; the function's others behind it are the loop's, too.
    dear: whether its trips take long, so that one vector of them at a time keeps the processor busy, and may be all.
    length: the number of statements in a trip.

    What is in stack slots is left out: it is put into registers, or else goes from trip to trip.
    """
    module = function.module
    group = _Group(module, (), name=str(len(module.metadata)))
    for block in function.blocks[first:]:
        for instruction in block.instructions:
            if isinstance(instruction, (ir.LoadInstr, ir.StoreInstr)) and not _is_slot(instruction):
                instruction.set_metadata("llvm.access.group", group)
    accesses = module.add_metadata([ir.MetaDataString(module, "llvm.loop.parallel_accesses"), group])
    notes = [accesses]
    if dear or length <= SHORT:
        vectors = ir.IntType(32)(1 if dear else 4)          # at a time
        notes.append(module.add_metadata([ir.MetaDataString(module, "llvm.loop.interleave.count"), vectors]))
    latch.set_metadata("llvm.loop", distinct(module, *notes))


class _Group(ir.MDValue):   # type: ignore[misc]
    """A node without operands that is no other one's equal: a module has each node once."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def descr(self, buf: Any) -> None:
        buf += ("distinct !{}", "\n")


def _is_slot(access: Any) -> bool:
    pointer = access.operands[0] if isinstance(access, ir.LoadInstr) else access.operands[1]
    return isinstance(pointer, ir.AllocaInstr)
