"""A whole Python module from lowered IR: header, imports, functions for Numba that also run as plain Python.

    func sum_logistic_grad(x: f64[n]):              @njit(cache=True, nogil=True, error_model="numpy")
      d_x = empty(n)                                def sum_logistic_grad(x):
      for i in 0 .. n carry (d_x_1 = d_x):              n = x.shape[0]
        ...                                             d_x = np.empty(n)
                                                        for i in range(n):
                                                            e = exp(-x[i])              # model.py:4
                                                            ...

The text depends on nothing but the arguments: no clock, no machine's path, no order of sets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir.dims import symbols_of
from ..ir.nodes import Check, Const, For, Func, Let, Module
from ..ir.walk import blocks, operands
from ..ops.base import RuleError
from ..stack import deep_stack
from . import standalone as alone
from .access import BUILTINS, Role
from .expressions import Expressions
from .names import RESERVED, Naming
from .noted import FAILED
from .numbers import PythonNumbers
from .plan import Plan
from .raising import filled_name, has_places
from .statements import INDENT, Line, Writer
from .storage import Storage
from .taking import taken_params

Guard = tuple[str, str]     # a condition over the parameters' shapes and sizes; the exception to raise unless it holds



@dataclass(frozen=True)
class Options:
    """How the text is written.  parallel: loops over `prange` where the IR says so.  standalone: import nothing of
    ours.  quick: allocate through gradsmith.kernels, for text that is compiled rather than read.  fills: exceptions put
    run-time values into their messages; else whoever catches them does.  notes: parallel loops may raise; the function
    then has one more parameter, an array of one truth value, that tells when its results are of no use (`noted`).
    decorator: False for plain functions, or the text to use instead of `@njit(...)`."""

    comments: bool = True
    parallel: bool = False
    standalone: bool = False
    quick: bool = False
    fills: bool = False
    notes: bool = False
    decorator: bool | str = True


@deep_stack()
def emit(func: Func | Module, *, name: str | None = None, doc: str = "", zero_d: Sequence[str] = (),
         guards: Sequence[Guard] = (), imports: Sequence[str] = (), options: Options | None = None,
         **choices: object) -> str:
    """The module's text.

    func     what is called from outside is the func, or the module's first
    name     what it is called in the text (the func's own name without it), followed by "_" where a kernel or
             Python has that name; it is the last function of the text
    doc      the module's docstring: what this is and where it comes from
    zero_d   parameters that arrive as arrays of rank 0 where the IR has scalars
    guards   checked on entry: `(condition, exception)`, both source text over parameters and size names
    imports  further import lines, such as that of the guards' exception
    choices  the fields of `Options`, instead of `options`

    RuleError: the IR has not been lowered, or the standalone text would need a kernel that NumPy lacks.
    """
    return emit_lines(func, name=name, doc=doc, zero_d=zero_d, guards=guards, imports=imports, options=options,
                      **choices).text


@dataclass(frozen=True)
class Emitted:
    """text: the module's.  functions: for each function of the text, the number of its first line below its `def`,
    counted from 1, its lines from there on, and how its values are written."""

    text: str
    functions: tuple[tuple[int, tuple[Line, ...], Plan, Storage], ...]


def emit_lines(func: Func | Module, *, name: str | None = None, doc: str = "", zero_d: Sequence[str] = (),
               guards: Sequence[Guard] = (), imports: Sequence[str] = (), options: Options | None = None,
               **choices: object) -> Emitted:
    """As `emit`, with the statements that each line of the text comes from."""
    options = options or Options(**choices)  # type: ignore[arg-type]
    funcs = func.funcs if isinstance(func, Module) else (func,)
    functions = _function_names(funcs, name)
    plans = list(map(Plan, funcs))
    taken = taken_params(plans[1:])
    while True:
        callees = replace(options, parallel=False, notes=False)
        written = [*(_Function(one, functions, callees, (), (), taken, is_entry=False) for one in plans[1:]),
                   _Function(plans[0], functions, options, zero_d, guards, taken)]
        called = set().union(*(one.kernels for one in written))
        if called.isdisjoint(functions.values()):
            break
        functions = {key: f"{text}_" if text in called else text for key, text in functions.items()}
    texts = [one.text() for one in written]
    kernels = set[str]().union(*(text.kernels for text in texts))
    helpers = [text for text in map(alone.helper, sorted(called)) if text is not None] if options.standalone else []
    body = "\n\n\n".join([*helpers, *(text.source for text in texts)])
    if options.quick and not options.standalone:
        body, allocations = _own_allocations(body)
        kernels |= allocations
    header = [f'"""{doc.strip()}\n"""' if "\n" in doc.strip() else f'"""{doc.strip()}"""', ""] if doc.strip() else []
    lines = _imports(body, kernels, options, imports)
    before = "\n".join([*header, *lines, *(["", ""] if lines else []), ""])
    starts, at = [], before.count("\n") + 1 + sum(text.count("\n") + 3 for text in helpers)
    for text in texts:
        starts.append(at + text.head)
        at += text.source.count("\n") + 3
    return Emitted(before + body + "\n", tuple(
        (start, text.lines, one.plan, one.storage) for start, text, one in zip(starts, texts, written)))


def _own_allocations(body: str) -> tuple[str, set[str]]:
    """`np.empty(n)` as `empty(n)` of ours: Numba compiles a function for each rank of the former, which takes 60 ms."""
    found = set(re.findall(r"\bnp\.(empty|zeros)\(", body))
    return re.sub(r"\bnp\.(empty|zeros)\(", r"\1(", body), found


def _function_names(funcs: Sequence[Func], name: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for func in funcs:
        wanted = name if name is not None and func is funcs[0] else func.name
        wanted = re.sub(r"\W", "_", wanted)
        while wanted in found.values() or wanted in RESERVED:
            wanted += "_"
        found[func.name] = wanted
    return found


def _imports(body: str, kernels: set[str], options: Options, more: Sequence[str]) -> list[str]:
    lines = ["import math"] if re.search(r"\bmath\.", body) else []
    third = ["import numpy as np"] if re.search(r"\bnp\.", body) else []
    wanted = (["njit"] if options.decorator is True else []) + (["objmode"] if "with objmode():" in body else [])
    wanted += ["prange"] if "in prange(" in body else []
    if wanted:
        third.append(f"from numba import {', '.join(wanted)}")
    ours = [f"from gradsmith.kernels import {', '.join(sorted(kernels))}"] if kernels else []
    if ours and len(ours[0]) > 110:
        names = "".join(f"{INDENT}{kernel},\n" for kernel in sorted(kernels))
        ours = [f"from gradsmith.kernels import (\n{names})"]
    groups = [group for group in (lines, third, [*ours, *more]) if group]
    return [line for k, group in enumerate(groups) for line in (*([""] if k else []), *group)]


@dataclass(frozen=True)
class _Text:
    source: str
    kernels: set[str]
    head: int
    lines: tuple[Line, ...]


class _Function:
    """One function of the module."""

    def __init__(self, plan: Plan, functions: Mapping[str, str], options: Options, zero_d: Sequence[str],
                 guards: Sequence[Guard], taken: Mapping[str, frozenset[int]], is_entry: bool = True) -> None:
        self.plan, self.func, self.is_entry = plan, plan.func, is_entry
        self.functions = functions
        self.options = options
        self.zero_d = zero_d
        self.guards = guards
        self.storage = Storage(self.plan, options.parallel, options.notes, taken)
        self.kernels = self._kernels()
        sizes = self._sizes()
        self.naming = Naming(self.plan, self.storage, sizes, {*functions.values(), *self.kernels})
        rewrite = alone.without_kernels if options.standalone else None
        self.expressions = Expressions(self.plan, self.naming, rewrite)
        self.numbers = PythonNumbers(self.plan, zero_d)
        self.expressions.numpy_first = self.numbers.operations

    def _kernels(self) -> set[str]:
        """What the templates and the guards call that is neither built in nor of a module."""
        found: set[str] = set()
        for stmt in self.plan.statements():
            if isinstance(stmt, Let) and self.plan.roles[stmt] not in (Role.LOAD, Role.SLICE, Role.STORE, Role.ADD):
                found |= {node.func.id for node in ast.walk(self.plan.template(stmt).tree)
                          if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        for condition, _ in self.guards:
            found |= {node.func.id for node in ast.walk(ast.parse(condition, mode="eval"))
                      if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        if self.options.fills:
            found |= {filled_name(s.kind) for s in self.plan.statements() if isinstance(s, Check) and has_places(s)}
        if not self.options.standalone and any(isinstance(s, For) and s.abreast for s in self.plan.statements()):
            found.add("abreast")
        return found - BUILTINS

    def _sizes(self) -> list[str]:
        """Named sizes in the text, other than those named after a scalar, in order of the parameters' shapes."""
        used: set[str] = set()
        for stmt in self.plan.statements():
            for dim in self.plan.written_dims(stmt):
                used |= symbols_of(dim).keys()
        for value in self._shaped_constants():
            for dim in value.type.shape:
                used |= symbols_of(dim).keys()
        for condition, exception in self.guards:
            for text in (condition, exception):
                used |= {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
        known = {s for param in self.func.params for d in param.type.shape for s in symbols_of(d)}
        ordered = [s for param in self.func.params for d in param.type.shape for s in symbols_of(d)]
        return [s for s in dict.fromkeys(ordered) if s in used & known and s not in self.plan.int_scalars]

    def _shaped_constants(self) -> list[Const]:
        values = list(self.func.results)
        for stmt in self.plan.statements():
            values += operands(stmt)
            for inner in blocks(stmt):
                values += inner.results
        return [v for v in map(self.plan.value, values) if isinstance(v, Const)]

    def text(self) -> _Text:
        writer = Writer(self.plan, self.storage, self.naming, self.expressions, dict(self.functions),
                        self.is_entry, self.options.fills)
        writer.known = {*self.functions.values(), *self.kernels}
        if self.options.notes:
            writer.failed = self.naming.fresh(FAILED)
        for param in self.func.params:
            if param.name in self.zero_d:
                writer.line(f"{self.naming.of(param)} = {self.naming.of(param)}[()]")
        for param in self.numbers.params:
            name = self.naming.of(param)
            writer.line(f"{name} = np.{param.type.dtype}({name})")
        self._bind_sizes(writer)
        for condition, exception in self.guards:
            self._guard(writer, self._renamed(condition))
            writer.lines.append(Line(2, f"raise {self._renamed(exception)}"))
        writer.function(self.func)
        params = ", ".join([*map(self.naming.of, self.func.params), *([writer.failed] if writer.failed else [])])
        head = [] if self.options.decorator is False else [self._decorator()]
        head.append(f"def {self.functions[self.func.name]}({params}):")
        kernels = set() if self.options.standalone else self.kernels
        own = "\n".join([*head, *(line.render(self.options.comments) for line in writer.lines)])
        before = "".join(f"{text}\n\n\n" for text in writer.trips)
        return _Text(before + own, kernels, before.count("\n") + len(head), tuple(writer.lines))

    def _guard(self, writer: Writer, condition: str) -> None:
        """`if not (...):`, a long conjunction on several lines."""
        tree = ast.parse(condition, mode="eval").body
        parts = [ast.unparse(p) for p in tree.values] if isinstance(tree, ast.BoolOp) and isinstance(
            tree.op, ast.And) else [condition]
        rows = [f"if not ({parts[0]}"]
        for part in parts[1:]:
            if len(rows[-1]) + len(part) < 90:
                rows[-1] += f" and {part}"
            else:
                rows.append(f"        and {part}")
        for row in (*rows[:-1], f"{rows[-1]}):"):
            writer.line(row)

    def _decorator(self) -> str:
        if isinstance(self.options.decorator, str):
            return self.options.decorator
        parallel = ", parallel=True" if self.storage.prange else ""
        return f'@njit(cache=True, nogil=True, error_model="numpy"{parallel})'

    def _renamed(self, text: str) -> str:
        names = self.naming.sizes | {param.name: self.naming.of(param) for param in self.func.params}
        return re.sub(r"(?<![\w.])[^\W\d]\w*", lambda match: names.get(match[0], match[0]), text)

    def _bind_sizes(self, writer: Writer) -> None:
        """`n = x.shape[0]`, from the first bare occurrence; else solved from an affine one."""
        for size, text in self.naming.sizes.items():
            writer.line(f"{text} = {self._solved(size)}")

    def _solved(self, size: str) -> str:
        places = [(param, axis, dim) for param in self.func.params for axis, dim in enumerate(param.type.shape)
                  if size in symbols_of(dim)]
        for param, axis, dim in places:
            if str(dim) == size:
                return f"{self.naming.of(param)}.shape[{axis}]"
        for param, axis, dim in places:
            terms = dict(dim.terms)
            offset = terms.pop((), 0)
            ((factors, scale),) = terms.items() if len(terms) == 1 else [((), 0)]
            if [str(factor) for factor in factors] == [size]:
                shape = f"{self.naming.of(param)}.shape[{axis}]"
                moved = f"{shape} {'-' if offset > 0 else '+'} {abs(offset)}" if offset else shape
                return moved if scale == 1 else f"({moved}) // {scale}"
        raise RuleError(f"the size {size} cannot be found from the shapes of the parameters")
