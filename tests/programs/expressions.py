"""Random expressions over the names of a scope: numbers, indices, conditions, arrays of a given shape."""

from __future__ import annotations

import re

from .scope import COLUMNS, LONG, ROWS, Choices, Scope, Shape, keys_to

BINARY = ("{} + {}", "{} * {}", "{} - {}", "np.sin({} * {})", "np.tanh({} + {})", "{} / (1.5 + np.tanh({}))",
          "0.5 * ({} - {})", "np.cos({}) * {}", "np.sin({}) + {}", "np.exp(-abs({})) * {}", "max({}, {})", "min({}, {})",
          "np.maximum({}, {})", "({0} if {0} > {1} else {1})", "abs({}) - {}", "np.sqrt(1.0 + {} ** 2) * {}",
          "np.arctan({}) + {}", "np.log1p(np.exp({})) * {}", "np.hypot(1.0 + np.tanh({}), {})", "{0} * {1} * {0}",
          "np.where({0} > 0.1, np.sqrt(np.maximum({0}, 0.05)), {1})", "({} if {} > 0 else 0.25)")
UNARY = ("np.sin({})", "np.tanh({})", "-{}", "0.5 * {}", "{} ** 2", "np.cos({})", "np.exp(-{} ** 2)", "np.sinh({}) * 0.1",
         "{} ** 3", "1.0 / (2.0 + np.sin({}))", "abs({})", "np.arctan({})", "np.float64({})", "float({})", "+{}",
         "np.square({})", "{} ** 0", "{} ** 1")
OVER_ARRAY = ("np.sum({})", "{}.sum()", "np.mean({})", "np.max({})", "np.sum({} ** 2)", "np.prod(np.tanh({}))", "np.min({})",
              "sum({})", "np.sum(np.cumsum({}))", "{}.mean()", "{}.max()", "np.sum(np.sort({}))", "np.sum({}[{} > 0.1])",
              "np.sum(np.where({} > 0.2, {}, 0.5))", "len({}) * 0.1", "np.sum(np.cumprod(np.tanh({})))", "max({})")


