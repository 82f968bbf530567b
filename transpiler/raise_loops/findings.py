"""What became of the loops of a func, for the user to read: `Finding`s with the line, one for each loop."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import Location
from ..ir.nodes import Block, Let
from ..ir.walk import all_statements


class Outcome(enum.Enum):
    """RAISED  no loop is left
    PARTLY  what does not need the trips' order is raised, the rest is a smaller loop over elements
    WHOLE   the loop is kept, and works on whole arrays
    KEPT    the loop is kept, and works on single elements
    """

    RAISED = "raised"
    PARTLY = "partly raised"
    WHOLE = "kept, over whole arrays"
    KEPT = "kept"


@dataclass(frozen=True)
class Finding:
    """loc: the loop's line (None where it has none).  reason: why it is not raised; empty where it is."""

    loc: Location | None
    outcome: Outcome
    reason: str = ""

    def over_whole_arrays(self) -> Finding:
        """The same, after a loop around it was raised: what is kept then works on whole arrays."""
        return replace(self, outcome=Outcome.WHOLE) if self.is_slow else self

    @property
    def is_slow(self) -> bool:
        """Whether a machine that is fast on whole arrays only would be held up here."""
        return self.outcome in (Outcome.KEPT, Outcome.PARTLY)

    def __str__(self) -> str:
        """`file.py:3:5: loop kept: each trip needs ...`."""
        place = f"{self.loc}: " if self.loc is not None else ""
        return f"{place}loop {self.outcome.value}{': ' + self.reason if self.reason else ''}"


class Refused(Exception):
    """Raised inside of the pass where a loop cannot be raised; the message is the finding's reason.

    carry: the number of the carry that is to stay in a loop, where the others may go; None: the loop as a whole."""

    def __init__(self, reason: str, carry: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.carry = reason, carry


def shown_name(name: str) -> str:
    """A value's name without the numbers that keep names apart."""
    return re.sub(r"(_\d+)+$", "", name)


def works_on_elements(body: Block) -> bool:
    """Whether the block, with what is nested in it, computes numbers one by one: no operation in it is on an array."""
    return not any(isinstance(s, Let) and s.op.access is None and any(t.type.shape for t in s.targets)
                   for s in all_statements(body))


def shown(findings: Sequence[Finding]) -> str:
    """One line for each finding, in the order of the user's lines; equal ones once."""
    def place(finding: Finding) -> tuple[bool, int, int]:
        loc = finding.loc
        return (True, 0, 0) if loc is None else (False, loc.line, loc.column)

    return "\n".join(map(str, sorted(dict.fromkeys(findings), key=place)))
