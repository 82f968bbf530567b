"""From a function object to the text and syntax tree it was made from.

The text comes from the caller (`source=`) or through `linecache`, which knows files, IPython cells, zip imports, the
interactive prompt of Python 3.13, and whatever an `exec` registers there. Text can be out of date, and several
functions can share a line, so a definition counts as found only when it compiles to the function's own bytecode.
"""

import ast
import itertools
import linecache
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import gast

from gradsmith.transpiler.errors import Location, SourceText, TranspileError, error
from gradsmith.transpiler.frontend.bytecode import (
    Definition,
    compile_alone,
    definitions_in,
    global_names,
    matches,
    positions_of,
)


@dataclass(frozen=True)
class FunctionSource:
    """A function's definition. Lines in `node` are those of the user's file; columns, as in `ast`, count bytes."""

    node: gast.FunctionDef | gast.AsyncFunctionDef | gast.Lambda
    file: str
    first_line: int  # that of the first decorator, if there is one
    text: str  # of the definition, whole lines; of a lambda, the expression alone
    free_variables: tuple[str, ...]
    source: SourceText = field(repr=False, compare=False)  # all of the text that the definition stands in

    def location_of(self, node: gast.AST) -> Location:
        """Where `node`, which is this definition or a part of it, stands in the user's file."""
        placed = next((part for part in gast.walk(node) if hasattr(part, "lineno")), self.node)
        end_line = placed.end_lineno or placed.lineno
        end_column = placed.col_offset if placed.end_col_offset is None else placed.end_col_offset
        return Location(
            self.file,
            placed.lineno,
            self._characters(placed.lineno, placed.col_offset),
            end_line,
            self._characters(end_line, end_column),
            self.source,
        )

    def heading(self, node: gast.AST | None = None) -> Location:
        """The first line of the definition, or of one inside it; of a lambda, the lambda."""
        whole = self.location_of(self.node if node is None else node)
        text = whole.source_line
        if whole.end_line == whole.line or text is None:
            return whole
        return replace(whole, end_line=whole.line, end_column=len(text.rstrip()))

    def _characters(self, number: int, in_bytes: int) -> int:
        line = self.source.line(number)
        if line is None or line.isascii():
            return in_bytes
        return len(line.encode()[:in_bytes].decode(errors="ignore"))


# By code object, then by file and given text: code objects are equal when their code is, whatever their files.
_found: WeakKeyDictionary[CodeType, dict[tuple[str, str | None], FunctionSource]] = WeakKeyDictionary()
_found_lock = threading.Lock()


def find_source(fn: Callable[..., Any], source: str | None = None) -> FunctionSource:
    """The definition that `fn` was made from, out of `source` or of the file or cell that `fn` says it comes from."""
    if isinstance(fn, MethodType):
        fn = fn.__func__
    if not isinstance(fn, FunctionType):
        raise error(
            "E104",
            f"`{_name_of(fn)}` is not a function written in Python",
            label=f"it is a `{type(fn).__name__}`, which has no source to read",
            help="write in NumPy what it does, or call it outside and pass in its result",
        )
    code = fn.__code__
    key = (code.co_filename, source)
    with _found_lock:
        known = _found.get(code, {}).get(key)
    if known is None:
        known = _in_registered_text(fn) if source is None else _in_given_text(fn, source)
        with _found_lock:
            known = _found.setdefault(code, {}).setdefault(key, known)
    return known


def _in_registered_text(fn: FunctionType) -> FunctionSource:
    """First the text as it was first read, since an older text may be the right one; then as it is now."""
    code, text = fn.__code__, ""
    failure: TranspileError | None = None
    for refresh in (False, True):
        if refresh:
            linecache.checkcache(code.co_filename)
        found_text = "".join(_registered_lines(fn))
        if not found_text or found_text == text:
            continue
        text = found_text
        try:
            definitions = _parse(text)
        except SyntaxError as fault:
            failure = _stale(fn, _syntax_error_at(fault, code.co_filename, text))
            continue
        for candidates in _candidates(definitions, code):
            if chosen := _choose(candidates, code):
                return _function_source(chosen, code, SourceText(text))
        failure = _stale(fn, _where_it_was(definitions, code, text))
    raise failure or _no_source(fn)


