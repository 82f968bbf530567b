"""The model of an annotated source: facts about lines, and the generated lines that come from them.

A fact is about one line of the user's file.  It comes from a pass's report or from the final IR, never from text.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Location
from ..ir.dims import DimExpr, product
from ..ir.types import Type


class Kind(enum.Enum):
    """What can be said of a line, the most telling first.  value: as it is called; about: one line for legends."""

    def __init__(self, title: str, about: str) -> None:
        self.title = title
        self.about = about

    SLOW = "slow", "copies, allocates, checks an index or jumps through memory in every trip of a loop"
    SAVED = "saved", "kept in memory from the forward to the reverse part"
    RESTORED = "restored", "overwritten in the forward part, put back by the reverse part"
    LIBRARY = "library", "done by a routine of BLAS or LAPACK"
    RECOMPUTED = "recomputed", "computed again rather than kept"
    PARALLEL = "parallel", "in a loop whose iterations are independent"
    FUSED = "fused", "computed inside a loop, without an array of its own"
    ARRAY = "array", "has an array of its own"
    INACTIVE = "inactive", "carries no derivative"
    ONCE = "once", "the same for the whole batch"
    ELIDED = "elided", "left out of the generated code: not needed, or known while generating"

    @property
    def rank(self) -> int:
        return list(Kind).index(self)


@dataclass(frozen=True)
class Place:
    """A line of a user's file."""

    file: str
    line: int


@dataclass(frozen=True)
class Fact:
    """kind: what for.  label: a word or two, with `{}` for the amount of bytes where there is one.  detail: a sentence
    that says of what, how much and where."""

    kind: Kind
    label: str
    detail: str
    amount: Any = None

    @property
    def shown(self) -> str:
        return self.label if self.amount is None else self.label.format(size_text(self.amount))


@dataclass(frozen=True)
class GeneratedLine:
    """A line of the generated module.  number: from 1.  depth: of indentation, 0 for the least of its group.
    context: whether it is there only to show which loop the others are in."""

    number: int
    depth: int
    text: str
    context: bool = False


@dataclass(frozen=True)
class Part:
    """Generated lines of one part: "forward", "reverse", "tangent", ..., "code" where there is only one."""

    name: str
    lines: tuple[GeneratedLine, ...]


@dataclass(frozen=True)
class SourceLine:
    number: int
    text: str
    facts: tuple[Fact, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def kind(self) -> Kind | None:
        """The most telling of its facts."""
        return self.facts[0].kind if self.facts else None

    @property
    def labels(self) -> list[tuple[Kind, str]]:
        """What its facts say in short, amounts of the same added up."""
        found: dict[tuple[Kind, str], Any] = {}
        for fact in self.facts:
            known = found.get((fact.kind, fact.label))
            found[fact.kind, fact.label] = fact.amount if known is None else known + fact.amount
        return [(kind, Fact(kind, label, "", amount).shown) for (kind, label), amount in found.items()]


@dataclass(frozen=True)
class Section:
    """One of the user's functions.  file: without the folders that all files share."""

    file: str
    name: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True)
class Annotation:
    """title: what was made of which function.  command: that writes the module.  module: its text.  sections: the
    function's own first, then those that it calls."""

    title: str
    signature: str
    command: str
    module: str
    sections: tuple[Section, ...]

    def kinds(self) -> list[tuple[Kind, int]]:
        """The kinds of facts that there are, with the numbers of their lines."""
        found = [(kind, sum(any(f.kind is kind for f in line.facts) for section in self.sections
                            for line in section.lines)) for kind in Kind]
        return [(kind, count) for kind, count in found if count]


class Facts:
    """Facts by place, each once; `of` tells apart what two say the same of."""

    def __init__(self) -> None:
        self._found: dict[Place, dict[tuple[Fact, Any], None]] = {}

    def add(self, place: Place | None, kind: Kind, label: str, detail: str, amount: Any = None, of: Any = None) -> None:
        if place is not None:
            self._found.setdefault(place, {}).setdefault((Fact(kind, label, detail, amount), of))

    def at(self, place: Place) -> tuple[Fact, ...]:
        """What is known of a line, the most telling first."""
        return tuple(sorted((fact for fact, _ in self._found.get(place, ())), key=lambda fact: fact.kind.rank))

    def has(self, place: Place, kind: Kind) -> bool:
        return any(fact.kind is kind for fact, _ in self._found.get(place, ()))


def place_of(loc: Location | None) -> Place | None:
    return None if loc is None else Place(loc.file, loc.line)


# ---------------------------------------------------------------------------------------------------------------
# words


def bytes_of(type: Type, *more: Any) -> int | DimExpr:
    """The memory of a value, or of as many as the dimensions `more` say."""
    found: int | DimExpr = product((*more, *type.shape, np.dtype(type.dtype).itemsize))
    return found


def size_text(size: Any) -> str:
    """`8 B`, `24,000 B`, `8*n B`, `(8*n - 8) B`."""
    if isinstance(size, int):
        return f"{size:,} B"
    text = str(size)
    return f"({text}) B" if " " in text else f"{text} B"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def lines_text(numbers: Iterable[int]) -> str:
    """`line 3`, `lines 3 and 7`."""
    every = sorted(set(numbers))
    return f"line{'s' if len(every) > 1 else ''} {listed([str(n) for n in every])}"
