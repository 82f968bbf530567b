"""np.einsum: any subscripts, as a sequence of products of two operands.

Each axis has a label: a letter, or `(k,)` for the axis k from the right under an ellipsis.  First every operand alone:
repeated labels become one (a diagonal), an axis of size 1 whose label is longer elsewhere is dropped, and what only
this operand has and the output has not is summed.  Then pairs of operands become one by `dot_general`, cheapest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .. import ops
from ..ir.dims import same_size
from ..ir.nodes import Value
from .base import RuleError
from .options import dtype_name, is_given, refuse_out
from .products import shown_size
from .spelling import as_value, promote, spelled

Label = Any
ELLIPSIS = "..."


@dataclass(frozen=True)
class Subscripts:
    """Labels of each operand's axes, and of the result's (None: those that appear once, sorted)."""

    inputs: tuple[tuple[Label, ...], ...]
    output: tuple[Label, ...] | None


@spelled(np.einsum)
def einsum(*operands: Any, out: Any = None, dtype: Any = None, order: Any = "K", casting: Any = "safe",
           optimize: Any = False) -> Value:
    """The sum of products over all labels that the output lacks."""
    refuse_out(out, "einsum")
    if not operands:
        raise RuleError("must specify the einstein sum subscripts string and at least one operand, or at least one "
                        "operand and its corresponding subscripts list", kind=ValueError, code="E208")
    subscripts, arrays = _parsed(operands)
    values = promote(*arrays, dtype=dtype_name(dtype) if is_given(dtype) else None)
    return contract(values, expanded(subscripts, [v.rank for v in values]))


# --- reading subscripts ------------------------------------------------------------------------------------------


def _parsed(operands: Sequence[Any]) -> tuple[Subscripts, list[Any]]:
    if isinstance(operands[0], str):
        subscripts, arrays = parse(operands[0]), list(operands[1:])
    else:
        pairs = len(operands) // 2
        arrays = [as_value(x) for x in operands[0:2 * pairs:2]]
        labels = tuple(_listed(x) for x in operands[1:2 * pairs:2])
        subscripts = Subscripts(labels, _listed(operands[-1]) if len(operands) % 2 else None)
    if len(arrays) != len(subscripts.inputs):
        raise RuleError(f"{'more' if len(arrays) < len(subscripts.inputs) else 'fewer'} operands specified in the "
                        "einstein sum subscripts string than provided to einsum", code="E302")
    return subscripts, [as_value(x) for x in arrays]


def _listed(labels: Any) -> tuple[Label, ...]:
    """Subscripts in a list: ints and Ellipsis."""
    if not isinstance(labels, (list, tuple)) or any(
            x is not Ellipsis and (not isinstance(x, (int, np.integer)) or isinstance(x, bool)) for x in labels):
        raise RuleError("einsum's subscripts must be a string or lists of integers known while transpiling",
                        kind=TypeError, code="E117")
    return tuple(ELLIPSIS if x is Ellipsis else int(x) for x in labels)


def parse(text: str) -> Subscripts:
    """Subscripts such as "ij,jk->ik"."""
    inputs, arrow, output = text.replace(" ", "").partition("->")
    return Subscripts(tuple(_letters(part, f"operand {k}") for k, part in enumerate(inputs.split(","))),
                      _letters(output, "output") if arrow else None)


def _letters(text: str, where: str) -> tuple[Label, ...]:
    before, dots, after = text.partition(ELLIPSIS)
    if "." in before + after:
        raise RuleError(f"einstein sum subscripts string contains a '.' that is not part of an ellipsis ('...') in "
                        f"{where}", kind=ValueError, code="E208")
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise RuleError(f"invalid subscript '{letter}' in einstein sum subscripts string, subscripts must be "
                            "letters", kind=ValueError, code="E208")
    return (*before, *([ELLIPSIS] if dots else []), *after)


def expanded(subscripts: Subscripts, ranks: Sequence[int]) -> Subscripts:
    """The ellipsis spelled out, and the output too."""
    inputs: list[tuple[Label, ...]] = []
    longest = 0
    for k, (labels, rank) in enumerate(zip(subscripts.inputs, ranks)):
        hidden = rank - len([x for x in labels if x != ELLIPSIS])
        if hidden < 0:
            raise RuleError(f"einstein sum subscripts string contains too many subscripts for operand {k}",
                            code="E302")
        if hidden and ELLIPSIS not in labels:
            raise RuleError("operand has more dimensions than subscripts given in einstein sum, but no '...' ellipsis "
                            "provided to broadcast the extra dimensions.", code="E302")
        longest = max(longest, hidden)
        inputs.append(_spell_out(labels, hidden))
    output = subscripts.output
    if output is None:
        seen = [x for labels in inputs for x in labels if not isinstance(x, tuple)]
        return Subscripts(tuple(inputs), (*_hidden(longest), *sorted(x for x in set(seen) if seen.count(x) == 1)))
    if longest and ELLIPSIS not in output:
        raise RuleError("output has more dimensions than subscripts given in einstein sum, but no '...' ellipsis "
                        "provided to broadcast the extra dimensions.", code="E302")
    output = _spell_out(output, longest)
    for label in output:
        if output.count(label) > 1:
            raise RuleError(f"einstein sum subscripts string includes output subscript '{label}' multiple times",
                            kind=ValueError, code="E208")
        if not any(label in labels for labels in inputs):
            raise RuleError(f"einstein sum subscripts string included output subscript '{label}' which never appeared "
                            "in an input", kind=ValueError, code="E208")
    return Subscripts(tuple(inputs), output)


def _hidden(count: int) -> tuple[Label, ...]:
    return tuple((k,) for k in range(count - 1, -1, -1))


def _spell_out(labels: tuple[Label, ...], hidden: int) -> tuple[Label, ...]:
    return tuple(x for label in labels for x in (_hidden(hidden) if label == ELLIPSIS else (label,)))


# --- contracting -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labelled:
    value: Value
    labels: tuple[Label, ...]


def contract(values: Sequence[Value], subscripts: Subscripts) -> Value:
    """The result, with the axes of `subscripts.output` (which is spelled out)."""
    assert subscripts.output is not None
    output = subscripts.output
    found = [_diagonals(Labelled(v, labels), k) for k, (v, labels) in enumerate(zip(values, subscripts.inputs))]
    sizes = _label_sizes(found)
    found = [_without_ones(x, sizes) for x in found]
    while len(found) > 1:
        found = [_summed(x, _needed(found, k, output)) for k, x in enumerate(found)]
        i, j = _cheapest(found, output)
        rest = [x for k, x in enumerate(found) if k not in (i, j)]
        found = [*rest, _product(found[i], found[j], {*output, *(a for x in rest for a in x.labels)})]
    last = _summed(found[0], set(output))
    return ops.transpose(last.value, axes=tuple(last.labels.index(a) for a in output))


def _needed(found: Sequence[Labelled], k: int, output: tuple[Label, ...]) -> set[Label]:
    """Labels that something else than operand k has."""
    return {*output, *(a for n, x in enumerate(found) if n != k for a in x.labels)}


def _diagonals(x: Labelled, number: int) -> Labelled:
    """One axis for each label."""
    value, labels = x.value, x.labels
    for label in dict.fromkeys(labels):
        axes = tuple(k for k, a in enumerate(labels) if a == label)
        if len(axes) == 1:
            continue
        size = value.shape[axes[0]]
        for k in axes[1:]:
            if not same_size(size, value.shape[k]):
                raise RuleError(f"dimensions in operand {number} for collapsing index '{label}' don't match "
                                f"({shown_size(size)} != {shown_size(value.shape[k])})", code="E302")
        along = ops.iota(shape=(size,), axis=0, dtype="int64")
        value = ops.gather(value, *[along] * len(axes), axes=axes)
        labels = (label, *(a for a in labels if a != label))
    return Labelled(value, labels)


def _label_sizes(found: Sequence[Labelled]) -> dict[Label, Any]:
    sizes: dict[Label, Any] = {}
    for number, x in enumerate(found):
        for label, dim in zip(x.labels, x.value.shape):
            known = sizes.get(label, 1)
            if known == 1:
                sizes[label] = dim
            elif dim != 1 and not same_size(known, dim):
                shown = "an axis under the ellipsis" if isinstance(label, tuple) else f"'{label}'"
                raise RuleError(f"operands could not be broadcast together: {shown} has size {shown_size(known)} in "
                                f"one operand and {shown_size(dim)} in operand {number}", code="E301")
    return sizes


def _without_ones(x: Labelled, sizes: dict[Label, Any]) -> Labelled:
    """Without the axes of size 1 whose label is longer elsewhere: the others repeat the value along it."""
    kept = [k for k, a in enumerate(x.labels) if not (x.value.shape[k] == 1 and sizes[a] != 1)]
    if len(kept) == len(x.labels):
        return x
    return Labelled(ops.reshape(x.value, shape=tuple(x.value.shape[k] for k in kept)),
                    tuple(x.labels[k] for k in kept))


def _summed(x: Labelled, needed: set[Label]) -> Labelled:
    """Summed over the labels that nothing else needs."""
    axes = tuple(k for k, a in enumerate(x.labels) if a not in needed)
    if not axes:
        return x
    return Labelled(ops.sum(x.value, axes=axes), tuple(a for a in x.labels if a in needed))


def _cheapest(found: Sequence[Labelled], output: tuple[Label, ...]) -> tuple[int, int]:
    """The pair whose product has the fewest loops, then the fewest axes; of equals the first."""

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        i, j = pair
        together = {*found[i].labels, *found[j].labels}
        others = {*output, *(a for k, x in enumerate(found) if k not in pair for a in x.labels)}
        return len(together), len(together & others)

    return min(combinations(range(len(found)), 2), key=cost)


def _product(a: Labelled, b: Labelled, needed: set[Label]) -> Labelled:
    shared = [label for label in a.labels if label in b.labels]
    stack = [label for label in shared if label in needed]
    over = [label for label in shared if label not in needed]
    places = lambda x, labels: tuple(x.labels.index(label) for label in labels)
    value = ops.dot_general(a.value, b.value, contract=(places(a, over), places(b, over)),
                            batch=(places(a, stack), places(b, stack)))
    free = [label for label in (*a.labels, *b.labels) if label not in shared]
    return Labelled(value, (*stack, *free))
