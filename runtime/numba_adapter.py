"""What stands between people's `njit` code and a compiled entry, which takes and returns flat leaves.

For arguments or results that are tuples, or a function that reads numbers and arrays from outside, an adapter such as
this is written, for Numba to compile:

    def loss_value_and_grad(a0, a1):
        with objmode(c0=k0):            # captures are read when the function is called, as always
            c0 = read0()
        r = entry(a0[0], a0[1], a1, c0)
        return r[0], (r[1], r[2])
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from numba import objmode, typeof, types

from .array import captured
from .specialise import Specialisation
from .transpiler.frontend.guards import Access
from .transpiler.frontend.trees import LeafNode, StaticNode, Structure

TUPLE: Any = types.BaseTuple        # Numba's own hints know only some of its attributes
CONSTANTS = (type(None), bool, int, float)


class NotInNumba(Exception):
    """The function takes or returns what compiled code cannot hold."""


class Adapter:
    """The text of the adapter of a specialisation to arguments of these Numba types, and the objects in it."""

    def __init__(self, spec: Specialisation, args: tuple[Any, ...], who: str) -> None:
        self.objects: dict[str, Any] = {"objmode": objmode}
        params = [f"a{k}" for k in range(len(args))]
        flat = [text for param, type in zip(params, args) for text in _leaves(param, type)]
        lines = [f"def {spec.name}({', '.join(params)}):"]
        types_of_captures = spec.signature[len(spec.signature) - len(spec.trace.captures):]
        for k, (capture, type) in enumerate(zip(spec.trace.captures, types_of_captures, strict=True)):
            self.objects |= {f"k{k}": type, f"read{k}": _reader(capture.access, type, who)}
            lines += [f"    with objmode(c{k}=k{k}):", f"        c{k} = read{k}()"]
            flat.append(f"c{k}")
        lines.append(f"    r = entry({', '.join(flat)})")
        count = len(spec.func.returned)
        results = ["r"] if count == 1 else [f"r[{k}]" for k in range(count)]
        lines.append(f"    return {self._built(spec.trace.out_tree, results, who)}")
        self.name, self.text = spec.name, "\n".join(lines) + "\n"

    def _built(self, node: Structure, results: list[str], who: str) -> str:
        """The user's result from the entry's; uses up `results`."""
        if isinstance(node, LeafNode):
            return results.pop(0)
        if isinstance(node, StaticNode):
            if type(node.value) in CONSTANTS:
                return self._constant(node.value) if isinstance(node.value, float) else repr(node.value)
            raise NotInNumba(f"{who} returns {node.value!r}, which compiled code cannot hold")
        parts = "".join(f"{self._built(child, results, who)}, " for child in node.children)
        if node.kind == "tuple":
            return f"({parts})"
        if node.kind == "namedtuple":
            return f"{self._constant(node.cls)}({parts})"
        raise NotInNumba(f"{who} returns a {node.cls.__name__}: in compiled code, it must return a number, an array or "
                         "tuples of them")

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.objects)}"
        self.objects[name] = value
        return name

    def function(self, entry: Any) -> Callable[..., Any]:
        """The adapter in Python, around what Numba is to call."""
        file = f"<adapter of {self.name}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        space = {**self.objects, "entry": entry}            # without a module's name, Numba looks up names here
        exec(compile(self.text, file, "exec"), space)       # the text holds no names of the user's but the function's
        made: Callable[..., Any] = space[self.name]
        return made


def _leaves(text: str, type: Any) -> list[str]:
    if isinstance(type, (types.NoneType, types.Omitted)):
        return []
    if isinstance(type, TUPLE):
        return [leaf for k, part in enumerate(type.types) for leaf in _leaves(f"{text}[{k}]", part)]
    return [text]


def _reader(access: Access, type: Any, who: str) -> Callable[[], Any]:
    """Reads a capture, which must still be of the type that the code was compiled for."""

    def read() -> Any:
        value = captured(access.get())
        if typeof(value) != type:
            raise TypeError(f"{who} reads {access}, which was of type {type} when the code that calls it was compiled, "
                            f"and is now of type {typeof(value)}")
        return value

    return read
