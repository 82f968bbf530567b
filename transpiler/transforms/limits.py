"""Derivatives at points where an operation's rule is 0/0: equal eigenvalues and singular values.

The rule of such an operation, y = op(a), divides by differences of its results.  Where two coincide it leaves the
quotient out; here its limit is added.  `op.parting` gives a direction p in which coinciding results part.  The
numerator vanishes at y for every function that is smooth in a, so its quotient by the vanishing difference tends to

    (its derivative along p) / (the difference of p),

which is one more forward derivative, of what comes after the operation:

    reverse   of its cotangent: `op.vjp_limit(moved, again, ...)` is added to its vjp, where `moved` and `again` are the
              first and second derivative of ct(y + e p) in e.  With n the numerator and g the difference that vanishes,
              n / g is n' / g' - g n'' / (2 g'^2) up to the square of g, so that this may be derived once more
    forward   `op.jvp_limit` gives the turn r that is left out, divided by the difference of p instead; to the tangent
              of a result f(y) is added d^2 f(y + e p + h r) / de dh

Where results coincide, first derivatives are exact and second ones are, if the first derivation was in reverse mode;
where they nearly do, as good as half the digits.  This holds for operations in the func's own block: inside branches,
loops and funcs that others call, what comes after is not at hand.  There it is checked that no results coincide
(`check_apart`), and the derivative is a FloatingPointError where they do, rather than incomplete.

Several decompositions of matrices that are equal, though computed apart, may be smooth only together: v of one with w
of another.  So those that do not depend on one another part together.  That changes nothing for a function that is
smooth in each: the numerator of one then vanishes wherever the results of another are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .. import ops
from ..ir.build import check, const, current
from ..ir.index import Span
from ..ir.nodes import Block, Const, Func, Let, Stmt, Value, Var
from ..ir.types import BOOL
from ..ir.walk import all_statements, blocks, bound_inside, inline, operands, reads
from ..ops.base import Op, Zeros, cotangent_zeros
from ..optimize.common import share_common

Jvp = Callable[[Func, Sequence[bool]], Func]        # `transforms.jvp.jvp`, which calls this module


def joined(func: Func) -> Func:
    """Equal decompositions as one: what is smooth in the results of several need not be in those of each."""
    count = sum(isinstance(s, Let) and type(s.op).parting is not Op.parting for s in func.body.stmts)
    return share_common(func) if count > 1 else func


def add_vjp_limits(let: Let, cts: Sequence[Value | None], parts: Sequence[Value | None],
                   jvp: Jvp) -> Sequence[Value | None]:
    """The cotangents `parts` of the arguments with the limits added.

    Called when the builder holds the whole func and the adjoints so far, from which the cotangents `cts` come.
    """
    directions = let.op.parting(let.args, let.targets, **let.params)
    stmts = current().stmts
    if directions is None or let not in stmts:            # in a rehearsal it is not: limits read nothing of loops
        return parts
    alike = _alike(let, stmts)
    turning = [ct for ct, d in zip(cts, directions, strict=True) if d is None and isinstance(ct, Var)]
    if not turning:
        return parts        # of coinciding results only what does not part, but turns, has an undetermined derivative
    after = _func(_after(alike, stmts), turning)
    found = iter(_moved_twice(after, _partings(alike), jvp))
    pairs = [next(found) if d is None and isinstance(ct, Var) else (None, None)
             for ct, d in zip(cts, directions, strict=True)]
    if all(once is None for once, _ in pairs):
        return parts
    with cotangent_zeros(Zeros.MASKED):
        more = let.op.vjp_limit([once for once, _ in pairs], [twice for _, twice in pairs], let.args, let.targets,
                                **let.params)
    return [a if b is None else b if a is None else a + b for a, b in zip(parts, more, strict=True)]


def check_apart(let: Let, args: Sequence[Value], results: Sequence[Value], wanted: Sequence[bool],
                moving: Sequence[Value | None]) -> None:
    """Emit a check that no results coincide, where one that turns then is wanted.

    args, results: as they are read here.  moving: if all of these are zero, nothing turns.
    """
    directions = let.op.parting(args, results, **let.params)
    if directions is None or not any(want and d is None for want, d in zip(wanted, directions, strict=True)):
        return
    apart: Value = const(True, BOOL)
    still: Value = const(True, BOOL)
    for value, direction in zip(results, directions, strict=True):
        if direction is not None:
            apart = ops.logical_and(apart, _are_apart(value, let.op.parts_from_zero))
    for part in moving:
        if part is not None:
            still = ops.logical_and(still, _all(ops.equal(part, const(0, part.type))))
    check(ops.logical_or(apart, still), "FloatingPointError", f"{let.op.name}: results coincide, where its derivative "
          "inside of a loop, a branch or a function that is called is not known")


def check_turned_apart(let: Let, args: Sequence[Value], results: Sequence[Value],
                       cts: Sequence[Value | None]) -> None:
    """The same for the reverse mode, from the cotangents of the results."""
    directions = let.op.parting(args, results, **let.params)
    if directions is not None:
        turning = [ct if d is None else None for ct, d in zip(cts, directions, strict=True)]
        check_apart(let, args, results, [ct is not None for ct in turning], turning)


def _are_apart(values: Value, from_zero: bool) -> Value:
    """Whether neighbours along the last axis differ, and all from zero."""
    *outer, n = values.shape
    before, after = (ops.load(values, index=(*(Span(0, d) for d in outer), Span(start, n - 1))) for start in (0, 1))
    holds = _all(ops.not_equal(before, after))
    return ops.logical_and(holds, _all(ops.not_equal(values, const(0, values.type)))) if from_zero else holds


def _all(x: Value) -> Value:
    return ops.all(x, axes=tuple(range(x.rank))) if x.rank else x


def add_jvp_limits(func: Func, tangents: Mapping[Var, Value], results: Sequence[Value], moved: Sequence[Value],
                   jvp: Jvp) -> Sequence[Value]:
    """The tangents `moved` of the func's `results` with the limits added; `tangents`: of all its variables."""
    stmts = func.body.stmts
    done: set[Stmt] = set()
    for let in stmts:
        if not isinstance(let, Let) or let in done or not _parts(let) or not _moves(let, tangents):
            continue
        alike = [other for other in _alike(let, stmts) if _moves(other, tangents)]
        done.update(alike)
        turns: dict[Var, Value] = {}
        for one in alike:
            incoming = [None if isinstance(a, Const) else tangents.get(a) for a in one.args]
            turns |= _seeds(one, one.op.jvp_limit(incoming, one.args, one.targets, **one.params))
        after = _func(_after(alike, stmts), [r for r in results if isinstance(r, Var)])
        turning = [p in turns for p in after.params]
        if not any(turning):
            continue
        once = jvp(after, turning)
        once = Func(once.name, once.params, Block(once.body.stmts, once.results[len(after.results):]))
        seeds = _partings(alike)
        twice = jvp(once, [p in seeds for p in once.params])
        args = [*after.params, *(turns[p] for p in after.params if p in turns),
                *(seeds[p] for p in once.params if p in seeds)]
        more = iter(inline(twice, args)[len(once.results):])
        moved = [t + next(more) if isinstance(r, Var) else t for r, t in zip(results, moved, strict=True)]
    return moved


