"""The body of one function: assignments, loops, branches, checks, the return.

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

from . import arrays, exceptions, memory, values
from .aliases import ARGUMENT, Aliases, Held
from .calls import Caller, type_of
from .expressions import Expressions
from .numbers import LLVM, of_index
from .source import Variables
from .values import INT, TYPES, Array, Known, NotCovered, Number, Other, Value, array, number

_UNLIKELY = (1, 99)


@dataclass(eq=False)
class _Place:
    """A variable in memory."""

    type: Any
    pointer: Any
    holds: Held = field(default_factory=Held)


@dataclass(eq=False)
class _Loop:
    again: Any          # the block in which the next trip begins
    after: Any
    depth: int          # how many scopes there are around the loop's body


@dataclass(eq=False)
class _Exit:
    """A block that leaves the function with an error; filled at the end, when all variables are known."""

    block: Any
    owned: list[Any]
    code: Any


class FunctionCompiler(Expressions):
    """Writes `function` into the module: the body of `tree` for arguments of the types in `fndesc`.

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
        self.loops: list[_Loop] = []
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

    def compile(self) -> None:
        """Write the function; NotCovered."""
        start = self.block("start")
        self.builder.position_at_end(start)
        self.scopes.append([])
        self._arguments()
        if not self.statements(self.tree.body):
            self._return_nothing()
        self._finish(start)
        self.aliases.write()
        self._type_result()

    # --- the frame -----------------------------------------------------------------------------------------------

    def _arguments(self) -> None:
        raw = list(self.context.call_conv.get_arguments(self.function))
        for name, kind in zip(self.fndesc.args, self.fndesc.argtypes, strict=True):
            value = self._argument(kind, raw)
            if name in self.variables.in_memory:
                self._assign(name, value)
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

    def _finish(self, start: Any) -> None:
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

    def _type_result(self) -> None:
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
        self.builder.cbranch(condition, seldom, after).set_weights(_UNLIKELY)
        self.builder.position_at_end(seldom)
        write()
        self.builder.position_at_end(after)

    def release(self, value: Array) -> None:
        memory.count(self.builder, "NRT_decref", value.meminfo)

    def release_temporaries(self) -> None:
        for value in self.temporaries:
            self.release(value)
        self.temporaries = []

    def _release_scopes(self, depth: int) -> None:
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

    def _take(self, value: Array) -> Array:
        """The value with a reference of its own."""
        if value in self.temporaries:
            self.temporaries.remove(value)
        elif not value.owned:
            memory.count(self.builder, "NRT_incref", value.meminfo)
        return replace(value, owned=True)

    def _assign(self, name: str, value: Value) -> None:
        if isinstance(value, Known | values.Sequence):
            raise NotCovered(f"a variable that holds a {type(value).__name__}")
        if name in self.variables.in_memory:
            return self._assign_in_memory(name, value)
        before = self.local.get(name)
        if isinstance(value, Array):
            value = self._take(value)
            self.scopes[-1].append(value)
        elif isinstance(value, Number):
            value = replace(value)
        if isinstance(before, Array) and before in self.scopes[-1]:
            self.scopes[-1].remove(before)
            self.release(before)
        self.local[name] = value

    def _assign_in_memory(self, name: str, value: Number | Array | Other) -> None:
        place = self.places.get(name)
        if place is None:
            with self.builder.goto_block(self.entry):
                pointer = self.builder.alloca(self.context.get_value_type(value.type), name=name)
            place = self.places[name] = _Place(value.type, pointer)
        if isinstance(value, Array):
            if value.type != place.type:
                raise NotCovered(f"{name} holds {place.type} and {value.type}")
            taken = self._take(value)
            place.holds.roots.append(taken.root)
            struct = arrays.to_struct(self.builder, self.context, taken)
            before = self.builder.load(self._meminfo_of(place))
            self.builder.store(struct, place.pointer)
            memory.count(self.builder, "NRT_decref", before)
            return
        if value.type != place.type:
            raise NotCovered(f"{name} holds {place.type} and {value.type}")
        self.builder.store(value.llvm, place.pointer)

    # --- statements --------------------------------------------------------------------------------------------------

    def statements(self, block: Sequence[ast.stmt]) -> bool:
        """Whether control never comes out at the end."""
        for stmt in block:
            self.line = stmt.lineno
            if self.statement(stmt):
                return True
        return False

    def scope(self, block: Sequence[ast.stmt]) -> bool:
        """A nested block, with variables of its own."""
        before = dict(self.local)
        self.scopes.append([])
        ended = self.statements(block)
        if not ended:
            self._release_scopes(len(self.scopes) - 1)
        self.scopes.pop()
        self.local = before
        return ended

    def statement(self, stmt: ast.stmt) -> bool:
        match stmt:
            case ast.Assign(targets=[target]):
                self._assign_to(target, stmt.value)
            case ast.AugAssign():
                self._augmented(stmt)
            case ast.Expr():
                self.value(stmt.value)
            case ast.If():
                return self._branch(stmt)
            case ast.For():
                self._for(stmt)
            case ast.While():
                return self._while(stmt)
            case ast.Raise():
                self.builder.branch(self._raised(stmt))
                return True
            case ast.Return():
                self._return(stmt)
                return True
            case ast.Break() | ast.Continue():
                loop = self.loops[-1]
                self._release_scopes(loop.depth)
                self.builder.branch(loop.after if isinstance(stmt, ast.Break) else loop.again)
                return True
            case ast.Pass():
                pass
            case _:
                raise NotCovered(f"the statement {type(stmt).__name__}")
        self.release_temporaries()
        return False

    def _assign_to(self, target: ast.expr, tree: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            found = self.value(tree)
            if not isinstance(found, values.Sequence) or len(found.items) != len(target.elts):
                raise NotCovered("an assignment to several variables")
            taken = [self.new_temporary(self._take(item)) if isinstance(item, Array) else item for item in found.items]
            for name, item in zip(target.elts, taken):
                self._assign_value(name, item)
        else:
            self._assign_value(target, self.value(tree))

    def _assign_value(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
        elif isinstance(target, ast.Subscript):
            whole, pointer = self._element(target)
            arrays.store(self.builder, self.context, self.aliases, whole, pointer, value)
        else:
            raise NotCovered(f"an assignment to a {type(target).__name__}")

    def _element(self, target: ast.Subscript) -> tuple[Array, Any]:
        whole, items = array(self.value(target.value)), self.indices(target.slice)
        if any(isinstance(item, ast.Slice) for item in items) or len(items) != whole.type.ndim:
            raise NotCovered("a write to a slice")
        return whole, arrays.place(self.builder, whole, [number(self.value(item)) for item in items])

    def _augmented(self, stmt: ast.AugAssign) -> None:
        if isinstance(stmt.target, ast.Name):
            before = self.read(stmt.target.id)
            if before is None:
                raise NotCovered(f"the name {stmt.target.id}")
            self._assign(stmt.target.id, self.binary(stmt.op, before, self.value(stmt.value)))
        elif isinstance(stmt.target, ast.Subscript):
            whole, pointer = self._element(stmt.target)
            before = arrays.load(self.builder, self.context, self.aliases, whole, pointer)
            after = self.binary(stmt.op, before, self.value(stmt.value))
            arrays.store(self.builder, self.context, self.aliases, whole, pointer, after)
        else:
            raise NotCovered("an assignment in place")

    def _raised(self, stmt: ast.Raise) -> Any:
        call = stmt.exc
        tree, trees = (call.func, call.args) if isinstance(call, ast.Call) and not call.keywords else (call, [])
        found = self.value(tree) if isinstance(tree, ast.Name) else None
        if stmt.cause is not None or not isinstance(found, Known) or not isinstance(found.value, type):
            raise NotCovered("an exception that is not made of a class")
        if all(isinstance(a, ast.Constant) for a in trees):
            return self.raising(found.value, tuple(a.value for a in trees if isinstance(a, ast.Constant)), self.line)
        return self._raising_numbers(found.value, trees)

    def _raising_numbers(self, exception: type[BaseException], trees: Sequence[ast.expr]) -> Any:
        """A block that works out the numbers that the exception is given, and raises it."""
        before, block = self.builder.block, self.block("raise")
        self.builder.position_at_end(block)
        with self.passing():
            args = [a.value if isinstance(a, ast.Constant) else number(self.value(a)) for a in trees]
        place = (self.tree.name, self.file, self.line)
        info = exceptions.made(self.context, self.builder, exception, args, place)
        self.builder.store(self.builder.bitcast(info, self.function.args[1].type.pointee), self.function.args[1])
        self.builder.branch(self.exit(callconv.RETCODE_USEREXC))
        self.builder.position_at_end(before)
        return block

    def _return(self, stmt: ast.Return) -> None:
        found = Known(None) if stmt.value is None else self.value(stmt.value)
        if isinstance(found, Known):
            if found.value is not None:
                raise NotCovered(f"a return of {found.value}")
            return self._return_nothing()
        items = found.items if isinstance(found, values.Sequence) else [found]
        if any(isinstance(item, values.Sequence) for item in items):
            raise NotCovered("a nested tuple as the result")
        kinds = [TYPES.unliteral(type_of(item)) for item in items]
        kind = TYPES.BaseTuple.from_types(tuple(kinds)) if isinstance(found, values.Sequence) else kinds[0]
        if self.result is not None and kind != self.result:
            raise NotCovered("results of several types")
        self.result = kind
        scopes = [list(scope) for scope in self.scopes]
        parts = [self._returned(item, part) for item, part in zip(items, kinds)]
        value = self.caller.packed(self.builder, kind, parts) if isinstance(found, values.Sequence) else parts[0]
        value = self.context.data_model_manager[kind].as_return(self.builder, value)
        self.builder.store(value, self.builder.bitcast(self.function.args[0], value.type.as_pointer()))
        self.release_temporaries()
        self.builder.branch(self.exit(callconv.RETCODE_OK))
        self.scopes = scopes

    def _return_nothing(self) -> None:
        if self.result not in (None, TYPES.none):
            raise NotCovered("results of several types")
        self.result = TYPES.none
        self.release_temporaries()
        self.builder.store(self.context.get_dummy_value(), self.builder.bitcast(
            self.function.args[0], arrays.POINTER.as_pointer()))
        self.builder.branch(self.exit(callconv.RETCODE_OK))

    def _returned(self, value: Value, kind: Any) -> Any:
        """The value for the caller.  A local array goes to it with the variable's own reference."""
        if not isinstance(value, Array):
            return self.caller.lowered(self.builder, value, kind)
        for scope in self.scopes:
            mine = next((one for one in scope if one.meminfo is value.meminfo and not value.owned), None)
            if mine is not None:
                scope.remove(mine)
                return arrays.to_struct(self.builder, self.context, value)
        return arrays.to_struct(self.builder, self.context, self._take(value))

    # --- control flow ----------------------------------------------------------------------------------------------

    def _branch(self, stmt: ast.If) -> bool:
        test = self.truth(stmt.test)
        self.release_temporaries()
        if not stmt.orelse and len(stmt.body) == 1 and isinstance(stmt.body[0], ast.Raise):
            self.line = stmt.body[0].lineno
            after = self.block("fine")
            self.builder.cbranch(test, self._raised(stmt.body[0]), after).set_weights(_UNLIKELY)
            self.builder.position_at_end(after)
            return False
        then, after = self.block("then"), self.block("after")
        orelse = self.block("else") if stmt.orelse else after
        self.builder.cbranch(test, then, orelse)
        ended = []
        for start, body in ((then, stmt.body), (orelse, stmt.orelse)):
            if not body:
                ended.append(False)
                continue
            self.builder.position_at_end(start)
            ended.append(self.scope(body))
            if not ended[-1]:
                self.builder.branch(after)
        self.builder.position_at_end(after)
        if all(ended):
            self.builder.unreachable()
        return all(ended)

    def _for(self, stmt: ast.For) -> None:
        low, high, step = self._range(stmt)
        if not isinstance(stmt.target, ast.Name):
            raise NotCovered("a loop over several variables")
        compare = self.builder.icmp_signed
        sign, natural = ("<", low.natural) if step > 0 else (">", False)
        first, last = low.llvm, high.llvm
        body, again, after = (self.block(name) for name in ("loop", "again", "done"))
        before = self.builder.block
        self.builder.cbranch(compare(sign, first, last), body, after)
        self.builder.position_at_end(body)
        index = self.builder.phi(first.type)
        index.add_incoming(first, before)
        self.loops.append(_Loop(again, after, len(self.scopes)))
        outer = self.local.get(stmt.target.id)
        value = of_index(index) if natural else Number(INT, index)
        if stmt.target.id in self.variables.in_memory:
            self._assign(stmt.target.id, value)
        else:
            self.local[stmt.target.id] = value
        if not self.scope(stmt.body):
            self.builder.branch(again)
        self.loops.pop()
        if outer is None:
            self.local.pop(stmt.target.id, None)
        self.builder.position_at_end(again)
        following = self.builder.add(index, index.type(step), flags=("nsw",))
        index.add_incoming(following, again)
        self.builder.cbranch(self.builder.icmp_signed(sign, following, last), body, after)
        self.builder.position_at_end(after)

    def _range(self, stmt: ast.For) -> tuple[Number, Number, int]:
        call = stmt.iter
        if stmt.orelse or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords or (
                call.func.id != "range") or call.func.id in self.names:
            raise NotCovered("a loop over other things than a range")
        bounds = [number(self.value(arg)) for arg in call.args]
        if any(bound.type != INT for bound in bounds):
            raise NotCovered("a range of other numbers than int64")
        self.release_temporaries()
        step = bounds[2].literal if len(bounds) == 3 else 1
        if not step:
            raise NotCovered("a range with a run-time step")
        zero = Number(INT, LLVM[INT](0), 0, natural=True)
        low, high = (zero, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        return low, high, step

    def _while(self, stmt: ast.While) -> bool:
        if stmt.orelse:
            raise NotCovered("an else of a loop")
        test, body, after = (self.block(name) for name in ("while", "loop", "done"))
        self.builder.branch(test)
        self.loops.append(_Loop(test, after, len(self.scopes)))
        self.builder.position_at_end(test)
        if isinstance(stmt.test, ast.Constant) and stmt.test.value is True:
            self.builder.branch(body)
        else:
            condition = self.truth(stmt.test)
            self.release_temporaries()
            self.builder.cbranch(condition, body, after)
        self.builder.position_at_end(body)
        if not self.scope(stmt.body):
            self.builder.branch(test)
        self.loops.pop()
        self.builder.position_at_end(after)
        return False
