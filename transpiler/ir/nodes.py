"""The IR on one page: funcs of statements over values, in SSA form with structured control flow.

    Func     name, params, body                         a block with named parameters
    Block    stmts, results
    Let      targets = op(args, params)                 every operation; never mutates
    If       targets = pred ? then : orelse             blocks see the values around them
    For      targets = carries after lo..hi by step     body gets index and carries, gives the next carries
    While    targets = carries when cond turns false    cond gives one bool, body the next carries
    Call     targets = func(args)                       a function of the same module (recursion, kernels)
    Check    raise kind(message) unless pred            the only statement with an effect

A value is a `Var` (compared by identity; names are unique within a func) or a `Const`, which may have a shape:
it then stands for an array of equal elements.  Arrays are values: `store(A, i, v)` gives a new array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from . import registry
from .types import Type

if TYPE_CHECKING:
    from ..errors import Location


class Operation(Protocol):
    """What the IR itself asks of an operation; `ops.base.Op` implements it."""

    name: str
    is_pure: bool

    def infer(self, *args: Any, **params: Any) -> Any: ...

    def reference(self, *args: Any, **params: Any) -> Any: ...


class Arithmetic:
    """Python's operators on values: they emit the operation of the same meaning at the current builder."""

    __slots__ = ()
    type: Type

    def __add__(self, other: Any) -> Any:
        return registry.apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return registry.apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return registry.apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return registry.apply("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return registry.apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return registry.apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return registry.apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return registry.apply("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return registry.apply("floor_divide", self, other)

    def __mod__(self, other: Any) -> Any:
        return registry.apply("remainder", self, other)

    def __pow__(self, other: Any) -> Any:
        return registry.apply("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return registry.apply("power", other, self)

    def __neg__(self) -> Any:
        return registry.apply("negative", self)

    def __lt__(self, other: Any) -> Any:
        return registry.apply("less", self, other)

    def __le__(self, other: Any) -> Any:
        return registry.apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return registry.apply("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return registry.apply("greater_equal", self, other)

    def eq(self, other: Any) -> Any:
        """Elementwise equality (`==` compares identity, so values can be dictionary keys)."""
        return registry.apply("equal", self, other)

    def ne(self, other: Any) -> Any:
        return registry.apply("not_equal", self, other)

    def __and__(self, other: Any) -> Any:
        return registry.apply("bitwise_and", self, other)

    def __or__(self, other: Any) -> Any:
        return registry.apply("bitwise_or", self, other)

    def __invert__(self) -> Any:
        return registry.apply("invert", self)

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    @property
    def dtype(self) -> str:
        return self.type.dtype

    def __bool__(self) -> bool:
        raise TypeError("an IR value has no truth value while transpiling; emit an operation instead")


@dataclass(eq=False, slots=True)
class Var(Arithmetic):
    name: str
    type: Type

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, eq=False, slots=True)
class Const(Arithmetic):
    """`value` is a Python bool, int, float or complex, exactly representable in the type's dtype."""

    value: Any
    type: Type

    def __repr__(self) -> str:
        return f"{self.value!r}: {self.type}"


Value = Var | Const


@dataclass(frozen=True, slots=True)
class Block:
    stmts: tuple[Stmt, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Let:
    targets: tuple[Var, ...]
    op: Any
    args: tuple[Value, ...]
    params: dict[str, Any] = field(default_factory=dict)
    loc: Location | None = None

    @property
    def target(self) -> Var:
        (only,) = self.targets
        return only


@dataclass(frozen=True, eq=False, slots=True)
class If:
    targets: tuple[Var, ...]
    pred: Value
    then: Block
    orelse: Block
    loc: Location | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A wish that the reverse mode keeps the state of a loop at some iterations only and runs the rest again.

    every: the number of iterations between; None: so that the memory is least.  memory: how many bytes may be kept.
    slots: how many states may be kept, with iterations run again as often as that takes.
    """

    every: int | None = None
    memory: int | None = None
    slots: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class For:
    """`carries` are the body's names for the carried values; `inits` their first values.

    parallel: iterations may run in any order; each carried array is only stored at places that no other
    iteration touches.  A carried scalar in a parallel loop is a sum.
    segment: the loop has a part of the iterations of the loop that it stands in, whose next iteration goes on with its
    index; the reverse mode runs it again rather than save anything of it.
    abreast: no iteration reads or writes what another one writes, as in a parallel loop, but it is for one thread.
    """

    targets: tuple[Var, ...]
    index: Var
    lo: Value
    hi: Value
    step: Value
    carries: tuple[Var, ...]
    inits: tuple[Value, ...]
    body: Block
    parallel: bool = False
    loc: Location | None = None
    checkpoint: Checkpoint | None = None
    segment: bool = False
    abreast: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class While:
    targets: tuple[Var, ...]
    carries: tuple[Var, ...]
    inits: tuple[Value, ...]
    cond: Block
    body: Block
    loc: Location | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """needed: False where it may go if nobody reads its targets, since another call raises all that it may raise."""

    targets: tuple[Var, ...]
    func: str
    args: tuple[Value, ...]
    loc: Location | None = None
    needed: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Check:
    """Raise the built-in exception named `kind` with `message` unless `pred` is true.

    values: scalars for the places of the message, which `str.format` would fill; without them it is as it stands.
    There may be more: what the exception holds besides its message.
    kind "print": print the message, filled likewise (also with arrays), and go on.
    kept: params with what their memory is to hold when it raises, as for `Func.effects`.
    lanes: which element it is of each batch around, outermost first; what is raised tells.
    """

    pred: Value
    kind: str
    message: str
    loc: Location | None = None
    kept: tuple[tuple[Var, Value], ...] = ()
    values: tuple[Value, ...] = ()
    lanes: tuple[Value, ...] = ()

    @property
    def targets(self) -> tuple[Var, ...]:
        return ()

    @property
    def prints(self) -> bool:
        return self.kind == PRINT


PRINT = "print"
Stmt = Let | If | For | While | Call | Check


@dataclass(frozen=True, slots=True)
class Rule:
    """A derivative that is given, where a func's own statements would have another one, or none.

    wrt: the params that it is about, as positions.
    forward: the func of the same params -> the results, then residuals; it is run in place of a func that is
        differentiated.  None: the func's last params are these results and residuals, and it gives the former.
    push: residuals, a tangent for each param in `wrt` -> a tangent for each real or complex result.
    pull: residuals, a cotangent for each real or complex result -> a cotangent for each param in `wrt`.  Where only
        one of the two is given, the other is its transpose.
    ahead: what `forward` is for the forward mode, where both modes are given: `push` takes its residuals.
    code: a func of the same params and results, whose statements tell the derivative by the params that are not in
        `wrt`: what the function read of the code around it.
    """

    wrt: tuple[int, ...]
    forward: str | None
    push: str | None = None
    pull: str | None = None
    ahead: str | None = None
    code: str | None = None

    @property
    def funcs(self) -> tuple[str, ...]:
        """The names of the funcs that it is made of."""
        return tuple(name for name in (self.forward, self.push, self.pull, self.ahead, self.code) if name is not None)


@dataclass(frozen=True, eq=False, slots=True)
class Func:
    """Named sizes in parameter types are bound by the arguments' shapes.  A named size may also be the value of
    the int64 scalar of the same name (a parameter or an earlier target).  `result_names` may name results.

    effects: params whose memory holds, when the func ends, what the last results say, one for each.  To every pass
    they are results like others; emission writes them into the caller's arrays and returns the rest.
    rule: its derivative, where that is given.
    """

    name: str
    params: tuple[Var, ...]
    body: Block
    result_names: tuple[str, ...] = ()
    effects: tuple[Var, ...] = ()
    rule: Rule | None = None

    @property
    def results(self) -> tuple[Value, ...]:
        return self.body.results

    @property
    def returned(self) -> tuple[Value, ...]:
        """The results without those that are left in params' memory."""
        return self.results[:len(self.results) - len(self.effects)]


@dataclass(frozen=True, eq=False, slots=True)
class Module:
    """Functions that call each other; `main` is the first, and a module can be asked what its main is asked."""

    funcs: tuple[Func, ...]

    @property
    def main(self) -> Func:
        return self.funcs[0]

    @property
    def name(self) -> str:
        return self.main.name

    @property
    def params(self) -> tuple[Var, ...]:
        return self.main.params

    @property
    def body(self) -> Block:
        return self.main.body

    @property
    def results(self) -> tuple[Value, ...]:
        return self.main.results

    @property
    def returned(self) -> tuple[Value, ...]:
        return self.main.returned

    @property
    def result_names(self) -> tuple[str, ...]:
        return self.main.result_names

    @property
    def effects(self) -> tuple[Var, ...]:
        return self.main.effects

    def __getitem__(self, name: str) -> Func:
        for func in self.funcs:
            if func.name == name:
                return func
        raise KeyError(name)

    def __iter__(self) -> Iterator[Func]:
        return iter(self.funcs)