def _moves(let: Let, tangents: Mapping[Var, Value]) -> bool:
    return any(a in tangents for a in let.args if isinstance(a, Var))


def _parts(let: Let) -> bool:
    return let.op.parting(let.args, let.targets, **let.params) is not None


def _alike(let: Let, stmts: Sequence[Stmt]) -> list[Let]:
    """`let` and the decompositions like it, of operands like its own, none of which depends on another's results."""
    found: list[Let] = []
    wanted = (let.op, dict(let.params), [a.type for a in let.args])
    for stmt in stmts:
        if isinstance(stmt, Let) and stmt.op is let.op and (
                stmt is let or (stmt.op, dict(stmt.params), [a.type for a in stmt.args]) == wanted):
            found.append(stmt)
    if len(found) == 1:
        return found
    before = _before(let, stmts)
    together = [let]
    for other in found:
        if other is not let and other not in before:
            needed = _before(other, stmts)
            if not any(one in needed or other in _before(one, stmts) for one in together):
                together.append(other)
    return together


def _before(let: Let, stmts: Sequence[Stmt]) -> set[Stmt]:
    """The statements before `let` that its operands need."""
    needed = {a for a in let.args if isinstance(a, Var)}
    found: set[Stmt] = set()
    for stmt in reversed(stmts[:stmts.index(let)]):
        if any(t in needed for t in stmt.targets):
            found.add(stmt)
            needed |= _read(stmt)
    return found


def _after(lets: Sequence[Let], stmts: Sequence[Stmt]) -> list[Stmt]:
    """The statements after the first of `lets`, but those."""
    return [s for s in stmts[min(stmts.index(let) for let in lets):] if s not in lets]


def _partings(lets: Sequence[Let]) -> dict[Var, Value]:
    return {target: d for let in lets
            for target, d in _seeds(let, let.op.parting(let.args, let.targets, **let.params) or ()).items()}


def _seeds(let: Let, directions: Sequence[Value | None]) -> dict[Var, Value]:
    return {target: d for target, d in zip(let.targets, directions, strict=True) if d is not None}


def _read(stmt: Stmt) -> set[Var]:
    return {v for v in operands(stmt) if isinstance(v, Var)} | {
        v for block in blocks(stmt) for v in reads(block) if isinstance(v, Var)}


def _func(stmts: Sequence[Stmt], results: Sequence[Var]) -> Func:
    """Those of the statements that the results need, as a func of the variables that they read from before."""
    needed: set[Var] = set(results)
    kept: list[Stmt] = []
    for stmt in reversed(stmts):
        if any(t in needed for t in stmt.targets):
            kept.append(stmt)
            needed |= _read(stmt)
    kept.reverse()
    made: set[Var] = {t for stmt in kept for t in stmt.targets}
    inner = {v for stmt in kept for block in blocks(stmt) for v in _bound(stmt, block)}
    params = sorted((v for v in needed if v not in made and v not in inner), key=lambda v: v.name)
    return Func("after", tuple(params), Block(tuple(kept), tuple(results)))


def _bound(stmt: Stmt, block: Block) -> set[Var]:
    """Names bound by the statement for its blocks and inside of them."""
    found = set(bound_inside(stmt))
    for one in all_statements(block):
        found.update(one.targets, bound_inside(one))
    return found


def _moved_twice(func: Func, seeds: Mapping[Var, Value], jvp: Jvp) -> list[tuple[Value | None, Value | None]]:
    """First and second derivatives of the func's results along `seeds`, emitted here; None where they are zero."""
    moving = [p in seeds for p in func.params]
    if not any(moving):
        return [(None, None)] * len(func.results)
    once = jvp(func, moving)
    once = Func(once.name, once.params, Block(once.body.stmts, once.results[len(func.results):]))
    twice = jvp(once, [p in seeds for p in once.params])
    directions = [seeds[p] for p in func.params if p in seeds]
    found = inline(twice, [*func.params, *directions, *directions])
    count = len(func.results)
    return [(_or_none(a), _or_none(b)) for a, b in zip(found[:count], found[count:], strict=True)]


def _or_none(value: Value) -> Value | None:
    return None if isinstance(value, Const) and value.value == 0 else value
