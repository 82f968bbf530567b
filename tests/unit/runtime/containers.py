"""Trees of arguments and results for derivatives of whole trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Model:
    weights: Any
    rate: Any
