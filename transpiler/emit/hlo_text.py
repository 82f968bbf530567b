"""The instructions of a StableHLO function before they are text: names are given when all is known.

A `HloValue` is one result of one instruction.  It is named after an IR variable, or gets a number when the function
is printed: `%0`, `%1` for what a rule makes on its way, `%c`, `%c_1` for constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..ir.build import Names
from ..ir.types import Type
from .hlo_types import tensor


@dataclass(eq=False, slots=True)
class HloValue:
    """What the rules of operations see: a value with an IR type.  number: of ints that are one constant.  is_even: an
    array of equal ints.  rises: an array of one axis whose ints are surely each greater than the one before."""

    type: Type
    name: str | None = None
    source: Instruction | None = None
    number: int | None = None
    is_even: bool = False
    rises: bool = False

    def __repr__(self) -> str:
        return f"{self.name or '?'}: {self.type}"


@dataclass(eq=False, slots=True)
class Region:
    """A nested block: its arguments, its instructions, what it returns.

    opening, closing: the text before and after it; the generic form stands in `({` and `})`.
    lists_args: it opens with its arguments (else whoever owns it has named them).
    """

    args: tuple[HloValue, ...]
    body: list[Instruction]
    results: tuple[HloValue, ...]
    opening: str = "({"
    closing: str = "})"
    lists_args: bool = True


@dataclass(eq=False, slots=True)
class Instruction:
    """`results = pieces`, where the pieces are text, operands and regions in the order in which they print."""

    pieces: tuple[str | HloValue | Region, ...]
    results: tuple[HloValue, ...] = field(default=())
    is_constant: bool = False
    location: str | None = None

    def operands(self) -> Iterator[HloValue]:
        for piece in self.pieces:
            if isinstance(piece, HloValue):
                yield piece
            elif isinstance(piece, Region):
                for inner in piece.body:
                    yield from inner.operands()
                yield from piece.results


def without_unused(body: Sequence[Instruction], results: Sequence[HloValue]) -> list[Instruction]:
    """The instructions that the results need (all of them are pure)."""
    used = set(results)
    kept = []
    for instruction in reversed(body):
        if used.isdisjoint(instruction.results):
            continue
        for piece in instruction.pieces:
            if isinstance(piece, Region):
                piece.body = without_unused(piece.body, piece.results)
        used.update(instruction.operands())
        kept.append(instruction)
    return kept[::-1]


class Writer:
    """Gives names and writes lines."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.names = Names(taken)
        self.numbered = 0
        self.lines: list[str] = []

    def block(self, body: Sequence[Instruction], indent: str) -> None:
        for instruction in body:
            self._instruction(instruction, indent)

    def _instruction(self, instruction: Instruction, indent: str) -> None:
        line = f"{indent}{self._named(instruction)} = "
        for region in instruction.pieces:               # a loop names its carries before its regions
            for arg in region.args if isinstance(region, Region) else ():
                arg.name = arg.name or self.names.fresh("arg")
        for piece in instruction.pieces:
            if isinstance(piece, str):
                line += piece
            elif isinstance(piece, HloValue):
                line += self.use(piece)
            else:
                line = self._region(piece, line, indent)
        self.lines.append(line + (f" loc({instruction.location})" if instruction.location else ""))

    def _named(self, instruction: Instruction) -> str:
        """The results by their names: `%order`, `%i, %x`, or one name for several that nobody named, `%3:2`."""
        results = instruction.results
        if all(v.name is None for v in results):
            name = self.names.fresh("c") if instruction.is_constant else self._number()
            for k, value in enumerate(results):
                value.name = name if len(results) == 1 else f"{name}#{k}"
            return f"%{name}" + (f":{len(results)}" if len(results) > 1 else "")
        for value in results:
            value.name = value.name or self._number()
        return ", ".join(f"%{v.name}" for v in results)

    def _number(self) -> str:
        self.numbered += 1
        return str(self.numbered - 1)

    def use(self, value: HloValue) -> str:
        return f"%{value.name}"

    def _region(self, region: Region, line: str, indent: str) -> str:
        """Write the region after `line`; return the beginning of the line that follows."""
        inner = indent + "  "
        self.lines.append(f"{line}{region.opening}")
        if region.lists_args and region.args:
            args = ", ".join(f"%{a.name}: {tensor(a.type)}" for a in region.args)
            self.lines.append(f"{indent}^bb0({args}):")
        self.block(region.body, inner)
        values = ", ".join(self.use(v) for v in region.results)
        self.lines.append(f"{inner}stablehlo.return {values} : {', '.join(tensor(v.type) for v in region.results)}")
        return indent + region.closing


def identifier(name: str) -> str:
    """An IR name as an MLIR one, which is ASCII: other letters are spelled by their code points."""
    return re.sub(r"[^A-Za-z0-9_$.-]", lambda m: f"_u{ord(m[0]):x}", name)