def _in_given_text(fn: FunctionType, text: str) -> FunctionSource:
    code = fn.__code__
    # Indented text stands in a block that we open one line above it: dedenting would change strings inside.
    indented = text[: len(text) - len(text.lstrip())].rpartition("\n")[2] != ""
    try:
        definitions = _parse(f"if True:\n{text}" if indented else text)
    except (SyntaxError, ValueError) as fault:
        at = _syntax_error_at(fault, code.co_filename, text, lines_above=int(indented))
        message = f"the source given for `{fn.__qualname__}` is not valid Python"
        raise error("E105", message, at, label=getattr(fault, "msg", str(fault))) from None
    names = global_names(code)
    modules = frozenset(name for name in names if isinstance(fn.__globals__.get(name), ModuleType))
    tries = itertools.product((frozenset[str](), modules, names), _candidates(definitions, code))
    for imports, candidates in tries:
        if chosen := _choose(candidates, code, imports):
            above = int(indented)
            # Text cut out of a file or of a longer text takes the lines it has there.
            shift = max(code.co_firstlineno - (chosen.first_line - above), 0) - above
            return _function_source(chosen, code, SourceText(text, 1 + shift + above), shift)
    raise error(
        "E103",
        f"the source given does not hold `{fn.__qualname__}`",
        _only_line(code),
        label="no definition in it compiles to the code of this function",
        help="give the text of the definition as it stood when the function was made, decorators included",
    )


def _registered_lines(fn: FunctionType) -> list[str]:
    by_code = getattr(linecache, "_getlines_from_code", None)  # the interactive prompt and `-c`, from 3.13 on
    lines = by_code(fn.__code__) if by_code else []
    # Through the module's globals, linecache finds the loader of a module inside a zip file.
    return lines or linecache.getlines(fn.__code__.co_filename, fn.__globals__)


@lru_cache(maxsize=32)
def _parse(text: str) -> tuple[Definition, ...]:
    return definitions_in(ast.parse(text))


def _candidates(definitions: tuple[Definition, ...], code: CodeType) -> Iterator[list[Definition]]:
    """Definitions of the same name: those on the right line, then all the others, since text moves."""
    named = [definition for definition in definitions if definition.name == code.co_name]
    yield [definition for definition in named if definition.first_line == code.co_firstlineno]
    yield [definition for definition in named if definition.first_line != code.co_firstlineno]


def _choose(
    candidates: list[Definition], code: CodeType, imports: frozenset[str] = frozenset()
) -> Definition | None:
    """The candidate that compiles to `code`. Of several, which then mean the same, the one in the same columns.

    `imports`: names that the text may import above what it shows, as when only the definition is given.
    """
    fitting = [
        (candidate, compiled)
        for candidate in candidates
        if (compiled := compile_alone(candidate, code, imports)) and matches(compiled, code)
    ]
    if not fitting:
        return None
    in_place = (candidate for candidate, compiled in fitting if positions_of(compiled) == positions_of(code))
    return next(in_place, fitting[0][0])


def _function_source(chosen: Definition, code: CodeType, source: SourceText, shift: int = 0) -> FunctionSource:
    node = gast.ast_to_gast(chosen.node)
    if shift:
        gast.increment_lineno(node, shift)
    first_line, last_line = chosen.first_line + shift, node.end_lineno
    lines = [source.line(number) or "" for number in range(first_line, last_line + 1)]
    if isinstance(node, gast.Lambda):  # cut the end first: the lambda may be on one line
        lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
        lines[0] = lines[0].encode()[node.col_offset :].decode()
    text = "\n".join(lines) + ("" if isinstance(node, gast.Lambda) else "\n")
    return FunctionSource(node, code.co_filename, first_line, text, code.co_freevars, source)


def _name_of(fn: object) -> str:
    return getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or repr(fn)


def _only_line(code: CodeType) -> Location:
    return Location(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 0, SourceText("", 0))


def _where_it_was(definitions: tuple[Definition, ...], code: CodeType, text: str) -> Location:
    """The definition that now has the function's name, or else the line where the function was."""
    named = sorted(
        (definition.first_line for definition in definitions if definition.name == code.co_name),
        key=lambda line: abs(line - code.co_firstlineno),
    )
    line = named[0] if named else code.co_firstlineno
    source = SourceText(text)
    shown = source.line(line) or ""
    return Location(code.co_filename, line, len(shown) - len(shown.lstrip()), line, len(shown.rstrip()), source)


def _syntax_error_at(fault: Exception, file: str, text: str, lines_above: int = 0) -> Location:
    line = max((getattr(fault, "lineno", None) or 1) - lines_above, 1)
    column = max((getattr(fault, "offset", None) or 1) - 1, 0)
    return Location(file, line, column, line, column + 1, SourceText(text))


def _stale(fn: FunctionType, at: Location) -> TranspileError:
    return error(
        "E102",
        f"the source of `{fn.__qualname__}` is not what the running function was made from",
        at,
        label="edited after it was imported?",
        help="import the module again, or restart Python",
    )


def _no_source(fn: FunctionType) -> TranspileError:
    file = fn.__code__.co_filename
    kept_nowhere = f"text that Python did not keep ({file}): exec, eval or -c"
    origin = kept_nowhere if file.startswith("<") else f"{file}, which is not there"
    return error(
        "E101",
        f"the source of `{fn.__qualname__}` cannot be found",
        _only_line(fn.__code__),
        label=f"it was made from {origin}",
        help="put the function in a file, or give its text: source=...",
    )
