"""Names in generated text: the user's where there is one, short ones where there is none, never one that means
something else.

The name of a variable is that of the first of its values that has one: `x_1` and `x_2` of the IR are `x` again where
they share a variable.  An index is `i`, `j`, `k` by depth unless the user called it something; a nameless element of
an array is called after its place (`x_t` for `x_tape[t]`), any other nameless value after its operation (`e` for
`exp`).  Two variables have one name only if they are numbers of one dtype in separate blocks.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Iterator

from ..ir.nodes import Block, Const, For, Func, If, Let, Stmt, Var
from ..ir.walk import all_statements, blocks, bound_inside
from .access import Role, short_name
from .plan import Plan
from .storage import Storage

RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins)) | frozenset(
    ("np", "numpy", "numba", "njit", "prange", "abreast", "math", "gradsmith", "GuardFailed", "Miss", "empty", "zeros"))
INDICES = "ijklmn"
LETTERS = "abcdefghpqrsuvwyz"
_NUMBERED = re.compile(r"_\d+$")
_NUMBERS = re.compile(r"(_\d+)+$")
_NUMBERED_OFTEN = re.compile(r"(_\d+)(?:_\d+)+$")
_DERIVED = re.compile(r"((?:[dt]_)+)(.+?)(?:_\d+)+")
_NAMELESS = re.compile(r"t(_\d+)*")


class Naming:
    """`of(var)` is the name of its variable; `sizes` the names of the sizes that are bound at the function's entry."""

    def __init__(self, plan: Plan, storage: Storage, sizes: Collection[str], reserved: Collection[str] = ()) -> None:
        self.plan = plan
        self.storage = storage
        self.reserved = RESERVED | set(reserved)
        self.sizes: dict[str, str] = {}
        self._names: dict[Var, str] = {}                # of owners
        self._holders: dict[str, list[Var]] = {}
        self._members: dict[Var, list[Var]] = {}
        self._paths: dict[Var, tuple[int, ...]] = {}
        self._raw: set[str] = set()
        # Numba numbers the versions of a variable of a parallel function: the second `x` is `x_1` there.
        self._parallel = bool(storage.prange)
        self._stems: set[str] = set()                   # of names that end in a number
        self._fixed: set[str] = set()
        self._params = {param.name for param in plan.func.params}
        func = plan.func
        self._result_names = {r: name for r, name in zip(map(plan.value, func.results), func.result_names)
                              if isinstance(r, Var) and name.isidentifier()}
        for var, path in self._variables(func):
            self._raw.add(var.name)
            owner = storage.owner(var)
            self._members.setdefault(owner, []).append(var)
            self._paths[owner] = _common(self._paths.get(owner, path), path)
        for param in func.params:
            self._set(storage.owner(param), param.name if self._may_keep(param) else self._free(param.name, param))
        for size in sizes:
            self.sizes[size] = self.fresh(size)
        self._visit(func.body)

    def of(self, var: Var) -> str:
        return self._names[self.storage.owner(var)]

    def fresh(self, wanted: str) -> str:
        """A name for something that is no value of the IR."""
        name = self._unshared(wanted)
        self._fixed.add(name)
        self._note_stem(name)
        return name

    # --- the variables, in order ---------------------------------------------------------------------------------

    def _variables(self, func: Func) -> Iterator[tuple[Var, tuple[int, ...]]]:
        for param in func.params:
            yield param, ()
        yield from self._in_block(func.body, ())

    def _in_block(self, block: Block, path: tuple[int, ...]) -> Iterator[tuple[Var, tuple[int, ...]]]:
        for number, stmt in enumerate(block.stmts):
            if stmt in self.plan.dead:
                continue
            for target in stmt.targets:
                yield target, path
            for which, inner in enumerate(blocks(stmt)):
                below = (*path, 2 * number + which)
                for var in bound_inside(stmt) if inner is blocks(stmt)[-1] else ():
                    yield var, below
                yield from self._in_block(inner, below)

    def _visit(self, block: Block) -> None:
        for stmt in block.stmts:
            if stmt in self.plan.dead:
                continue
            if isinstance(stmt, For):
                self._name(stmt.targets, stmt)
                self._name_index(stmt.index)
                self._name(stmt.carries, stmt)
            elif isinstance(stmt, If):
                self._name(stmt.targets, stmt)
            else:
                self._name((*stmt.targets, *bound_inside(stmt)), stmt)
            for inner in blocks(stmt):
                self._visit(inner)

    def _name(self, variables: tuple[Var, ...], stmt: Stmt) -> None:
        for var in variables:
            owner = self.storage.owner(var)
            if owner in self._names or var in self.plan.inlined or var in self.plan.alias:
                continue
            self._set(owner, self._choose(owner))

    # --- choosing ------------------------------------------------------------------------------------------------

    def _base(self, name: str) -> str:
        """Without the number that made it unique."""
        while (base := _NUMBERED.sub("", name)) != name and (base in self._raw or base[2:] in self._params):
            name = base         # d_x_1 is the adjoint of x, also where no d_x is left
        if {name, name[2:]} & self._params:
            return name
        derived = _DERIVED.fullmatch(name)
        if derived is not None and derived[2] in self._params:
            return derived[1] + derived[2]          # t_d_x_1_1 is the tangent of d_x
        return _NUMBERED_OFTEN.sub(r"\1", name)

    def _is_nameless(self, var: Var) -> bool:
        """Has it only the name that its operation gave it?"""
        let = self.plan.definition.get(var)
        if isinstance(let, Let) and self.plan.roles[let] is Role.LOAD and isinstance(let.args[0], Var) and (
                re.fullmatch(rf"{re.escape(let.args[0].name)}_i(_\d+)*", var.name)):
            return True
        return _NAMELESS.fullmatch(var.name) is not None

    def _choose(self, owner: Var) -> str:
        members = self._members[owner]
        for var in members:
            if var in self._result_names:
                return self._free(self._result_names[var], owner)
        for var in members:
            if not self._is_nameless(var):
                return self._free(self._base(var.name), owner)
        for candidate in self._candidates(members):
            if self._is_free(candidate, owner):
                return candidate
        return self._free("t", owner)

    def _candidates(self, members: list[Var]) -> Iterator[str]:
        lets = [let for var in members if isinstance(let := self.plan.definition.get(var), Let)]
        if members[0].type.shape:
            for let in lets:
                yield from (letter.upper() for letter in self._short_names(let))
            yield from LETTERS.upper()
            return
        for let in lets:
            if self.plan.roles[let] is Role.LOAD:
                yield self._place_name(let)
        for let in lets:
            yield from self._short_names(let)
        yield from LETTERS

    def _short_names(self, let: Let) -> Iterator[str]:
        """After what the statement computes; of a store, after what it stores."""
        kind = self.plan.roles[let]
        if kind in (Role.STORE, Role.ADD):
            stored = self.plan.definition.get(self.plan.value(let.args[1]))  # type: ignore[arg-type]
            if isinstance(stored, Let) and stored is not let:
                yield from self._short_names(stored)
        elif kind in (Role.SCALAR, Role.FILLS, Role.RETURNS) and (let.args or hasattr(let.op, "short")):
            yield short_name(let)

    def _place_name(self, load: Let) -> str:
        """`x_t` for `x_tape[t]`, `A_ij` for `A[i, j]`."""
        array = self.plan.root(load.args[0])
        if isinstance(array, Const):
            return "t"
        indices = ""
        for arg in map(self.plan.value, load.args[1:]):
            if isinstance(arg, Const):
                indices += str(arg.value)
            else:
                known = self._names.get(self.storage.owner(arg), "")
                indices += known if len(known) == 1 else ""
        whole = self.of(array).removesuffix("_tape")
        return f"{whole}_{indices}" if indices else f"{whole}_at"

    def _name_index(self, index: Var) -> None:
        named_t = _NAMELESS.fullmatch(index.name)       # by the user: an index without a name is `i`
        base = "t" if named_t else self._base(index.name)
        choices = [base] if base != "i" and not _NUMBERED.search(base) else INDICES
        for choice in choices:
            if self._is_free(choice, index):
                return self._set(index, choice)
        return self._set(index, self._free(choices[0], index))

    def _set(self, owner: Var, name: str) -> None:
        self._names[owner] = name
        self._holders.setdefault(name, []).append(owner)
        self._note_stem(name)

    def _free(self, wanted: str, owner: Var) -> str:
        if wanted in self.reserved:
            wanted += "_"
        name, number = wanted, 0
        while not self._is_free(name, owner):
            number += 1
            name = self._numbered(wanted, number)
        return name

    def _may_keep(self, param: Var) -> bool:
        """Whether the caller's name for it may stay, whatever other names are."""
        return param.name not in self.reserved and param.name not in self._holders

    def _unshared(self, wanted: str) -> str:
        name, number = wanted + "_" * (wanted in self.reserved), 0
        while name in self._holders or name in self.reserved or name in self._fixed or self._is_version(name):
            number += 1
            name = self._numbered(wanted, number)
        return name

    def _is_free(self, name: str, owner: Var) -> bool:
        if name in self.reserved or name in self._fixed or self._is_version(name):
            return False
        return all(self._may_share(owner, other) for other in self._holders.get(name, ()))

    def _numbered(self, name: str, number: int) -> str:
        return f"{_NUMBERS.sub('', name)}{number}" if self._parallel else f"{name}_{number}"

    def _is_version(self, name: str) -> bool:
        """Whether Numba may take the name for a version of another one, or that for a version of this."""
        if not self._parallel:
            return False
        stem = _NUMBERED.sub("", name)
        return name in self._stems or (stem != name and (stem in self._holders or stem in self._fixed))

    def _note_stem(self, name: str) -> None:
        stem = _NUMBERED.sub("", name)
        if stem != name:
            self._stems.add(stem)

    def _may_share(self, a: Var, b: Var) -> bool:
        if a.type.shape or b.type.shape or a.type.dtype != b.type.dtype:
            return False
        if self.storage.live(a) & self.storage.live(b):
            return False
        left, right = self._paths[a], self._paths[b]
        return left[:len(right)] != right[:len(left)]


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The innermost block around both."""
    length = 0
    while length < min(len(a), len(b)) and a[length] == b[length]:
        length += 1
    return a[:length]


def names_of_calls(func: Func) -> set[str]:
    """Functions of the module that are called."""
    return {stmt.func for stmt in all_statements(func.body) if hasattr(stmt, "func") and isinstance(stmt.func, str)}
