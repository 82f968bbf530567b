"""What XLA's partitioner made devices tell each other: the collective operations of an optimised module.

    %all-reduce.1 = f32[784,10]{1,0} all-reduce(%fusion.3), channel_id=1, replica_groups=[1,8]<=[8], ...
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
         "collective-broadcast")
_INSTRUCTION = re.compile(rf"^\s*(?:ROOT )?%?(\S+) = (.+?) ({'|'.join(KINDS)})(-start)?\((.*)$")
_SHAPE = re.compile(r"\b(pred|[a-z]+\d+\w*)\[([\d,]*)\]")
_BITS = re.compile(r"[a-z]+(\d+)")
_GROUPS = re.compile(r"replica_groups=(\{\{.*?\}\}|\[[^\]]*\](?:<=\[[^\]]*\](?:T\([\d,]*\))?)?)")


@dataclass(frozen=True)
class Collective:
    """kind: as XLA calls it.  name: of the instruction.  shapes: of what each device has of it afterwards.  bytes: of
    these together.  groups: the devices that do it together, as XLA writes them, or "all"."""

    kind: str
    name: str
    shapes: tuple[str, ...]
    bytes: int
    groups: str = "all"

    def __str__(self) -> str:
        return f"{self.kind} of {', '.join(self.shapes)} ({self.bytes} bytes)"


def collectives_of(hlo: str) -> tuple[Collective, ...]:
    """The collectives in the text of an optimised module, one for each instruction."""
    found = []
    for line in hlo.splitlines():
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        name, types, kind, start, rest = match.groups()
        shapes = _SHAPE.findall(types)
        if start and kind != "all-reduce":              # (operands, results, ...): what goes in, what comes out
            shapes = shapes[1:2] if not types.startswith("((") else shapes[len(shapes) // 2:]
        groups = _GROUPS.search(rest)
        found.append(Collective(kind, name, tuple(f"{dtype}[{dims}]" for dtype, dims in shapes),
                                sum(_bytes(dtype, dims) for dtype, dims in shapes), groups[1] if groups else "all"))
    return tuple(found)


def _bytes(dtype: str, dims: str) -> int:
    bits = _BITS.match(dtype)
    width = int(bits[1]) if bits else 8                 # pred
    return math.prod(int(d) for d in dims.split(",") if d) * width // 8


def summed_up(found: Sequence[Collective]) -> str:
    """`2 all-reduce (31400 bytes), 1 all-gather (64 bytes)`."""
    counts, sizes = Counter(c.kind for c in found), Counter[str]()
    for c in found:
        sizes[c.kind] += c.bytes
    return ", ".join(f"{counts[kind]} {kind} ({sizes[kind]} bytes)" for kind in KINDS if kind in counts) or "none"
