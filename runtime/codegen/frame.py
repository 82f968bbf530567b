"""The frame of one function: its arguments and variables, what it owns, and the ways out.

Arrays are counted as Numba counts them.  A local variable that owns its array gives it up where its block ends, one in
memory where the function is left.  Every way out, an exception's too, releases what is owned there:

    check fails ─► store the exception ─► release what is owned here ─► return the error
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llvmlite import ir
from numba.core import callconv, types

from . import arrays, memory, values
from .aliases import ARGUMENT, Aliases, Held
from .calls import Caller
from .expressions import Expressions
from .numbers import LLVM
from .source import Variables
from .values import TYPES, Array, Known, NotCovered, Number, Other, Value

UNLIKELY = (1, 99)


@dataclass(eq=False)
class _Place:
    """A variable in memory."""

    type: Any
    pointer: Any
    holds: Held = field(default_factory=Held)


@dataclass(eq=False)
class _Exit:
    """A block that leaves the function with an error; filled at the end, when all variables are known."""

    block: Any
    owned: list[Any]
    code: Any


class Frame(Expressions):
    """The frame of `function` in the module, for arguments of the types in `fndesc`.

    result: the type that it returns, once it has been compiled.
    """

    def __init__(self, context: Any, module: Any, fndesc: Any, tree: ast.FunctionDef, function: Any) -> None:
        super().__init__()
        self.context = context
        self.caller = Caller(context, function)
        self.names = function.__globals__
        self.file = function.__code__.co_filename
        self.tree = tree
        self.result: Any = None
        self.variables = Variables(tree)
        self.local: dict[str, Value] = {}
        self.places: dict[str, _Place] = {}
        self.scopes: list[list[Array]] = []
        self.exits: list[_Exit] = []
        self._known_exits: dict[Any, Any] = {}
        self._raising: dict[Any, Any] = {}
        self.line = tree.lineno
        self.aliases = Aliases(module)
        self.fndesc = fndesc
        signature = context.call_conv.get_function_type(TYPES.none, fndesc.argtypes)
        self.function = ir.Function(module, signature, fndesc.llvm_func_name)
        context.call_conv.decorate_function(self.function, fndesc.args, fndesc.argtypes)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.entry = self.builder.block

    def take_arguments(self) -> None:
        raw = list(self.context.call_conv.get_arguments(self.function))
        for name, kind in zip(self.fndesc.args, self.fndesc.argtypes, strict=True):
            value = self._argument(kind, raw)
            if name in self.variables.in_memory:
                self.assign(name, value)
            else:
                self.local[name] = value
        if raw:
            raise NotCovered("arguments of another form")

    def _argument(self, kind: Any, raw: list[Any]) -> Value:
        if type(kind) is types.Array:
            meminfo, parent, nitems, itemsize, data = (raw.pop(0) for _ in range(5))
            shape, strides = ([raw.pop(0) for _ in range(kind.ndim)] for _ in range(2))
            return Array(kind, meminfo, parent, nitems, itemsize, data, shape, strides, root=ARGUMENT)
        if kind in (TYPES.complex64, TYPES.complex128):
            parts = [raw.pop(0), raw.pop(0)]
            struct: Any = ir.Constant(self.context.get_value_type(kind), ir.Undefined)
            for k, part in enumerate(parts):
                struct = self.builder.insert_value(struct, part, k)
            return Other(kind, struct)
        if kind == TYPES.boolean:
            argument = raw.pop(0)
            return Number(kind, self.builder.icmp_unsigned("!=", argument, argument.type(0)))
        if kind in LLVM:
            return Number(kind, raw.pop(0))
        raise NotCovered(f"an argument of type {kind}")

    def finish(self, start: Any) -> None:
        """What could not be written before all variables were known: exits, and the empty variables at the entry."""
        held = [place for place in self.places.values() if isinstance(place.type, types.Array)]
        for leaving in self.exits:
            self.builder.position_at_end(leaving.block)
            for meminfo in leaving.owned:
                memory.count(self.builder, "NRT_decref", meminfo)
            for place in held:
                memory.count(self.builder, "NRT_decref", self.builder.load(self._meminfo_of(place)))
            self.builder.ret(leaving.code)
        self.builder.position_at_end(self.entry)
        for place in held:
            self.builder.store(arrays.POINTER(None), self._meminfo_of(place))
        self.builder.branch(start)

    def type_result(self) -> None:
        """The function's own type, now that its result's type is known."""
        if self.result is None:
            raise NotCovered("a function that never returns")
        signature = self.context.call_conv.get_function_type(self.result, self.fndesc.argtypes)
        self.function.ftype = signature
        self.function.type = signature.as_pointer()
        self.function.args[0].type = signature.args[0]

    def _meminfo_of(self, place: _Place) -> Any:
        word = ir.IntType(32)
        return self.builder.gep(place.pointer, [word(0), word(0)], inbounds=True)

    # --- leaving ---------------------------------------------------------------------------------------------------

    def owned(self) -> list[Any]:
        """The references that the local variables and temporary values hold."""
        found = [value.meminfo for scope in self.scopes for value in scope]
        return found + [value.meminfo for value in (*self.outside, *self.temporaries)]

    def exit(self, code: Any) -> Any:
        """A block that releases what is owned here and returns the code."""
        owned = self.owned()
        key = (tuple(map(id, owned)), id(code) if not isinstance(code, ir.Constant) else code.constant)
        if key not in self._known_exits:
            leaving = _Exit(self.block("leave"), owned, code)
            self.exits.append(leaving)
            self._known_exits[key] = leaving.block
        return self._known_exits[key]

    def raising(self, exception: type[BaseException], args: tuple[Any, ...] | None, line: int | None) -> Any:
        """A block that raises; line: of the text, for the traceback, None for errors of kernels."""
        leave = self.exit(callconv.RETCODE_USEREXC)
        key = (leave, exception, args, line)
        if key not in self._raising:
            self._raising[key] = block = self.block("raise")
            with self.builder.goto_block(block):
                api = self.context.get_python_api(self.builder)
                place = None if line is None else (self.tree.name, self.file, line)
                info = api.serialize_object((exception, args or (), place))
                self.builder.store(info, self.function.args[1])
                self.builder.branch(leave)
        return self._raising[key]

    def branch_off(self, condition: Any, write: Callable[[], Any]) -> None:
        """Where the condition holds, which is seldom, go to a block that `write` fills."""
        seldom, after = self.block("seldom"), self.block("fine")
        self.builder.cbranch(condition, seldom, after).set_weights(UNLIKELY)
        self.builder.position_at_end(seldom)
        write()
        self.builder.position_at_end(after)

    def release(self, value: Array) -> None:
        memory.count(self.builder, "NRT_decref", value.meminfo)

    def release_temporaries(self) -> None:
        for value in self.temporaries:
            self.release(value)
        self.temporaries = []

    def release_scopes(self, depth: int) -> None:
        for scope in self.scopes[depth:]:
            for value in scope:
                self.release(value)

    # --- variables -------------------------------------------------------------------------------------------------

    def read(self, name: str) -> Value | None:
        place = self.places.get(name)
        if place is not None:
            held = self.builder.load(place.pointer)
            return self._held(place, held)
        found = self.local.get(name)
        if found is None and name in self.variables.in_memory:
            raise NotCovered(f"{name} is read before it has a type")
        return replace(found, owned=False) if isinstance(found, Array) else found

    def _held(self, place: _Place, held: Any) -> Value:
        kind = place.type
        if isinstance(kind, types.Array):
            return replace(arrays.of_struct(self.builder, kind, held, owned=False), root=place.holds)
        return Number(kind, held) if kind in LLVM else Other(kind, held)

    def take(self, value: Array) -> Array:
        """The value with a reference of its own."""
        if value in self.temporaries:
            self.temporaries.remove(value)
        elif not value.owned:
            memory.count(self.builder, "NRT_incref", value.meminfo)
        return replace(value, owned=True)

    def assign(self, name: str, value: Value) -> None:
        if isinstance(value, Known | values.Sequence):
            raise NotCovered(f"a variable that holds a {type(value).__name__}")
        if name in self.variables.in_memory:
            return self._assign_in_memory(name, value)
        before = self.local.get(name)
        if isinstance(value, Array):
            value = self.take(value)
            self.scopes[-1].append(value)
        elif isinstance(value, Number):
            value = replace(value)
        if isinstance(before, Array) and before in self.scopes[-1]:
            self.scopes[-1].remove(before)
            self.release(before)
        self.local[name] = value

    def exchange(self, names: Sequence[str], sources: Sequence[str]) -> bool:
        """Let arrays that are in variables change places, which leaves each as many references as it has.  False where
        that is not all."""
        if len(set(names)) != len(names) or set(names) != set(sources):
            return False
        places = {name: self.places.get(name) for name in names}
        pairs = [(places[name], places[source]) for name, source in zip(names, sources)]
        if any(a is None or b is None or not isinstance(a.type, types.Array) or a.type != b.type for a, b in pairs):
            return False
        held = [self.builder.load(b.pointer) for _, b in pairs]             # type: ignore[union-attr]
        for (place, source), struct in zip(pairs, held):
            assert place is not None and source is not None
            place.holds.roots.append(source.holds)
            self.builder.store(struct, place.pointer)
        return True

    def _assign_in_memory(self, name: str, value: Number | Array | Other) -> None:
        place = self.places.get(name)
        if place is None:
            with self.builder.goto_block(self.entry):
                pointer = self.builder.alloca(self.context.get_value_type(value.type), name=name)
            place = self.places[name] = _Place(value.type, pointer)
        if isinstance(value, Array):
            if value.type != place.type:
                raise NotCovered(f"{name} holds {place.type} and {value.type}")
            taken = self.take(value)
            place.holds.roots.append(taken.root)
            struct = arrays.to_struct(self.builder, self.context, taken)
            before = self.builder.load(self._meminfo_of(place))
            self.builder.store(struct, place.pointer)
            memory.count(self.builder, "NRT_decref", before)
            return
        if value.type != place.type:
            raise NotCovered(f"{name} holds {place.type} and {value.type}")
        self.builder.store(value.llvm, place.pointer)
