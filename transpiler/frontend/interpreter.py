"""The interpreter: runs a function's syntax tree on abstract values, emitting IR at the current builder.

This file holds its state and what every part needs: locations, calls of NumPy's functions through their spellings,
and the ways from abstract values to static ones.  Statements, expressions, operators, calls, attributes, indices and
Python's builtins are in files of their own, as functions that take the interpreter first.
"""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .. import ops
from ..errors import Location, TranspileError, error, placed
from ..ir import walk
from ..ir.build import Builder, Names, building, check, const, current, size_value
from ..ir.dims import DimExpr, symbol, symbols_of
from ..ir.nodes import Block, Const, Func, Value, Var
from ..ir.types import I64
from ..ops.base import RuleError
from ..ops.spelling import Weak, cast, find_spelling
from ..report import Report
from .captures import Captures
from .environment import Frame
from .errors import raised
from .grown import settle
from .growth import Watch
from .guards import Assumptions, Capture, NeedStatic, Restart, Unify
from .numpy_calls import call_numpy, call_spelling, not_supported
from .outside import keeping_nothing
from .preparing import prepared
from .ranges import surely_nonnegative
from .source import FunctionSource, find_source
from .texts import Raised
from .trees import Structure, flatten, leaf_values, unflatten
from .values import (
    ArrayRef,
    Leaf,
    is_static,
    type_of,
)

UNNAMED = re.compile(r"t(_\d+)?")
NAMED_LATE = 64               # statements after which a value is still called after the variable that it is assigned to
MAX_DEPTH = 150               # nested calls of user functions
MAX_STEPS = 200_000           # statements of one trace: beyond, an unrolled loop is taken to be endless


class Probe(Exception):
    """A loop that is tried while transpiling does something at run time."""


def _writes_to_argument(name: str) -> RuleError:
    return RuleError(f"`{name}` writes to an argument, which a function with a custom rule may not where it is "
                     "differentiated", code="E124", kind=NotImplementedError,
                     help="copy the argument, and return what it is to hold")


