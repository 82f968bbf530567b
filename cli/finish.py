"""What stands around the compiled function in a generated module: type checks, defaults, containers.

A function on numbers and arrays is the compiled function itself.  One whose arguments or result are tuples in tuples,
lists or dicts is a thin plain function around it:

    def loss_grad(params, x):
        d_w, d_b = _loss_grad(params["w"], params["b"], x)
        return {"w": d_w, "b": d_b}
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradsmith.transpiler.errors import error
from gradsmith.transpiler.frontend.guards import Capture
from gradsmith.transpiler.frontend.trace import Trace
from gradsmith.transpiler.frontend.trees import LeafNode, StaticNode, Structure, TreeNode, leaf_count
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.library import Program
from gradsmith.transpiler.ir.nodes import Var

from .chain import Applied

INDENT = "    "


@dataclass(frozen=True)
class Entry:
    """The function that the module is for.  name: what other code imports.  described: its types, for
    messages."""

    trace: Trace
    applied: Applied
    func: Program
    captures: Sequence[tuple[Var, Capture]]
    name: str
    described: str

    @property
    def is_flat(self) -> bool:
        """Whether the compiled function has the user's own arguments and result."""
        plain = all(isinstance(tree, Leaf) for tree in self.applied.arguments)
        nothing = bool(self.func.effects) and self.trace.out_tree == StaticNode(None)
        return plain and (nothing or is_flat(self.trace.out_tree))

    @property
    def compiled_name(self) -> str:
        return self.name if self.is_flat else f"_{self.name}"


def is_flat(out: Structure) -> bool:
    """One number or array, or a tuple of at least two of them."""
    if isinstance(out, TreeNode):
        return out.kind == "tuple" and len(out.children) > 1 and all(isinstance(c, LeafNode) for c in out.children)
    return isinstance(out, LeafNode)


def finished_text(text: str, entry: Entry) -> str:
    """The emitted module with the checks and defaults in its function, and the wrapper below where there is one."""
    lines = text.split("\n")
    at, params = _definition(lines, entry.compiled_name)
    defaults = _defaults(entry)
    plain = params[:len(params) - len(defaults)]
    given = [f"{name}={value}" for name, value in zip(params[len(plain):], defaults)]
    lines[at] = f"def {entry.compiled_name}({', '.join([*plain, *given])}):"
    lines[at + 1:at + 1] = _checks(entry, params)
    text = "\n".join(lines)
    if entry.is_flat:
        return _with_imports(text)
    return _with_imports(text.rstrip("\n") + "\n\n\n" + _wrapper(entry, lines[at:], defaults, params))


def _definition(lines: Sequence[str], name: str) -> tuple[int, list[str]]:
    """Where the function's head stands, and its parameters as they are called there."""
    for k, line in enumerate(lines):
        found = re.fullmatch(rf"def {name}\((.*)\):", line)
        if found:
            return k, [p.strip() for p in found[1].split(",") if p.strip()]
    raise AssertionError(f"no def of {name}")


def _with_imports(text: str) -> str:
    """The text with what the added lines use imported, too."""
    if "import numpy as np\n" not in text and re.search(r"\bnp\.", text):
        text = re.sub(r"^from numba import", "import numpy as np\nfrom numba import", text, count=1, flags=re.MULTILINE)
    if " = namedtuple(" in text:
        text = re.sub(r"^(import|from) ", r"from collections import namedtuple\n\n\1 ", text, count=1,
                      flags=re.MULTILINE)
    return text


# ---------------------------------------------------------------------------------------------------------------
# types and defaults


def _checks(entry: Entry, params: Sequence[str]) -> list[str]:
    """Ranks and dtypes are checked before anything else is read from the arguments; numbers are converted."""
    arrays = [(name, p.type) for name, p in zip(params, entry.func.params) if p.type.shape]
    conditions = [f"{name}.ndim != {type.rank}" for name, type in arrays]
    # Numba can compare dtypes by == alone, and it prunes what follows a rank that does not fit.
    conditions += [f'not ({name}.dtype == np.dtype("{type.dtype}"))' for name, type in arrays]
    lines: list[str] = []
    if conditions:
        lines += _condition(conditions, f'raise TypeError("{entry.name} was generated for {entry.described}")')
    converted = {name: _CONVERSIONS[p.type.dtype] for name, p in zip(params, entry.func.params)
                 if not p.type.shape and p.type.dtype in _CONVERSIONS}
    if converted:
        calls = ", ".join(f"{function}({name})" for name, function in converted.items())
        lines.append(f"{INDENT}{', '.join(converted)} = {calls}")
    return lines


# A number may come as another kind of number: an int where a float was meant.
_CONVERSIONS = {"float64": "float", "float32": "np.float32", "complex128": "complex", "complex64": "np.complex64"}


def _condition(parts: Sequence[str], statement: str) -> list[str]:
    """`if a or b:` and the statement; over several lines where it is long."""
    rows = [parts[0]]
    for part in parts[1:]:
        if len(rows[-1]) + len(part) < 95:
            rows[-1] += f" or {part}"
        else:
            rows.append(f"or {part}")
    if len(rows) == 1:
        return [f"{INDENT}if {rows[0]}:", f"{INDENT * 2}{statement}"]
    return [f"{INDENT}if ({rows[0]}", *(f"{INDENT * 3}{row}" for row in rows[1:-1]), f"{INDENT * 3}{rows[-1]}):",
            f"{INDENT * 2}{statement}"]


