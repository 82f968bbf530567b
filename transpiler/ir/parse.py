"""Read the text form of the IR (see `show`).  Operations are looked up in the registry.

    block     := statement* ("yield" | "return") values
    statement := "check" value name string
               | [targets "="] ( op "(" values ")" ["{" params "}"]
                               | "call" name "(" values ")" ["if" "read"]
                               | "if" value ":" block "else" ":" block
                               | "for" bound "in" value ".." value "step" value [carries] ["parallel"] ["segment"]
                 ["abreast"] ["checkpoint" "(" number ";" number ";" number ")"] ":" block
                               | "while" [carries] ":" "cond" ":" block "do" ":" block )
    targets   := bound ("," bound)* | "(" ")"
    bound     := name ":" type
    carries   := "carry" "(" bound "=" value, ... ")"
    value     := name | number ":" type             without a type: 1 is i64, 1.0 is f64, True is bool
"""

from __future__ import annotations

from typing import Any

from . import registry
from .dims import DimExpr, floordiv, is_dim, maximum, minimum, symbol
from .index import At, Item, New, Span
from .nodes import Block, Call, Check, Checkpoint, Const, For, Func, If, Let, Module, Rule, Stmt, Value, Var, While
from .show import RULE_PARTS
from .tokens import ParseError, Reader, Token
from .types import BOOL, F64, I64, LONG, Type

__all__ = ["ParseError", "parse", "parse_func", "parse_module"]


def parse(text: str) -> Module | Func:
    """A func where the text holds one, else a module."""
    module = parse_module(text)
    return module.main if len(module.funcs) == 1 else module


def parse_func(text: str) -> Func:
    module = parse_module(text)
    if len(module.funcs) != 1:
        raise ParseError(f"expected one func, found {len(module.funcs)}", 1, 1)
    return module.main


def parse_module(text: str) -> Module:
    parser = _Parser(text)
    funcs = []
    while parser.peek().kind != "end":
        funcs.append(parser.func())
    if not funcs:
        parser.fail("expected `func`")
    return Module(tuple(funcs))


