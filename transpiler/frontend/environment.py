"""Names: which scope a name belongs to, and the frame of one call, whose variables nested functions see."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gast

from .purity import is_standard
from .source import FunctionSource

if TYPE_CHECKING:
    from ..errors import Location

FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


@dataclass(frozen=True)
class Scope:
    """Names that a function (or comprehension) binds, and those it declares otherwise."""

    local: frozenset[str]
    nonlocal_: frozenset[str] = frozenset()
    global_: frozenset[str] = frozenset()
    is_generator: bool = False


def scope_of(node: Any) -> Scope:
    """The scope of a function, lambda or comprehension; found once per node."""
    known = getattr(node, "_gradsmith_scope", None)
    if known is None:
        known = _find_scope(node)
        node._gradsmith_scope = known
    return known


def _find_scope(node: Any) -> Scope:
    bound: set[str] = set()
    if isinstance(node, COMPREHENSIONS):
        for part in node.generators:
            bound.update(n.id for n in gast.walk(part.target) if isinstance(n, gast.Name))
        return Scope(frozenset(bound))
    arguments = node.args
    for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if arg is not None:
            bound.add(arg.id)
    nonlocals: set[str] = set()
    globals_: set[str] = set()
    is_generator = False
    for part in _own_nodes(node.body if isinstance(node.body, list) else [node.body]):
        match part:
            case gast.Name(ctx=gast.Store() | gast.Del()):
                bound.add(part.id)
            case gast.FunctionDef() | gast.AsyncFunctionDef() | gast.ClassDef():
                bound.add(part.name)
            case gast.Import() | gast.ImportFrom():
                bound.update(a.asname or a.name.partition(".")[0] for a in part.names)
            case gast.Nonlocal():
                nonlocals.update(part.names)
            case gast.Global():
                globals_.update(part.names)
            case gast.Yield() | gast.YieldFrom() | gast.Await():
                is_generator = True
            case gast.MatchAs() | gast.MatchStar() if part.name:
                bound.add(part.name)
            case gast.MatchMapping() if part.rest:
                bound.add(part.rest)
    return Scope(frozenset(bound - nonlocals - globals_), frozenset(nonlocals), frozenset(globals_), is_generator)


def _own_nodes(body: list[Any]) -> Iterator[Any]:
    """Nodes of this scope: into comprehensions only for their walruses and their first iterable."""
    pending = [(node, False) for node in reversed(body)]
    while pending:
        node, inside = pending.pop()
        if inside and isinstance(node, gast.NamedExpr):
            yield node.target
        if not inside:
            yield node
        if isinstance(node, FUNCTIONS):
            outer = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
            outer += [] if isinstance(node, gast.Lambda) else node.decorator_list
            pending += [(child, inside) for child in outer]
            continue
        if isinstance(node, gast.ClassDef):
            continue
        within = inside or isinstance(node, COMPREHENSIONS)
        pending += [(child, within) for child in reversed(list(gast.iter_child_nodes(node)))]


@dataclass(eq=False)
class Frame:
    """One call of a function, or one run of a comprehension inside it (then `parent` is what it stands in)."""

    source: FunctionSource
    scope: Scope
    parent: Frame | None
    globals: dict[str, Any]
    cells: Mapping[str, Any]
    name: str
    class_name: str | None = None         # of the class that the function stands in: private names are mangled
    first: Any = MISSING                  # the first argument, for super()
    variables: dict[str, Any] = field(default_factory=dict)
    is_comprehension: bool = False
    node: Any = None                      # the function's syntax tree
    arguments: dict[str, Any] = field(default_factory=dict)       # what the parameters were bound to
    branching: int = 0                    # branches on run-time values around the call
    loops: list[frozenset[str]] = field(default_factory=list)     # names needed where `break` and `continue` go
    called_at: Location | None = None     # of gradsmith's own functions, whose places are those of their calls

    def owner_of(self, name: str) -> Frame | None:
        """The frame whose variable `name` is: this one, or one around it."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.scope.global_:
                return None
            if name in frame.scope.local:
                return frame
            frame = frame.parent
        return None

    def cells_of(self, name: str) -> Any:
        """The real cell of a free variable, or None."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.scope.global_:
                return None
            if name in frame.cells:
                return frame.cells[name]
            frame = frame.parent
        return None

    @property
    def is_librarys(self) -> bool:
        """Whether the function is one of gradsmith's or of the standard library: not the user's lines."""
        return is_standard(self.source.file) or str(self.globals.get("__name__", "")).partition(".")[0] == "gradsmith"

    def location(self, node: Any) -> Location:
        if self.called_at is not None:
            return self.called_at
        known = getattr(node, "_gradsmith_location", None)
        if known is None:
            known = self.source.location_of(node)
            node._gradsmith_location = known
        return known

    def mangled(self, name: str) -> str:
        if self.class_name and name.startswith("__") and not name.endswith("__"):
            return f"_{self.class_name.lstrip('_')}{name}"
        return name


def builtin_named(frame: Frame, name: str) -> Any:
    """The builtin that the function's globals see, or MISSING."""
    where = frame.globals.get("__builtins__", builtins)
    if isinstance(where, dict):
        return where.get(name, MISSING)
    return getattr(where, name, MISSING)