def _defaults(entry: Entry) -> list[str]:
    """Source of the captured numbers' values as they are now, for the last parameters."""
    return [literal(capture.get()) for param, capture in entry.captures if not param.type.shape]


def literal(value: Any) -> str:
    """Source text for a number, string, None or a container of them.  TranspileError for anything else."""
    if isinstance(value, np.generic):
        native = value.item()
        return literal(native) if value.dtype.name in ("float64", "int64", "bool", "complex128") else (
            f"np.{value.dtype.name}({literal(native)})")
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, (bool, int, float, complex)):
        return repr(value)
    if type(value) is tuple:
        inside = ", ".join(map(literal, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if type(value) is list:
        return f"[{', '.join(map(literal, value))}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    raise error("E406", f"the result holds a {type(value).__name__}, which a generated module cannot make",
                help="return numbers, arrays, tuples, lists and dicts, or use gradsmith from Python")


# ---------------------------------------------------------------------------------------------------------------
# containers


def _wrapper(entry: Entry, compiled: Sequence[str], defaults: Sequence[str], params: Sequence[str]) -> str:
    arguments = [text for name, tree in zip(entry.applied.names, entry.applied.arguments)
                 for text in _paths(tree, name)]
    captured = list(params[len(arguments):])
    heads = [*entry.applied.names, *captured[:len(captured) - len(defaults)],
             *(f"{p}={d}" for p, d in zip(captured[len(captured) - len(defaults):], defaults))]
    results = _names_in_wrapper(entry, compiled, {*entry.applied.names, *captured})
    call = f"{entry.compiled_name}({', '.join([*arguments, *captured])})"
    supply = iter(results)
    tuples: dict[str, Sequence[str]] = {}
    out = entry.trace.out_tree
    returned = _expression(out, supply, tuples)
    if isinstance(out, TreeNode) and out.kind == "tuple" and len(out.children) > 1:
        returned = returned[1:-1]
    first = f"{INDENT}{', '.join(results)} = {call}" if results else f"{INDENT}{call}"
    body = [f"def {entry.name}({', '.join(heads)}):", first, f"{INDENT}return {returned}"]
    named = [f"{cls} = namedtuple({literal(cls)}, {literal(list(fields))})" for cls, fields in tuples.items()]
    return "\n".join([*named, "", "", *body] if named else body) + "\n"


def _paths(tree: Any, text: str) -> list[str]:
    """Source text for each leaf of an argument."""
    if isinstance(tree, Leaf):
        return [text]
    if isinstance(tree, dict):
        return [path for key, part in tree.items() for path in _paths(part, f"{text}[{literal(key)}]")]
    if not isinstance(tree, (tuple, list)):
        return []
    return [path for k, part in enumerate(tree) for path in _paths(part, f"{text}[{k}]")]


def _names_in_wrapper(entry: Entry, compiled: Sequence[str], taken: set[str]) -> list[str]:
    """What the compiled function calls its results, where those are words; else what they are."""
    count = len(entry.func.returned)
    tree = ast.parse("\n".join(compiled)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    last = tree.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    parts = list(value.elts) if isinstance(value, ast.Tuple) and count > 1 else [value]
    written = [part.id if isinstance(part, ast.Name) else None for part in parts]
    known = entry.func.result_names or [f"result_{k}" for k in range(count)]
    names = [w or k for w, k in zip(written, known)] if len(written) == count else list(known)
    return names if len(set(names)) == count and not set(names) & taken else [f"result_{k}" for k in range(count)]


def result_names(out: Structure, applied: Applied, count: int, params: Sequence[Var]) -> tuple[str, ...]:
    """`d_x` for the derivative by x, `value` and `t_value` for a value and its tangent; () where they are neither."""
    derived = [f"d_{params[k].name}" for k in applied.differentiated(params)]
    heads: list[str] = []
    if applied.with_value and isinstance(out, TreeNode) and out.children:
        values = leaf_count(out.children[0])
        heads = ["value"] if values == 1 else [f"value_{k}" for k in range(values)]
        if applied.kind == "jvp":
            derived = [f"t_{head}" for head in heads]
    names = [*heads, *derived]
    return tuple(names) if len(names) == count and len(set(names)) == count else ()


def _expression(node: Structure, leaves: Any, tuples: dict[str, Sequence[str]]) -> str:
    """Source text of the user's result; named tuples that it needs are put into `tuples`."""
    if isinstance(node, LeafNode):
        return next(leaves)
    if isinstance(node, StaticNode):
        return literal(node.value)
    parts = [_expression(child, leaves, tuples) for child in node.children]
    match node.kind:
        case "dict" if node.cls is dict:
            return "{" + ", ".join(f"{literal(key)}: {part}" for key, part in zip(node.keys, parts)) + "}"
        case "list" if node.cls is list:
            return f"[{', '.join(parts)}]"
        case "tuple":
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        case "namedtuple":
            tuples[node.cls.__name__] = node.cls._fields  # type: ignore[attr-defined]
            return f"{node.cls.__name__}({', '.join(parts)})"
    raise error("E406", f"the result holds a {node.cls.__name__}, which a generated module cannot make",
                help="return numbers, arrays, tuples, lists and dicts, or use gradsmith from Python")
