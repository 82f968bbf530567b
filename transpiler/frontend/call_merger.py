"""What the calls of a recursive func have in common: templates for its arguments, and for what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import error
from ..ir.dims import DimExpr
from ..ir.nodes import Value
from ..ir.types import Type
from ..ops.spelling import cast
from .merge import Merger
from .templates import Broken, Fixed, Slot, Template, described
from .values import ArrayRef, Instance

if TYPE_CHECKING:
    from .recursive_func import Recursion


class CallMerger(Merger):
    """Joins the arguments (or results) of calls.  Sizes that differ become sizes of the func's own."""

    def __init__(self, recursion: Recursion) -> None:
        super().__init__(recursion.it, "E130", recursion.it.here, (None, None))
        self.recursion = recursion
        self.met: dict[Any, Any] = {}                   # what each size of the func is in this call
        self.made_sizes: dict[tuple[Any, Any], Any] = {}
        self.clash: str | None = None

    def lift(self, x: Any, name: str, side: int = 0) -> Template:
        """Containers, objects and ints made of sizes are these very ones, until another call has others."""
        if isinstance(x, (list, dict, Instance, DimExpr)):
            return Fixed(x)
        return super().lift(x, name, side)

    def _join_arrays(self, a: Any, b: Any, name: str) -> Template:
        left, right = a.type, b.type
        if left.rank != right.rank:
            return self._broken(a, b, name)
        dtype = left.dtype if left.dtype == right.dtype else np.result_type(left.numpy, right.numpy).name
        shape = tuple(self._size(x, y, name) for x, y in zip(left.shape, right.shape))
        return Slot("array", Type(dtype, shape), a.layout if a.layout == b.layout else "A", self._pair(a, b))

    def _size(self, old: Any, new: Any, name: str) -> Any:
        if str(old) in self.recursion.sizes:
            if self.met.setdefault(old, new) == new:
                return old
        elif old == new or self._must_agree(old, new):
            return old
        if (old, new) not in self.made_sizes:
            self.made_sizes[old, new] = self.recursion.own_size(name)
        return self.made_sizes[old, new]

    def _must_agree(self, old: Any, new: Any) -> bool:
        """Two sizes of the caller that are equal in this call are taken to be one: the trace starts again then."""
        known = self.recursion.it.assumptions
        if not all(str(dim) in known.sizes and str(dim) not in known.fixed for dim in (old, new)):
            return False
        size = known.example(old)
        return size is not None and size == known.example(new) and known.are_equal(old, new)

    def _broken(self, a: Any, b: Any, name: str) -> Broken:
        first, second = described(a.value if isinstance(a, Fixed) else a), described(b)
        self.clash = (f"`{name}` is {first} in one call and {second} in another" if first != second else
                      f"`{name}` is {first} in one call and another one in the next")
        return Broken(error("E130", f"{self.clash} inside it", self.where, help="give it one type in all calls"))

    def _owner(self, pair: int | None) -> str:
        return "local"

    def _extract(self, template: Template, x: Any, done: set[int]) -> Iterator[Value | None]:
        """As in `Merger`, but for sizes, which differ from call to call."""
        if not (isinstance(template, Slot) and template.type.rank and isinstance(x, ArrayRef)):
            yield from super()._extract(template, x, done)
        elif template.pair is None or template.pair not in done:
            done.add(-1 if template.pair is None else template.pair)
            yield cast(x.read(), template.type.dtype)
