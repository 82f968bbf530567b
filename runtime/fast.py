"""The quick way into a specialisation, for calls like the one it was made for.

`fast_path(spec)` writes a Python function of the user's positional arguments that raises `Miss` whenever the
specialisation may not serve:

    def call(a, b):
        try:
            c0 = r0['w']                                    # captures are read now
            served = type(a) is k0 and r1['f'] is g0        # kinds of numbers, static values from outside
        except (LookupError, AttributeError, ValueError, TypeError):
            raise Miss from None
        if served:
            return finish(entry(a, b, c0))
        raise Miss

Where nothing needs to be checked, it is the compiled entry itself: Numba's dispatcher, in C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import optree

from .array import Array, captured
from .kernels.guard import Miss
from .overlap import guarded
from .parallel import adaptive
from .raising import explaining
from .specialise import Specialisation, result_form, same_value
from .transpiler.frontend.guards import Access, StaticGuard
from .transpiler.frontend.trace import Trace
from .transpiler.frontend.trees import rebuild
from .transpiler.frontend.values import Leaf
from .transpiler.ir.nodes import Block, For

FLATTEN: Any = optree.tree_flatten
_TREES = (tuple, list, dict)
_CONSTANTS = (str, int, float, complex, bool, bytes, type(None))


def fast_path(spec: Specialisation, arrays: bool = False) -> Callable[..., Any] | None:
    """None where only the slow path can serve: objects as arguments, the same array passed twice and written to.

    arrays: a path that also takes Arrays, and returns Arrays if there are any; without, those miss.
    """
    args = spec.described.args
    if spec.described.kwargs or not _is_plain_tree(args) or spec.same:
        return None
    entry: Callable[..., Any] = explaining(spec.entry, spec.trace)
    if _has_loops(spec.func.body):
        entry = adaptive(entry, lambda: _explained(spec.parallel_entry(), spec.trace))
    if spec.trace.written:
        entry = guarded(entry, spec.trace.written, spec.signature)
    finish = _finish(spec, spec.converters)
    if arrays or spec.captures_arrays():
        entry = _with_arrays(entry, finish, _finish(spec, spec.array_converters), spec.captures_arrays())
        finish = None
    writer = _Writer(spec)
    if all(isinstance(a, Leaf) for a in args) and not spec.trace.static_args:
        return writer.path(entry, finish, flatten=None)
    return writer.path(entry, finish, flatten=_flattener(spec))


def _explained(entry: Callable[..., Any] | None, trace: Trace) -> Callable[..., Any] | None:
    return None if entry is None else explaining(entry, trace)


def _has_loops(block: Block) -> bool:
    """Whether a loop may run in parallel; those that could with scratch arrays of their own are told by a second
    lowering only, so any outer loop counts."""
    return any(isinstance(s, For) for s in block.stmts)


def _is_plain_tree(x: Any) -> bool:
    """Only containers that optree knows by itself, and static parts that compare well."""
    if isinstance(x, Leaf) or type(x) in _CONSTANTS:
        return True
    if is_dataclass(x) and not isinstance(x, type):         # its fields are arguments, also where it can be called
        return False
    if callable(x):
        return True
    if type(x) in _TREES or (isinstance(x, tuple) and hasattr(x, "_fields")):
        return all(map(_is_plain_tree, x.values() if isinstance(x, dict) else x))
    return False


class _Writer:
    """The text of a path, and the objects that stand in it under short names."""

    def __init__(self, spec: Specialisation) -> None:
        self.spec = spec
        self.objects: dict[str, Any] = {"Miss": Miss}

    def name(self, stem: str, x: Any) -> str:
        name = f"{stem}{len(self.objects)}"
        self.objects[name] = x
        return name

    def path(self, entry: Callable[..., Any], finish: Callable[[Any], Any] | None,
             flatten: Callable[[Sequence[Any]], Sequence[Any]] | None) -> Callable[..., Any]:
        described, trace = self.spec.described, self.spec.trace
        params = [f"a{k}" for k in range(len(described.args))]
        conditions = [self._static(guard) for guard in trace.static_guards]
        if flatten is None:
            conditions += [f"type({a}) is {self.name('k', type(v))}" for a, v, leaf in zip(
                params, described.values, described.leaves) if not leaf.type.shape and not isinstance(v, np.ndarray)]
        reads = []
        for k, (capture, kind) in enumerate(zip(trace.captures, self.spec.kinds, strict=True)):
            reads.append(f"c{k} = {self._captured(capture.access, kind)}")
            if kind is not None:
                conditions.append(f"type(c{k}) is {self.name('k', kind)}")
        if flatten is None and not reads and not conditions and finish is None and not trace.written:
            return entry
        flat = params if flatten is None else [f"*{self.name('flatten', flatten)}(({', '.join([*params, ''])}))"]
        call = f"{self.name('entry', entry)}({', '.join([*flat, *(f'c{k}' for k in range(len(reads)))])})"
        if finish is not None:
            call = f"{self.name('finish', finish)}({call})"
        lines = [f"def call({', '.join(params)}):"]
        if reads or trace.static_guards:
            lines += ["    try:", *(f"        {read}" for read in reads),
                      f"        served = {' and '.join(conditions) or True}",
                      "    except (LookupError, AttributeError, ValueError, TypeError):",
                      "        raise Miss from None"]
            conditions = ["served"]
        if conditions:
            lines += [f"    if not ({' and '.join(conditions)}):", "        raise Miss"]
        lines.append(f"    return {call}")
        made: dict[str, Any] = {}
        head = f"def make({', '.join(self.objects)}):\n    "           # locals are read sooner than globals
        exec(head + "\n    ".join([*lines, "return call"]), made)      # no name in the text is the user's
        path: Callable[..., Any] = made["make"](**self.objects)
        return path

    def _access(self, access: Access) -> str:
        text = self.name("r", access.root)
        for step in access.steps:
            match step:
                case ("key" | "item", key):
                    text += f"[{self.name('i', key)}]"
                case ("attr", name):
                    text = f"{text}.{name}" if name.isidentifier() else f"getattr({text}, {name!r})"
                case ("cell", _):
                    text += ".cell_contents"
        return text

    def _captured(self, access: Access, kind: type | None) -> str:
        """Numbers as they are; Arrays and arrays of rank 0 as compiled code takes them."""
        value = access.get()
        plain = type(value) is not Array and not (isinstance(value, np.ndarray) and value.ndim == 0)
        return self._access(access) if plain else f"{self.name('captured', captured)}({self._access(access)})"

    def _static(self, guard: StaticGuard) -> str:
        match guard.kind:
            case "is":
                return f"{self._access(guard.access)} is {self.name('g', guard.expected)}"
            case "equal" if guard.expected is None or isinstance(guard.expected, bool):
                return f"{self._access(guard.access)} is {guard.expected}"
        return f"{self.name('holds', guard.holds)}()"


def _flattener(spec: Specialisation) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """From the user's arguments to flat leaves, raising Miss for another tree, other static parts or other kinds of
    number than those that were traced."""
    described, known = spec.described, {id(leaf): value for leaf, value in spec.trace.static_args}
    found, tree = FLATTEN(described.args, none_is_leaf=True)
    values = {id(leaf): value for leaf, value in zip(described.leaves, described.values)}
    statics = [(k, known.get(id(x), x)) for k, x in enumerate(found) if not isinstance(x, Leaf) or id(x) in known]
    kinds = [(k, type(values[id(x)])) for k, x in enumerate(found) if isinstance(x, Leaf) and id(x) not in known
             and not x.type.shape and not isinstance(values[id(x)], np.ndarray)]
    position = {id(x): k for k, x in enumerate(found)}
    picks = [position[id(leaf)] for leaf in described.leaves if id(leaf) not in known]
    orders = _dict_orders(described.args)

    def flatten(args: Sequence[Any]) -> Sequence[Any]:
        leaves, actual = FLATTEN(args, none_is_leaf=True)
        if actual != tree or (orders and _dict_orders(args) != orders):
            raise Miss
        for k, expected in statics:
            if leaves[k] is not expected and not same_value(leaves[k], expected):
                raise Miss
        for k, kind in kinds:
            if type(leaves[k]) is not kind:
                raise Miss
        return [leaves[k] for k in picks]

    return flatten


def _dict_orders(x: Any) -> list[tuple[Any, ...]]:
    """The order of the keys of each dict, which optree does not tell."""
    if isinstance(x, dict):
        return [tuple(x), *(order for v in x.values() for order in _dict_orders(v))]
    if isinstance(x, (tuple, list)):
        return [order for v in x for order in _dict_orders(v)]
    return []


def _finish(spec: Specialisation, convert: Sequence[Callable[[Any], Any] | None]) -> Callable[[Any], Any] | None:
    """From the entry's result to the user's; None where they are the same."""
    form = result_form(spec.trace.out_tree)
    if form == "one":
        return convert[0]
    if form == "tuple":
        if not any(convert):
            return None
        return lambda flat: tuple([x if c is None else c(x) for x, c in zip(flat, convert)])
    structure, count = spec.trace.out_tree, len(spec.func.returned)

    def build(flat: Any) -> Any:
        values = () if count == 0 else (flat,) if count == 1 else flat
        return rebuild(structure, [x if c is None else c(x) for x, c in zip(values, convert)])

    return build


def _with_arrays(table: Callable[..., Any], finish: Callable[[Any], Any] | None,
                 finish_arrays: Callable[[Any], Any] | None, always: bool) -> Callable[..., Any]:
    """Take flat arguments with Arrays among them; the result has Arrays then, or `always`."""
    ndarray = np.ndarray

    def call(*flat: Any) -> Any:
        for x in flat:
            if type(x) is Array:
                break
        else:
            result = table(*flat)
            last = finish_arrays if always else finish
            return result if last is None else last(result)
        result = table(*[x.view(ndarray) if type(x) is Array else x for x in flat])
        return result if finish_arrays is None else finish_arrays(result)

    return call