class _Parser(Reader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.vars: dict[str, Var] = {}
        self.lows: dict[str, int] = {}

    # Funcs, blocks, statements.

    def func(self) -> Func:
        self.vars, self.lows = {}, {}
        self.expect("func")
        self.read_lows()
        name = self.name_or_text()
        self.expect("(")
        params = tuple(self.listed(")", self.bound))
        names: list[str] = []
        types: list[str] | None = None
        arrow = self.peek()
        if self.accept("->"):
            self.expect("(")
            types = self.listed(")", lambda: self.result_type(names))
        effects: tuple[Var, ...] = ()
        if self.accept("writes"):
            self.expect("(")
            effects = tuple(self.listed(")", self.variable))
        rule = self.rule(params) if self.accept("rule") else None
        if self.accept("where"):
            self.lower_bound()
            while self.accept(","):
                self.lower_bound()
        body = self.indented("return")
        if types is not None and types != [str(r.type) for r in body.results]:
            self.fail(f"the results have types ({', '.join(str(r.type) for r in body.results)})", arrow)
        return Func(name, params, body, tuple(names), effects, rule)

    def rule(self, params: tuple[Var, ...]) -> Rule:
        """`rule (x, y) forward g pull h`."""
        self.expect("(")
        about = self.listed(")", self.variable)
        parts = {kind: self.name_or_text() for kind in RULE_PARTS if self.accept(kind)}
        return Rule(tuple(params.index(p) for p in about), parts.get("forward"), parts.get("push"), parts.get("pull"),
                    parts.get("ahead"), parts.get("code"))

    def read_lows(self) -> None:
        """Note `name >= number` from the end of the head: types before it depend on them."""
        ahead = 0
        while self.peek(ahead).kind not in ("line", "end"):
            if self.peek(ahead).text == ">=" and self.peek(ahead + 1).text.isdigit():
                self.lows[self.peek(ahead - 1).text] = int(self.peek(ahead + 1).text)
            ahead += 1

    def lower_bound(self) -> None:
        self.name()
        self.expect(">=")
        self.number()

    def result_type(self, names: list[str]) -> str:
        if self.peek(1).text == ":":
            names.append(self.name_or_text())
            self.expect(":")
        return str(self.type())

    def indented(self, end: str = "yield") -> Block:
        """`:` and the block on the next, deeper lines."""
        owner = self.at
        while self.tokens[owner].kind != "line":
            owner -= 1
        outer = self.tokens[owner].text
        self.expect(":")
        inner = self.peek().text
        self.end_line()
        if len(inner) <= len(outer):
            self.fail(f"expected a block, indented deeper, that ends in `{end}`")
        stmts: list[Stmt] = []
        while not self.sees(end):
            if self.peek().kind == "end":
                self.fail(f"expected `{end}` at the end of the block")
            stmts.append(self.statement())
            before = self.tokens[self.at - 1]
            if before.text != inner and self.peek().kind != "end":
                self.fail(f"wrong indentation: the block must end in `{end}`")
        self.at += 1
        results: tuple[Value, ...] = ()
        if self.peek().kind != "line":
            results = self.values_here()
        self.end_line()
        return Block(tuple(stmts), results)

    def statement(self) -> Stmt:
        if self.sees("check") and self.peek(1).text != ":":
            self.at += 1
            pred, kind, message = self.value(), self.name_or_text(), self.text()
            values, lanes = (tuple(self.listed(")", self.value)) if self.opens(word) else () for word in ("with", "in"))
            check = Check(pred, kind, message, kept=self.kept(), values=values, lanes=lanes)
            self.end_line()
            return check
        targets = self.targets()
        stmt = self.right_side(targets)
        self.vars.update((t.name, t) for t in targets)
        return stmt

    def opens(self, word: str) -> bool:
        """Whether `word (` is next, which is then read."""
        if not self.accept(word):
            return False
        self.expect("(")
        return True

    def kept(self) -> tuple[tuple[Var, Value], ...]:
        """`keeping (a = value, ...)`."""
        def pair() -> tuple[Var, Value]:
            param = self.variable()
            self.expect("=")
            return param, self.value()

        return tuple(self.listed(")", pair)) if self.opens("keeping") else ()

    def targets(self) -> tuple[Var, ...]:
        if self.accept("("):
            self.expect(")")
            self.expect("=")
            return ()
        if not (self.peek().kind == "name" and self.peek(1).text == ":") or self.sees("while", ":"):
            return ()
        found = [self.bound(scoped=False)]
        while self.accept(","):
            found.append(self.bound(scoped=False))
        self.expect("=")
        return tuple(found)

    def right_side(self, targets: tuple[Var, ...]) -> Stmt:
        if self.accept("if"):
            pred, then = self.value(), self.indented()
            self.expect("else")
            return If(targets, pred, then, self.indented())
        if self.accept("for"):
            return self.for_loop(targets)
        if self.accept("while"):
            carries, inits = self.carries()
            owner = self.tokens[self.at - 1]
            self.expect(":")
            self.end_line()
            if not self.sees("cond"):
                self.fail("expected `cond:`", owner if self.peek().kind == "end" else None)
            self.at += 1
            cond = self.indented()
            self.expect("do")
            return While(targets, carries, inits, cond, self.indented())
        if self.sees("call") and self.peek(1).kind in ("name", "string"):
            self.at += 1
            callee = self.name_or_text()
            self.expect("(")
            args = tuple(self.listed(")", self.value))
            needed = not self.accept("if")
            if not needed:
                self.expect("read")
            call = Call(targets, callee, args, None, needed)
            self.end_line()
            return call
        token = self.peek()
        name = self.name()
        try:
            op = registry.get(name)
        except KeyError:
            self.fail(f"there is no operation `{name}`", token)
        self.expect("(")
        args = tuple(self.listed(")", self.value))
        params = dict(self.listed("}", self.named_param)) if self.accept("{") else {}
        self.end_line()
        return Let(targets, op, args, params)

    def for_loop(self, targets: tuple[Var, ...]) -> For:
        index = self.bound(scoped=False)
        self.expect("in")
        lo = self.value()
        self.expect("..")
        hi = self.value()
        self.expect("step")
        step = self.value()
        carries, inits = self.carries()
        self.vars[index.name] = index
        parallel, segment, abreast = self.accept("parallel"), self.accept("segment"), self.accept("abreast")
        checkpoint = self.checkpoint() if self.accept("checkpoint") else None
        return For(targets, index, lo, hi, step, carries, inits, self.indented(), parallel, None, checkpoint, segment,
                   abreast)

    def checkpoint(self) -> Checkpoint:
        self.expect("(")
        every = int(self.number())
        self.expect(";")
        memory = int(self.number())
        self.expect(";")
        slots = int(self.number())
        self.expect(")")
        return Checkpoint(every or None, memory or None, slots or None)

    def carries(self) -> tuple[tuple[Var, ...], tuple[Value, ...]]:
        if not self.accept("carry"):
            return (), ()
        self.expect("(")
        pairs = self.listed(")", self.carry)
        self.vars.update((c.name, c) for c, _ in pairs)
        return tuple(c for c, _ in pairs), tuple(v for _, v in pairs)

    def carry(self) -> tuple[Var, Value]:
        var = self.bound(scoped=False)
        self.expect("=")
        return var, self.value()

    # Values, types, dimensions, parameters.

    def bound(self, scoped: bool = True) -> Var:
        name = self.name()
        self.expect(":")
        var = Var(name, self.type())
        if scoped:
            self.vars[name] = var
        return var

    def values_here(self) -> tuple[Value, ...]:
        found = [self.value()]
        while self.accept(","):
            found.append(self.value())
        return tuple(found)

    def variable(self) -> Var:
        token, value = self.peek(), self.value()
        if isinstance(value, Const):
            self.fail("a name is needed here", token)
        assert isinstance(value, Var)
        return value

    def value(self) -> Value:
        token = self.peek()
        typed_word = token.text in ("inf", "nan") and self.peek(1).text == ":" and self.peek(2).kind == "name"
        if token.kind == "name" and token.text not in ("True", "False") and not typed_word and not self.sees(
                "complex", "("):
            self.at += 1
            if token.text not in self.vars:
                self.fail(f"`{token.text}` is not defined here", token)
            return self.vars[token.text]
        number = self.number()
        if self.peek().text == ":" and self.peek(1).kind == "name":
            self.at += 1
            return Const(number, self.type())
        if isinstance(number, complex):
            self.fail("a complex number needs a type", token)
        return Const(number, BOOL if isinstance(number, bool) else I64 if isinstance(number, int) else F64)

    def number(self) -> Any:
        if self.accept("complex"):
            self.expect("(")
            real = self.number()
            self.expect(",")
            imaginary = self.number()
            self.expect(")")
            return complex(real, imaginary)
        negative = self.accept("-")
        token = self.take()
        if token.kind == "number":
            plain = int(token.text) if token.text.isdigit() else float(token.text)
        elif token.text in ("inf", "nan"):
            plain = float(token.text)
        elif token.text in ("True", "False") and not negative:
            return token.text == "True"
        else:
            self.fail(f"expected a value, found `{token.text}`", token)
        return -plain if negative else plain

    def type(self) -> Type:
        token = self.peek()
        name = self.name()
        if name not in LONG:
            self.fail(f"`{name}` is not a dtype", token)
        return Type(LONG[name], tuple(self.listed("]", self.dim)) if self.accept("[") else ())

    def dim(self) -> Any:
        token = self.peek()
        dim = self.sum()
        if not is_dim(dim):
            self.fail("expected a dimension", token)
        return dim

    def named_param(self) -> tuple[str, Any]:
        name = self.name()
        self.expect("=")
        return name, self.param()

    def param(self) -> Any:
        token = self.peek()
        if token.kind == "string":
            return self.text()
        if self.sees("<"):
            self.fail("this parameter has no text form")
        if self.sees("float", "("):
            self.at += 2
            text = self.text()
            self.expect(")")
            return float(text)
        if self.sees("type") and self.peek(1).kind == "name":
            self.at += 1
            return self.type()
        if self.accept("["):
            return tuple(self.listed("]", self.item))
        return self.sum()

    def item(self) -> Item:
        if self.accept("at"):
            return At()
        if self.accept("new"):
            return New()
        self.expect("span")
        self.expect("(")
        start = None if self.accept("?") else self.dim()
        self.expect(";")
        size = self.dim()
        self.expect(";")
        step = self.number()
        self.expect(")")
        return Span(start, size, step)

    def sum(self) -> Any:
        """Sums and products of dimensions; also what may stand alone: floats, words, tuples."""
        left = self.product()
        while self.sees("+") or self.sees("-"):
            sign = self.take()
            right = self.product()
            self.only_dims(sign, left, right)
            left = left + right if sign.text == "+" else left - right
        return left

    def product(self) -> Any:
        left = self.factor()
        while self.peek().kind == "sign" and self.peek().text in ("*", "//", "%"):
            sign = self.take()
            right = self.factor()
            self.only_dims(sign, left, right)
            if sign.text == "*":
                left = left * right
            elif sign.text == "//":
                left = floordiv(left, right)
            else:
                left = left - floordiv(left, right) * right
        return left

    def only_dims(self, sign: Token, *values: Any) -> None:
        if not all(map(is_dim, values)):
            self.fail(f"`{sign.text}` works on dimensions only", sign)

    def factor(self) -> Any:
        token = self.peek()
        if self.sees("-"):
            self.at += 1
            operand = self.factor()
            if isinstance(operand, bool) or not isinstance(operand, (int, float, DimExpr)):
                self.fail("`-` works on numbers and dimensions only", token)
            return -operand
        if self.accept("("):
            return self.tuple_or_group()
        if token.kind == "number" or token.text in ("True", "False") or self.sees("complex", "("):
            return self.number()
        if self.accept("None"):
            return None
        if token.text in ("max", "min") and self.peek(1).text == "(":
            self.at += 2
            a = self.dim()
            self.expect(",")
            b = self.dim()
            self.expect(")")
            return maximum(a, b) if token.text == "max" else minimum(a, b)
        name = self.name()
        low = self.lows.get(name, 2)
        if self.accept("@"):
            low = self.number()
        return symbol(name, low)

    def tuple_or_group(self) -> Any:
        found = []
        while not self.accept(")"):
            found.append(self.param())
            if not found[1:] and self.accept(")"):
                return found[0]
            if not self.sees(")"):
                self.expect(",")
        return tuple(found)
