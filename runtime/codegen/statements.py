"""The body of one function: assignments, loops, branches, checks, the return."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numba.core import callconv

from ..kernels import accumulate
from . import arrays, exceptions, values
from .abreast import ABREAST, trips_are_apart
from .calls import type_of
from .frame import UNLIKELY, Frame
from .numbers import LLVM, of_index
from .values import INT, TYPES, Array, Known, NotCovered, Number, Value, array, number


@dataclass(eq=False)
class _Loop:
    again: Any          # the block in which the next trip begins
    after: Any
    depth: int          # how many scopes there are around the loop's body


class FunctionCompiler(Frame):
    """Writes `function` into the module: the body of `tree` for arguments of the types in `fndesc`."""

    def __init__(self, context: Any, module: Any, fndesc: Any, tree: ast.FunctionDef, function: Any) -> None:
        super().__init__(context, module, fndesc, tree, function)
        self.loops: list[_Loop] = []

    def compile(self) -> None:
        """Write the function; NotCovered."""
        start = self.block("start")
        self.builder.position_at_end(start)
        self.scopes.append([])
        self.take_arguments()
        if not self.statements(self.tree.body):
            self._return_nothing()
        self.finish(start)
        self.aliases.write()
        self.type_result()

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
            self.release_scopes(len(self.scopes) - 1)
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
                self.release_scopes(loop.depth)
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
            names, sources = _names(target), _names(tree)
            if names and sources and self.exchange(names, sources):
                return
            found = self.value(tree)
            if not isinstance(found, values.Sequence) or len(found.items) != len(target.elts):
                raise NotCovered("an assignment to several variables")
            taken = [self.new_temporary(self.take(item)) if isinstance(item, Array) else item for item in found.items]
            for name, item in zip(target.elts, taken):
                self._assign_value(name, item)
        else:
            handed_on = isinstance(target, ast.Name) and target.id in self.variables.handed_on
            self._assign_value(target, self.selected(tree) if handed_on else self.value(tree))

    def _assign_value(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
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
            self.assign(stmt.target.id, self.binary(stmt.op, before, self.value(stmt.value)))
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
        return arrays.to_struct(self.builder, self.context, self.take(value))

    # --- control flow ----------------------------------------------------------------------------------------------

    def _branch(self, stmt: ast.If) -> bool:
        test = self.truth(stmt.test)
        self.release_temporaries()
        if not stmt.orelse and len(stmt.body) == 1 and isinstance(stmt.body[0], ast.Raise):
            self.line = stmt.body[0].lineno
            after = self.block("fine")
            self.builder.cbranch(test, self._raised(stmt.body[0]), after).set_weights(UNLIKELY)
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
        own = len(self.function.blocks)
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
            self.assign(stmt.target.id, value)
        else:
            self.local[stmt.target.id] = value
        around, self.trips_apart = self.trips_apart, stmt.iter.func.id == ABREAST       # type: ignore[attr-defined]
        if not self.scope(stmt.body):
            self.builder.branch(again)
        self.trips_apart = around
        self.loops.pop()
        if outer is None:
            self.local.pop(stmt.target.id, None)
        self.builder.position_at_end(again)
        following = self.builder.add(index, index.type(step), flags=("nsw",))
        index.add_incoming(following, again)
        latch = self.builder.cbranch(self.builder.icmp_signed(sign, following, last), body, after)
        if stmt.iter.func.id == ABREAST:     # type: ignore[attr-defined]
            trips_are_apart(self.function, own, latch, any(map(self._calls, stmt.body)), len(stmt.body))
        self.builder.position_at_end(after)

    def _calls(self, stmt: ast.stmt) -> bool:
        """Whether something is called besides sums in any order."""
        return any(isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name) and self.names.get(node.func.id) is accumulate) for node in ast.walk(stmt))

    def _range(self, stmt: ast.For) -> tuple[Number, Number, int]:
        call = stmt.iter
        if stmt.orelse or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords or (
                call.func.id not in ("range", ABREAST)) or self.names.get(call.func.id, range) is not range:
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


def _names(tree: ast.expr) -> list[str]:
    """Those that a tuple consists of, if it does."""
    items = tree.elts if isinstance(tree, ast.Tuple) else []
    return [item.id for item in items if isinstance(item, ast.Name)] if all(
        isinstance(item, ast.Name) for item in items) else []