class Interpreter:
    """One trace.  `here` is the place of what is being done, for errors and for emitted statements."""

    def __init__(self, names: Names, assumptions: Assumptions, captures: Captures,
                 report: Report | None = None) -> None:
        self.names, self.assumptions, self.captures = names, assumptions, captures
        self.report = report                             # what transforms tell of what they do, where it is asked for
        self.here: Location | None = None
        self.sources: dict[tuple[str, int, str], FunctionSource] = {}
        self.given_sources: dict[FunctionType, str] = {}
        self.origins: dict[Var, frozenset[Any]] = {}     # arguments, captures and sizes that a scalar is made of
        self.sizes: dict[Var, Any] = {}                  # int scalars that are dimensions
        self.offsets: dict[Any, tuple[Any, Any]] = {}    # int scalars that are another one plus a known number
        self.params: list[Var] = []
        self.handling: list[TranspileError] = []         # exceptions whose handlers are running
        self.catching: list[Callable[[TranspileError], bool]] = []       # of each `try` that is running
        self.frames: list[Frame] = []                    # of the calls that are running
        self.watch: Watch | None = None                  # looks at a trip, for the lists that it changes
        self.ahead = 0                                   # loops that are run ahead, for the lengths of lists
        self.raises: dict[str, Raised] = {}              # exceptions of the running function, by text and place
        self.stands: dict[Var, Value | None] = {}        # what params stand for that nothing is differentiated by
        self.has_batches = False                         # a vmap has been called
        self.kept: dict[int, tuple[Any, Location | None]] = {}           # what grown lists have copies of
        self.decided: dict[int, tuple[Any, Location | None]] = {}        # containers that may be others
        self.probes: list[Builder] = []                  # blocks of loops that are tried while transpiling
        self.loop_types: dict[tuple[int, int], dict[Any, Any]] = {}      # of a loop in a frame: what it carried before
        self.ranges: dict[str, tuple[Any, Any]] = {}     # least and greatest value of loop indices, by name
        self.outside = captures.outside
        self.orders = 0                                  # derivatives that are taken of what is interpreted ...
        self.within: Counter[int] = Counter()            # ... less those in whose custom rules it stands, by function
        self.branching = 0                               # arms of run-time branches, and loops, around what is done
        self.outlined = False                            # the next function called becomes a func of its own
        self.recursive: dict[Any, str] = {}              # functions whose calls stay calls, see `recursion` ...
        self.unrolled: dict[Any, TranspileError] = {}    # ... and those whose calls cannot, with the reason
        self.recursions: list[Any] = []                  # recursive funcs that are being traced, innermost last
        self.traced: list[Any] = []                      # those that are finished
        self.activations: dict[Any, int] = {}            # calls of a function inside its outermost call
        self.depth = 0
        self.steps = 0
        self.barrier = 0               # arrays older than this belong to an outer block

    # --- places and errors -------------------------------------------------------------------------------------

    def at(self, loc: Location | None) -> None:
        """What is done next is done here."""
        if loc is not None:
            self.here = loc
            current().loc = loc

    def step(self, frame: Frame, node: Any) -> None:
        """One more statement."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise error("E125", f"more than {MAX_STEPS} statements were run while transpiling", frame.location(node),
                        label="a loop or a recursion that does not end?", help="make what drives it a run-time value")

    def native(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run Python or NumPy itself on static values; what it raises is the user's exception."""
        try:
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)
        except (TranspileError, Restart):
            raise
        except Exception as problem:
            raise raised(problem, self.here) from problem

    def source_of(self, function: FunctionType) -> FunctionSource:
        found = find_source(function, self.given_sources.get(function))
        self.sources.setdefault((found.file, found.first_line, found.text), found)
        return found

    def leave_probe(self) -> None:
        """Something is emitted: a loop that was tried while transpiling is not known then."""
        if self.probes:
            raise Probe

    # --- static and run-time -----------------------------------------------------------------------------------

    def derived(self, result: Weak, operands: Sequence[Any], size: Any) -> None:
        """Remember what a Python scalar was computed from, in case it is needed while transpiling."""
        if not isinstance(result.value, Var):
            return
        origins: set[Any] = set()
        if size is not None and result.value.type == I64:
            self.sizes[result.value] = size
        for x in operands:
            found = self.origins_of(x)
            if found is None:
                return
            origins |= found
        self.origins[result.value] = frozenset(origins)

    def shifted(self, result: Weak, name: str, a: Any, b: Any) -> None:
        """Remember that an int is another one plus so many."""
        if name not in ("add", "sub") or result.value.type != I64:
            return
        for base, by in ((a, b), (b, a)) if name == "add" else ((a, b),):
            if isinstance(base, Weak) and isinstance(by, (int, DimExpr)):
                origin, before = self.offsets.get(base.value, (base.value, 0))
                self.offsets[result.value] = (origin, before + by if name == "add" else before - by)

    def span_length(self, start: Any, stop: Any) -> Any | None:
        """stop - start, where both are one run-time int plus known numbers."""
        (a, before), (b, after) = (self.offsets.get(x, (x, 0)) for x in (start, stop))
        return after - before if a is b else None

    def origins_of(self, x: Any) -> frozenset[Any] | None:
        """Arguments, captures and size names that x follows from; None where it follows from other data too."""
        if isinstance(x, Weak):
            x = x.value
        if isinstance(x, Var):
            capture = self.captures.origins.get(x)
            return self.origins.get(x) if capture is None else frozenset({capture})
        if isinstance(x, DimExpr):
            return frozenset(symbols_of(x))
        if isinstance(x, Const) or is_static(x):
            return frozenset()
        return None

    def demand(self, x: Any) -> None:
        """x is needed while transpiling: start again with what it follows from made static, where that can be."""
        if isinstance(x, ArrayRef):
            x = x.root.value
        origins = self.origins_of(x) if x is not None else None
        if not origins:
            return
        names = {o for o in origins if isinstance(o, str)}
        if names:
            if any(self.assumptions.sizes.get(name) is None for name in names):
                return
            raise Unify({name: self.assumptions.sizes[name] for name in names})
        raise NeedStatic(frozenset(o for o in origins if isinstance(o, (Leaf, Capture))))

    def static_int(self, x: Any, what: str) -> int:
        """x as an int known while transpiling."""
        if isinstance(x, (int, np.integer)):
            return int(x)
        if isinstance(x, ArrayRef) and (known := x.current_known()) is not None and known.size == 1:
            return int(known.reshape(())[()])
        self.demand(x)
        value = x.value if isinstance(x, Weak) else x
        if isinstance(value, Const) and value.type.kind in "biu":
            return int(value.value)
        raise RuleError(f"{what} must be known while transpiling", code="E117", kind=TypeError,
                        help="pass it as a static argument, or write it as a literal")

    def as_dim(self, x: Any) -> Any | None:
        """A Python int as a dimension, where it is one."""
        if isinstance(x, bool):
            return int(x)
        if isinstance(x, (int, DimExpr)):
            return x
        return self.sizes.get(x.value) if isinstance(x, Weak) and isinstance(x.value, Var) else None

    def dimension(self, x: Any, what: str = "a shape's entry", signed: bool = False) -> Any:
        """An int as a dimension, not negative unless it is `signed`: made of sizes and arguments where it follows
        from them, else named after the scalar that holds it, which is checked when the function runs."""
        if isinstance(x, (int, np.integer)):
            return int(x)
        size = self.as_dim(x)
        if size is not None:
            for name in symbols_of(size):
                if name in self.assumptions.fixed:      # an int argument, of either sign
                    argument = symbol(name, 0)
                    if self.assumptions.sizes.get(name) is None:
                        check(ops.greater_equal(ops.size(dim=argument), const(0, I64)), "ValueError",
                              "negative dimensions are not allowed")
                    elif self.assumptions._assume(argument, "<", self.assumptions._typical(argument) < 0):
                        self.demand(x)
            if not signed and self.assumptions.is_negative(size):
                raise RuleError("negative dimensions are not allowed", code="E302")
            if not signed and any(name in self.ranges for name in symbols_of(size)) and not surely_nonnegative(
                    self, size):
                check(ops.greater_equal(size_value(size), const(0, I64)), "ValueError",
                      "negative dimensions are not allowed")
            return size
        value = x.value if isinstance(x, Weak) else x
        if isinstance(value, Const):
            return int(value.value)
        if not isinstance(value, Var) or value.type.kind not in "iu" or value.rank:
            raise RuleError(f"{what} must be an integer", kind=TypeError, code="E302")
        held = cast(value, "int64")
        if isinstance(held, Const):
            return int(held.value)
        check(ops.greater_equal(held, const(0, I64)), "ValueError", "negative dimensions are not allowed")
        return symbol(held.name, 0)

    def note_raise(self, text: str, exception: BaseException, loc: Location | None) -> None:
        """An exception that the running function raises here with this text: Python's own has more to it than its
        name."""
        is_builtin = getattr(builtins, type(exception).__name__, None) is type(exception)
        if not isinstance(exception, TranspileError) and (not is_builtin or exception.args != (text,)):
            self.raises[placed(text, loc)] = Raised(exception, text)

    # --- NumPy -------------------------------------------------------------------------------------------------

    def spell(self, key: Any, *args: Any, **kwargs: Any) -> Value:
        """A NumPy function on IR values."""
        function = find_spelling(key)
        if function is None:
            raise not_supported(key)
        return function(*args, **kwargs)

    def call_spelling(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A NumPy function (or method) that has a spelling, on abstract values."""
        return call_spelling(self, key, args, kwargs)

    def call_numpy(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A NumPy function on anything: NumPy itself where all is known, else its spelling."""
        return call_numpy(self, key, args, kwargs)

    # --- calling -----------------------------------------------------------------------------------------------

    def call(self, callee: Any, args: Sequence[Any], kwargs: dict[str, Any], loc: Location | None = None) -> Any:
        """Call anything callable with abstract arguments."""
        from .calls import call_value
        self.at(loc)
        return call_value(self, callee, tuple(args), dict(kwargs))

    def name_after(self, name: str, value: Any) -> None:
        """What is assigned to a variable is called after it in the generated code, unless it has a name already.

        Ints keep theirs: sizes may be named after them.  So does what an outer block made: this one may be made anew.
        """
        held = value.current_value if isinstance(value, ArrayRef) else value.value if isinstance(value, Weak) else value
        if isinstance(held, Var) and held.type != I64 and UNNAMED.fullmatch(held.name) and name.strip("_") and any(
                held in stmt.targets for stmt in reversed(current().stmts[-NAMED_LATE:])):
            held.name = self.names.fresh(name)

    def forget_names(self, taken: set[str]) -> None:
        """Names given since `taken` was copied are free again, but for those of parameters."""
        kept = {name for var in self.captures.params for name in (var.name, *map(str, var.type.shape))}
        self.names.taken = taken | kept | set(self.assumptions.sizes)
        self.names._next.clear()

    def returned_to(self, loc: Location | None) -> None:
        """A call is over: what comes next belongs to the caller's line."""
        self.at(loc)

    def find_special(self, receiver: Any, name: str) -> Any | None:
        """The bound special method of an object's class, where that is written in Python, or None."""
        from .attributes import class_attribute
        return class_attribute(self, type_of(receiver), name, receiver, missing=None)

    def subtrace(self, callee: Any, args: Sequence[Any], kwargs: dict[str, Any],
                 name: str | None = None, keeps_args: bool = False,
                 moving: Sequence[int] = ()) -> tuple[Func, Structure, tuple[Value, ...]]:
        """Trace a call into a func of its own.

        Its params are the run-time leaves of (args, kwargs) in tree order, then the values of the surrounding code
        that it reads.  Returns the func, the structure of its result, and those values.  keeps_args: a write to an
        argument is an error.  moving: positions of arguments that are differentiated.
        """
        leaves, structure = flatten((tuple(args), dict(kwargs)), sizes_are_static=True)
        values = leaf_values(leaves)
        barrier, self.barrier = self.barrier, ArrayRef(known=np.zeros(0)).serial
        try:
            with building() as inner, keeping_nothing():
                params = [inner.var(v.type, v.name if isinstance(v, Var) else "x") for v in values]
                moves = [k in moving for k, arg in enumerate(args) for _ in flatten(arg, sizes_are_static=True)[0]]
                moves += [False] * (len(values) - len(moves))
                for value, param, moved in zip(values, params, moves, strict=True):
                    self._follows(param, value)
                    if not moved:
                        self.stands[param] = value
                stand_ins = [ArrayRef(p, layout=leaf.layout) if isinstance(leaf, ArrayRef) and p.type.shape else p
                             for leaf, p in zip(leaves, params)]
                new_args, new_kwargs = unflatten(structure, stand_ins)
                result = self.call(callee, new_args, new_kwargs, self.here)
                if keeps_args and any(isinstance(s, ArrayRef) and s.value is not p for s, p in zip(stand_ins, params)):
                    raise _writes_to_argument(name or "the function")
                settle(self, result)
                results, result_structure = flatten(result)
                block_results = tuple(leaf_values(results))
        finally:
            self.barrier = barrier
        block = Block(tuple(inner.stmts), block_results)
        outer = self._outer_values(block, params)
        known = name or getattr(callee, "__name__", None) or getattr(callee, "name", None)
        func_name = known if isinstance(known, str) and known.isidentifier() else "inner"
        return prepared(Func(func_name, (*params, *outer), block)), result_structure, outer

    def _follows(self, param: Var, value: Value) -> None:
        """A param of an inner func has the value of the surrounding code that it stands for."""
        if value.rank or not isinstance(value, Var):
            return
        origins = self.origins_of(value)
        if origins is not None:
            self.origins[param] = origins
        if value in self.sizes:
            self.sizes[param] = self.sizes[value]

    def _outer_values(self, block: Block, params: Sequence[Var]) -> tuple[Var, ...]:
        """Values of outer blocks that a block reads, and parameters that bind the sizes it uses."""
        inside = set(params) | set(walk.definitions(block))
        for stmt in walk.all_statements(block):
            inside.update(walk.bound_inside(stmt))
        read = walk.reads(block)
        outer = sorted((v for v in read if isinstance(v, Var) and v not in inside), key=lambda v: v.name)
        bound = {str(d) for v in (*params, *outer) for d in v.type.shape} | {v.name for v in (*outer, *inside)}
        sizes = {s for v in (*params, *outer) for d in v.type.shape for s in symbols_of(d)}
        sizes |= {s for s in read if isinstance(s, str)}
        for size in sorted(sizes):
            if size in bound:
                continue
            for var in (*self.params, *self.captures.params):
                if var.name == size or size in map(str, var.type.shape):
                    outer.append(var)
                    bound.update(map(str, var.type.shape), {var.name})
                    break
        return tuple(outer)