class Expressions(Choices):
    """Writes expressions; `scope` is where they stand."""

    scope: Scope

    # --- numbers -------------------------------------------------------------------------------------------------

    def literal(self) -> str:
        return self.pick(("0.5", "1.0", "-0.5", "2.0", "0.25", "1.5", "-1.25", "0.0", "1", "0.75"))

    def number(self, depth: int = 2) -> str:
        """Text of a float; brackets where it is an operand."""
        kind = self.weighted([(5, "atom"), (6 if depth else 0, "binary"), (4 if depth else 0, "unary"), (2, "array"),
                              (1, "odd")])
        if kind == "atom":
            return self.atom()
        if kind == "binary":
            return self.pick(BINARY).format(self.operand(depth - 1), self.operand(depth - 1))
        if kind == "unary":
            return self.pick(UNARY).format(self.operand(depth - 1))
        return self.of_array() if kind == "array" else self.odd_number(depth)

    def operand(self, depth: int) -> str:
        text = self.number(depth)
        return bracketed(text)

    def atom(self) -> str:
        kind = self.weighted([(5, "float"), (4, "element"), (2, "literal"), (1, "int")])
        if kind == "element" and self.scope.arrays:
            return self.element()
        if kind == "literal":
            return self.literal()
        if kind == "int" and self.scope.ints:
            return f"0.1 * {self.pick([*self.scope.ints])}"
        names = [*self.scope.floats, *self.scope.fixed]
        return self.pick(names) if names else self.literal()

    def element(self) -> str:
        name = self.pick([*self.scope.arrays])
        shape = self.scope.arrays[name]
        indices = [self.index(size) for size in shape]
        return f"{name}[{']['.join(indices) if self.chance(20) else ', '.join(indices)}]"

    def index(self, size: int) -> str:
        """An int in range of an axis."""
        options = ["0", "-1", "1"]
        for name, bounds in self.scope.ints.items():
            if bounds is not None and -size <= bounds[0] and bounds[1] < size:
                options += [name, name, f"-1 - {name}" if bounds[0] >= 0 else name]
                if bounds[0] > -size:
                    options.append(f"{name} - 1")
                if bounds[1] + 1 < size:
                    options.append(f"{name} + 1")
            else:
                options += [f"{name} % {size}", f"({name} + 1) % {size}"]
        options += [f"q[{k}]" for k in ("0", "1", "-1") if size >= ROWS and "q" in self.scope.read_only]
        return self.pick(options)

    def of_array(self) -> str:
        name = self.some_array()
        text, rank = name, len(self.scope.arrays[name])
        if rank == 2:
            return self.pick(("np.sum({0})", "{0}.mean()", "np.sum({0} * {0})", "np.trace({0})", "np.max({0})",
                              "np.sum({0} @ {0}.T)", "np.sum(np.sum({0}, axis=0) ** 2)", "np.sum({0}[0] * {0}[1])",
                              "np.sum(np.max({0}, axis=1))")).format(text)
        if self.chance(25):
            bounded = [k for k, b in self.scope.ints.items() if b is not None and b[0] >= 0]
            if bounded:
                k = self.pick(bounded)
                return self.pick(("np.sum({0}[:{1}])", "np.sum({0}[{1}:])", "np.dot({0}[:{1}], {0}[:{1}])",
                                  "np.sum({0}[{1}:] ** 2)", "np.sum({0}[:{1}][::-1] * {0}[:{1}])")).format(text, k)
        if self.chance(20):
            return self.pick(("np.dot({}, {})", "{} @ {}", "np.sum({} * {})", "np.vdot({}, {})")).format(
                text, self.vector_like(name))
        return self.pick(OVER_ARRAY).replace("{}", text)

    def some_array(self) -> str:
        return self.pick([*self.scope.arrays])

    def vector_like(self, name: str) -> str:
        return self.pick([n for n, s in self.scope.arrays.items() if s == self.scope.arrays[name]])

    def odd_number(self, depth: int) -> str:
        """Numbers out of containers, comprehensions and calls."""
        options = []
        options += [f"{p}[{k}]" for p in self.scope.pairs for k in (0, 1)]
        options += [f"{d}['{k}']" for d in self.scope.dicts for k in "ab"]
        options += [f"{name}[{k}]" for name, length in self.scope.lists.items() if length for k in (0, -1)]
        options += [f"sum({name})" for name in self.scope.lists]
        options += [f"len({name}) * 0.1" for name in self.scope.lists]
        for helper, shape in self.scope.helpers.items():
            if shape is None:
                options.append(f"{helper}({self.atom()})")
            else:
                views = self.parts(shape, writable=True)
                options += [f"{helper}({self.pick(views)}, {self.atom()})"] if views else []
        name = self.some_array()
        if len(self.scope.arrays[name]) == 1:
            options += [f"sum([v * {self.literal()} for v in {name}])", f"sum(v ** 2 for v in {name} if v > 0.1)",
                        f"sum([a * b for a, b in zip({name}, {name}[::-1])])"]
        if self.scope.bools:
            options.append(f"({self.atom()} if {self.pick(self.scope.bools)} else {self.atom()})")
        return self.pick(options) if options else self.atom()

    # --- conditions ----------------------------------------------------------------------------------------------

    def condition(self) -> str:
        one = self.comparison()
        form = self.weighted([(6, "{0}"), (1, "not {0}"), (1, "{0} and {1}"), (1, "{0} or {1}")])
        return form.format(f"({one})" if "not" in form else one, self.comparison() if "{1}" in form else "")

    def comparison(self) -> str:
        kind = self.weighted([(5, "float"), (3, "int"), (1, "bool"), (1, "array"), (1, "chain")])
        if kind == "int" and self.scope.ints:
            name = self.pick([*self.scope.ints])
            return self.pick((f"{name} > {self.integer(0, 3)}", f"{name} % 2 == 0", f"{name} < {self.integer(1, 4)}",
                              f"{name} == {self.integer(0, 3)}", f"{name} != {self.integer(0, 2)}"))
        if kind == "bool" and self.scope.bools:
            return self.pick(self.scope.bools)
        if kind == "array":
            return f"{self.pick(('np.any', 'np.all'))}({self.some_array()} > {self.literal()})"
        if kind == "chain":
            return f"-0.3 < {self.atom()} < {self.pick(('0.4', '1.1'))}"
        return f"{self.operand(1)} {self.pick(('>', '<', '>=', '<='))} {self.pick(('0.1', '0.33', '-0.21', self.atom()))}"

    # --- arrays --------------------------------------------------------------------------------------------------

    def parts(self, shape: Shape, copies: bool = False, writable: bool = False) -> list[str]:
        """Names, and views of names, that have this shape."""
        mine = [(n, s) for n, s in self.scope.arrays.items() if not writable or n not in self.scope.read_only]
        names = [n for n, s in mine if s == shape]
        views = [f"{n}{key}" for n, s in mine for key in keys_to(s, shape, copies)]
        return names * 3 + [v for v in views if "q" in self.scope.read_only or "q" not in v]

    def part(self, shape: Shape) -> str | None:
        options = self.parts(shape, copies=True)
        return self.pick(options) if options else None

    def array(self, shape: Shape, depth: int = 1) -> str:
        """Text of an array that is new, or may be one that has a name."""
        kind = self.weighted([(4, "part"), (4, "unary"), (4, "binary"), (3, "new"), (3 if len(shape) == 1 else 1, "odd")])
        base = self.part(shape)
        if kind == "new" or base is None:
            return self.made_array(shape)
        if kind == "part":
            return base
        if kind == "unary":
            return self.pick(("{} * {}", "np.sin({}) * {}", "np.tanh({} * {})", "{} + {}", "np.where({0} > 0.2, {0}, {1})",
                              "{} * 0.5", "np.maximum({}, {})", "-{}", "{} ** 2", "np.exp(-{} ** 2)", "abs({})",
                              "np.clip({}, -0.7, 0.6)", "{} / (1.5 + np.sin({}))")).format(base, self.operand(0))
        if kind == "binary":
            other = self.array(shape, depth - 1) if depth else self.part(shape)
            return self.pick(("{} + {}", "{} * {}", "{} - {}", "np.sin({} + {})", "0.5 * ({} - {})",
                              "np.where({0} > {1}, {0}, {1})", "np.minimum({}, {})")).format(base, bracketed(other))
        return self.odd_array(shape, base)

    def made_array(self, shape: Shape) -> str:
        size = str(shape[0]) if len(shape) == 1 else str(shape)
        options = [f"np.zeros({size})", f"np.ones({size})", f"np.full({size}, {self.operand(1)})"]
        if len(shape) == 1:
            if shape[0] <= 4:
                options.append(f"np.array([{', '.join(self.number(1) for _ in range(shape[0]))}])")
            options.append(f"np.arange({float(shape[0])}) * {self.operand(0)}")
            options += [f"{a}.sum(axis={k})" for a, s in self.scope.arrays.items() if len(s) == 2
                        for k in (0, 1) if s[1 - k] == shape[0]]
        like = [n for n, s in self.scope.arrays.items() if s == shape]
        options += [f"np.zeros_like({n})" for n in like]
        return self.pick(options)

    def odd_array(self, shape: Shape, base: str) -> str:
        if len(shape) == 2:
            return self.pick((f"np.outer({self.array((shape[0],), 0)}, {self.array((shape[1],), 0)})",
                              f"{base} * {self.array((shape[1],), 0)}", f"np.sort({base}, axis=0)",
                              f"{base} + {self.array((shape[0],), 0)}[:, None]", f"np.cumsum({base}, axis=1)",
                              f"np.stack([row * {self.literal()} for row in {base}])")) if shape[0] != shape[1] else base
        options = [f"np.cumsum({base}) * 0.3", f"np.sort({base})", f"{base}[::-1]", f"np.roll({base}, 1)",
                   f"np.array([np.sin(v) for v in {base}])", f"np.cumprod(np.tanh({base}))",
                   f"np.concatenate([{base}[1:], {base}[:1]])", f"np.array([v for v in {base}])"]
        options += [f"{a} @ {self.array((s[1],), 0)}" for a, s in self.scope.arrays.items()
                    if len(s) == 2 and s[0] == shape[0] and s[1] in (LONG, ROWS, COLUMNS)]
        return self.pick(options)


def bracketed(text: str) -> str:
    """`text` as an operand of anything."""
    return text if re.fullmatch(r"[\w.]+", text) or re.match(r"[A-Za-z]", text) and _one_term(text) else f"({text})"


def _one_term(text: str) -> bool:
    """Whether `text`, which begins with a name, is only called and subscripted."""
    depth = 0
    for sign in text:
        depth += sign in "(["
        depth -= sign in ")]"
        if depth == 0 and sign in " +-*/":
            return False
    return True
