"""What the run time's `lax` needs besides Python: results of steps stacked leaf by leaf, however many steps there are.

The functions are plain Python, too; `TABLE` says what they mean in transpiled code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.build import building
from ..ops.base import RuleError
from .grown import element_of, empty_buffer, filled, is_grown
from .iteration import iterate
from .python_functions import means
from .state import capture, restore
from .templates import Fixed, Group, Slot, Template, make_group
from .values import ArrayRef

if TYPE_CHECKING:
    from .interpreter import Interpreter


class Growing(list):  # type: ignore[type-arg]
    """A list that a loop appends to; the loop stays a loop, few as its trips may be."""


def stacked(values: Any, flipped: bool = False) -> Any:
    """The tree of the stacked leaves of equal trees, of which there is one or more; the last first if `flipped`."""
    values = list(values)[::-1] if flipped else list(values)
    return _by_leaves(lambda *leaves: np.stack(leaves), values)


def stacked_none(f: Callable[..., Any], *args: Any) -> Any:
    """The same of no trees, of which f(*args) would be one."""
    return _by_leaves(lambda leaf: np.zeros((0, *np.shape(leaf)), np.asarray(leaf).dtype), [f(*args)])


def _by_leaves(join: Callable[..., Any], trees: list[Any]) -> Any:
    first = trees[0]
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: _by_leaves(join, [t[key] for t in trees]) for key in first}
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return dataclasses.replace(first, **{f.name: _by_leaves(join, [getattr(t, f.name) for t in trees])
                                             for f in dataclasses.fields(first)})
    if isinstance(first, (list, tuple)):
        parts = [_by_leaves(join, list(column)) for column in zip(*trees, strict=True)]
        return type(first)._make(parts) if hasattr(first, "_make") else type(first)(parts)
    return join(*trees)


# ---------------------------------------------------------------------------------------------------------------
# in transpiled code


@means(Growing)
def _growing(it: Interpreter) -> Growing:
    return Growing()


@means(stacked)
def _stacked(it: Interpreter, values: Any, flipped: bool = False) -> Any:
    if is_grown(values):
        template, parts = element_of(values), filled(it, values)
    else:
        from .grown import make_grown
        items = list(iterate(it, values))
        template = _template(items)
        made = make_grown(it, template, len(items), None, items)
        parts = list(made.fields["buffers"])
    if flipped:
        from .indexing import get_item
        parts = [get_item(it, part, slice(None, None, -1)) for part in parts]
    return _with_arrays(template, iter([ArrayRef(part.read(), layout="C") for part in parts]))


@means(stacked_none)
def _stacked_none(it: Interpreter, f: Any, *args: Any) -> Any:
    before, names, here = capture(it, None, args), it.names.taken.copy(), it.here
    with building():                        # for its kind alone
        template = _template([it.call(f, args, {})])
    restore(before)
    it.forget_names(names)
    it.at(here)
    return _with_arrays(template, iter(()), none=True)


def _template(items: list[Any]) -> Template:
    from .grown import common
    found = common(items)
    if found is None:
        raise RuleError("the results of the steps are not alike", code="E122", kind=TypeError,
                        help="return arrays of one shape and dtype, or trees of such")
    return found


def _with_arrays(template: Template, arrays: Any, none: bool = False) -> Any:
    """The tree with an array in each slot."""
    match template:
        case Fixed():
            return template.value
        case Slot():
            return empty_buffer(template, 0) if none else next(arrays)
        case Group():
            return make_group(template, [_with_arrays(child, arrays, none) for child in template.children])
    raise AssertionError(template)
