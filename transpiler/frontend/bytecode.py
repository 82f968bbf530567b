"""Is this definition what that code object was compiled from? Compile it again, alone, and compare."""

import __future__

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from operator import or_
from types import CodeType

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURES = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
_SHAPE_FLAGS = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


@dataclass(frozen=True)
class Definition:
    """A `def` or `lambda` in some text, with what the compiler looks at outside of it."""

    node: FunctionNode
    class_name: str | None  # of the class around it, which mangles private names
    # Names that the text imports at its top level, for method calls on them compile differently; and `super`, if it
    # is mentioned there, for the same reason.
    imports: frozenset[str]

    @property
    def name(self) -> str:
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def first_line(self) -> int:
        """As `co_firstlineno` counts: a decorator belongs to the function."""
        decorators = [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list
        return min([self.node.lineno, *(decorator.lineno for decorator in decorators)])


def definitions_in(tree: ast.Module) -> tuple[Definition, ...]:
    """All definitions in `tree`, in the order of the text."""
    imports = frozenset(_top_level_imports(tree))
    definitions = []
    # By hand, not by recursion: a long chain such as `a + b + c + ...` is as deep as it is long.
    pending: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while pending:
        node, inside = pending.pop()
        if isinstance(node, FunctionNode):
            definitions.append(Definition(node, inside, imports))
        children = [(child, inside) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.ClassDef):
            name, body = node.name, set(map(id, node.body))
            children = [(child, name if id(child) in body else inside) for child, _ in children]
        pending += reversed(children)
    return tuple(definitions)


def _top_level_imports(tree: ast.Module) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and node.id == "super":
            yield node.id
        elif not isinstance(node, FunctionNode | ast.ClassDef):
            pending += ast.iter_child_nodes(node)


def compile_alone(
    definition: Definition, like: CodeType, more_imports: frozenset[str] = frozenset()
) -> CodeType | None:
    """`definition` compiled where the free variables of `like` are variables of an enclosing function.

    Positions are kept, because the compiler's choices depend on lines. What surrounds the body is evaluated
    elsewhere and left out: decorators, default values, annotations.
    """
    node = _without_surroundings(definition.node)
    inner: ast.Expr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    inner = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    class_name = definition.class_name or ("_" if "__class__" in like.co_freevars else None)
    if class_name:
        body, inner = inner, _class(class_name)
        inner.body = [body]
    outer_names = [name for name in like.co_freevars if name.isidentifier() and name != "__class__"]
    declared: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in outer_names]
    if not isinstance(inner, ast.Expr) and inner.name not in like.co_freevars:
        declared.append(ast.Global([inner.name]))  # else what is inside would see it as a variable of `_`
    outer = _function("_")
    outer.body = [*declared, inner]
    imports = [name for name in sorted(definition.imports | more_imports) if name.isidentifier()]
    imported: list[ast.stmt] = [ast.Import([ast.alias(name) for name in imports])] if imports else []
    module = ast.fix_missing_locations(ast.Module([*imported, outer], []))
    flags = like.co_flags & _FUTURES
    try:
        code = compile(module, like.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    for _ in range(3 if class_name else 2):
        code = next(const for const in code.co_consts if isinstance(const, CodeType))
    return code


def _function(name: str) -> ast.FunctionDef:
    (function,) = ast.parse(f"def {name}(): pass").body
    assert isinstance(function, ast.FunctionDef)
    return function


def _class(name: str) -> ast.ClassDef:
    (made,) = ast.parse(f"class {name}: pass").body
    assert isinstance(made, ast.ClassDef)
    return made


def _without_surroundings(node: FunctionNode) -> FunctionNode:
    bare = copy.copy(node)
    bare.args = copy.copy(node.args)
    for part in ("posonlyargs", "args", "kwonlyargs"):
        setattr(bare.args, part, [_without_annotation(arg) for arg in getattr(node.args, part)])
    bare.args.vararg = _without_annotation(node.args.vararg) if node.args.vararg else None
    bare.args.kwarg = _without_annotation(node.args.kwarg) if node.args.kwarg else None
    bare.args.defaults = [_placeholder(default) for default in node.args.defaults]
    bare.args.kw_defaults = [default and _placeholder(default) for default in node.args.kw_defaults]
    if not isinstance(bare, ast.Lambda):
        # A decorator moves the function's first line, and with it what the compiler does about empty lines.
        bare.decorator_list = [_placeholder(decorator) for decorator in bare.decorator_list]
        bare.returns = None
        if hasattr(bare, "type_params"):
            bare.type_params = []
    return bare


def _without_annotation(arg: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(arg.arg), arg)


def _placeholder(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Constant(None), node)


def matches(compiled: CodeType, running: CodeType) -> bool:
    """Do both do the same? Names of functions, lines and files may differ."""
    if _is_rewritten_by_pytest(running):
        return _mentions_the_same(compiled, running)
    return (
        compiled.co_code == running.co_code
        and compiled.co_exceptiontable == running.co_exceptiontable
        and compiled.co_names == running.co_names
        and compiled.co_varnames == running.co_varnames
        and compiled.co_cellvars == running.co_cellvars
        and _same_interface(compiled, running)
        and len(compiled.co_consts) == len(running.co_consts)
        and all(map(_same_constant, compiled.co_consts, running.co_consts))
    )


def _same_interface(compiled: CodeType, running: CodeType) -> bool:
    return (
        compiled.co_freevars == running.co_freevars
        and compiled.co_argcount == running.co_argcount
        and compiled.co_posonlyargcount == running.co_posonlyargcount
        and compiled.co_kwonlyargcount == running.co_kwonlyargcount
        and compiled.co_flags & _SHAPE_FLAGS == running.co_flags & _SHAPE_FLAGS
    )


def _same_constant(a: object, b: object) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return matches(a, b)
    return _constant_key(a) == _constant_key(b)


def _constant_key(value: object) -> object:
    """Equal only for constants that behave alike: 1 is not 1.0 is not True, 0.0 is not -0.0, but nan is nan."""
    match value:
        case tuple():
            return tuple, tuple(map(_constant_key, value))
        case frozenset():
            return frozenset, frozenset(map(_constant_key, value))
        case _:
            return type(value), repr(value)


def _is_rewritten_by_pytest(code: CodeType) -> bool:
    return "@pytest_ar" in code.co_names or any(
        _is_rewritten_by_pytest(const) for const in code.co_consts if isinstance(const, CodeType)
    )


def _mentions_the_same(compiled: CodeType, running: CodeType) -> bool:
    """pytest rewrites functions with `assert`, adding code; then all that can be asked is that nothing is missing."""
    arguments = compiled.co_argcount + compiled.co_kwonlyargcount
    inner = [const for const in compiled.co_consts if isinstance(const, CodeType)]
    running_inner = [const for const in running.co_consts if isinstance(const, CodeType)]
    constants = {_constant_key(const) for const in compiled.co_consts if not isinstance(const, CodeType | str)}
    return (
        _same_interface(compiled, running)
        and compiled.co_varnames[:arguments] == running.co_varnames[:arguments]
        and set(compiled.co_varnames) <= set(running.co_varnames)
        and set(compiled.co_names) - {"AssertionError"} <= set(running.co_names)
        and constants <= set(map(_constant_key, running.co_consts))
        and len(inner) == len(running_inner)
        and all(map(matches, inner, running_inner))
    )


def global_names(code: CodeType) -> frozenset[str]:
    """Every name that `code`, or code inside it, may read from its module; some are attributes."""
    inner = (global_names(const) for const in code.co_consts if isinstance(const, CodeType))
    return frozenset(code.co_names).union(*inner)


def positions_of(code: CodeType) -> list[tuple[int | None, ...]]:
    """Where each instruction comes from, to tell apart functions on one line."""
    return list(code.co_positions())
