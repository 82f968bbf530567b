"""Random statements: assignments, writes of every kind, branches, loops and ways out of them."""

from __future__ import annotations

import re

from .expressions import Expressions, bracketed
from .scope import COLUMNS, LONG, ROWS, VIEWS, Scope, Shape, shape_of

AUGMENTED = ("+=", "*=", "-=", "=")


class Statements(Expressions):
    """Writes the statements of one function into `lines`."""

    def __init__(self, draw, scope: Scope) -> None:
        super().__init__(draw)
        self.scope, self.lines, self.depth, self.count = scope, [], 1, 0
        self.in_loop = False
        self.trips = "n"
        self.kernel = False         # mostly loops that write into arrays, as numerical kernels do
        self.budget = 13            # statements still to come
        self.loops = 0

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def bounded(self, text: str) -> str:
        """Inside loops numbers must not grow without bound."""
        return self.pick((f"np.tanh({text})", f"0.7 * np.sin({text})")) if self.in_loop and self.chance(60) else text

    # --- blocks --------------------------------------------------------------------------------------------------

    def block(self, most: int = 3) -> None:
        """At least one statement, in a scope of its own, one level in."""
        outer, start = self.scope, len(self.lines)
        self.scope, self.depth = outer.inner(), self.depth + 1
        self.some(most)
        if len(self.lines) == start:
            self.emit("pass")
        self.scope, self.depth = outer, self.depth - 1

    def some(self, most: int, percent: int = 70) -> None:
        for k in range(most):
            if self.budget <= 0 or k and not self.chance(percent):
                return
            self.statement()

    def statement(self) -> None:
        self.budget -= 1
        deep = self.depth > 3
        if self.kernel:
            kinds = [(4, self.assign), (9, self.write), (1, self.new_view), (0 if deep else 2, self.branch),
                     (0 if deep else 9, self.loop), (1 if self.in_loop else 0, self.leave), (1, self.swap), (1, self.call)]
            return self.weighted(kinds)()
        kinds = [(5, self.assign), (2, self.new_number), (6, self.write), (2, self.new_array), (2, self.new_view),
                 (2, self.rebind), (3, self.container), (0 if deep else 4, self.branch), (0 if deep else 7, self.loop),
                 (3 if self.in_loop else 0, self.leave), (1 if self.depth > 1 else 0, self.early_return),
                 (2, self.odd_statement)]
        self.weighted(kinds)()

    # --- numbers -------------------------------------------------------------------------------------------------

    def assign(self) -> None:
        if not self.scope.floats:
            return self.new_number()
        sign = self.pick(("=", "+=", "-=", "*="))
        text = self.number()
        self.emit(f"{self.pick(self.scope.floats)} {sign} {self.bounded(text) if sign != '*=' else f'np.cos({text})'}")

    def new_number(self) -> None:
        name = self.new("t")
        self.emit(f"{name} = {self.number()}")
        self.scope.floats.append(name)

    # --- arrays --------------------------------------------------------------------------------------------------

    def some_shape(self) -> Shape:
        return self.pick(((LONG,), (COLUMNS,), (ROWS,), (ROWS, COLUMNS), (2,), (ROWS, ROWS)))

    def new_array(self) -> None:
        shape = self.some_shape() if self.chance(50) else self.scope.arrays[self.some_array()]
        name = self.new("a")
        self.bind(name, self.array(shape), shape)

    def bind(self, name: str, text: str, shape: Shape) -> None:
        """`name = text`, which may be a view of an array that has a name."""
        self.emit(f"{name} = {text}")
        self.scope.arrays[name] = shape
        base = self.base(text)
        self.scope.read_only.discard(name)
        if base is None:
            self.scope.fresh.add(name)
            return
        self.scope.fresh -= {name, base}
        if base in self.scope.read_only:
            self.scope.read_only.add(name)

    def base(self, text: str) -> str | None:
        """The array that `text` is a view of."""
        found = re.match(r"\w+", text)
        if found is None or found[0] not in self.scope.arrays:
            return None
        key, shape = text[len(found[0]):], self.scope.arrays[found[0]]
        basic = re.fullmatch(r"(\[[-\w %():,]*\])+", key) and "q" not in key
        return found[0] if not key or key in VIEWS[len(shape)] or basic else None

    def new_view(self) -> None:
        name = self.some_array()
        shape = self.scope.arrays[name]
        if len(shape) == 2 and self.chance(50):
            key, wanted = self.pick(((f"[{self.index(shape[0])}]", shape[1:]), (f"[:, {self.index(shape[1])}]", shape[:1])))
        else:
            key = self.pick(("", *VIEWS[len(shape)]))
            wanted = shape_of(shape, key)
        if wanted is not None:
            self.bind(self.new("v"), f"{name}{key}", wanted)

    def rebind(self) -> None:
        """Give an array's name to another array of the same shape."""
        names = [n for n in self.scope.arrays if n in self.scope.fresh or self.depth == 1 or self.chance(20)]
        names = [n for n in names if n not in ("x", "A", "W")]
        if not names:
            return self.new_array()
        name = self.pick(names)
        shape = self.scope.arrays[name]
        text = self.array(shape)
        if self.depth > 1 and self.base(text) is not None and self.chance(85):
            text = f"{text} * {self.literal()}"
        if self.in_loop:
            text = f"np.tanh({text})" if self.base(text) is None and self.chance(50) else text
        self.bind(name, text, shape)

    def writable(self) -> str | None:
        names = [n for n in self.scope.arrays if n not in self.scope.read_only]
        return self.pick(names) if names else None

    def write(self) -> None:
        name = self.writable()
        if name is None:
            return self.new_array()
        if self.kernel:
            kinds = [(9, self.write_element), (4, self.write_part), (1, self.write_whole), (1, self.write_fancy),
                     (2, self.write_call), (4, self.write_running)]
        else:
            kinds = [(6, self.write_element), (4, self.write_part), (2, self.write_whole), (2, self.write_mask),
                     (3, self.write_fancy), (3, self.write_call), (1, self.write_running)]
        kind = self.weighted(kinds)
        kind(name, self.scope.arrays[name])

    def sign(self) -> str:
        return self.weighted([(5, "="), (3, "+="), (2, "*="), (1, "-="), (1, "/=")])

    def value(self, sign: str, text: str) -> str:
        if sign == "/=":
            return f"(1.5 + np.tanh({text}))"
        return f"np.cos({text})" if sign == "*=" and self.in_loop else self.bounded(text) if sign != "*=" else text

    def write_element(self, name: str, shape: Shape) -> None:
        sign = self.sign()
        at = ", ".join(self.index(size) for size in shape)
        text = self.neighbours(name, shape) if self.kernel and self.chance(60) else self.number()
        self.emit(f"{name}[{at}] {sign} {self.value(sign, text)}")

    def neighbours(self, name: str, shape: Shape) -> str:
        """Elements of the array that is written, and of others."""
        elements = [f"{name}[{', '.join(self.index(size) for size in shape)}]" for _ in range(2)] + [self.atom()]
        return self.pick(("{0} * {2}", "0.5 * ({0} + {1})", "{0} * {1}", "np.sin({0} * {1}) + {2}", "{0} - {1} * {2}",
                          "{0} / (1.5 + np.tanh({1}))", "0.3 * {0} * {0} + {2}")).format(*elements)

    def fitting(self, shape: Shape) -> str:
        """A number or an array that broadcasts to this shape."""
        if not shape or self.chance(30):
            return self.number(1)
        if len(shape) == 2 and self.chance(25):
            return self.array(shape[1:], 0)
        return self.array(shape)

    def write_part(self, name: str, shape: Shape) -> None:
        key = self.pick([k for k in VIEWS[len(shape)] if k.endswith("]")] + ["[:]"] * 2)
        part = shape_of(shape, key) if key != "[:]" else shape
        if part is None:
            return self.write_whole(name, shape)
        sign = self.sign()
        text = self.value(sign, self.fitting(part))
        if sign == "=" and len(part) == 1:          # NumPy itself goes wrong in x[::2] = x[:4]: it copies as it goes
            text = f"({text}) * 1.0"
        self.emit(f"{name}{key} {sign} {text}")

    def write_whole(self, name: str, shape: Shape) -> None:
        sign = self.pick(("+=", "*=", "-="))
        self.emit(f"{name} {sign} {self.value(sign, self.fitting(shape))}")

    def write_mask(self, name: str, shape: Shape) -> None:
        other = self.pick([n for n, s in self.scope.arrays.items() if s == shape])
        sign = self.sign()
        mask = self.pick((f"{other} > {self.pick(('0.1', '-0.3', '0.45'))}", f"{other} < 0.2", f"~({other} > 0.3)",
                          f"({other} > -0.4) & ({name} < 0.6)"))
        form = self.weighted([(4, "{0}[{1}] {2} {3}"), (1, "{0}[{1}] {2} {4}[{1}]")])
        self.emit(form.format(name, mask, sign, self.value(sign, self.number(1)), self.part(shape)))

    def write_fancy(self, name: str, shape: Shape) -> None:
        """Integer arrays as indices, with repeats."""
        keys = [("[0, 2, 0]", 3), ("[1, 1]", 2), ("np.array([0, -1, 0, 1])", 4)] + [("q", 3), ("q", 3)] * (
            "q" in self.scope.read_only and shape[0] >= ROWS)
        key, count = self.pick([(k, c) for k, c in keys if shape[0] >= 3 or "2" not in k])
        sign = self.sign()
        wanted = (count, *shape[1:])
        if len(shape) == 2 and self.chance(40):
            if shape[1] < 3:
                return self.write_element(name, shape)
            key, wanted = f"{self.index(shape[0])}, {key}", (count,)
        if self.chance(30) and sign in ("=", "+="):
            function = self.pick(("np.add.at({0}, ({1},), {2})", "np.add.at({0}, ({1}), {2})", "np.subtract.at({0}, ({1}), {2})"))
            return self.emit(function.format(name, key, self.fitting(wanted)))
        self.emit(f"{name}[{key}] {sign} {self.value(sign, self.fitting(wanted))}")

    def write_call(self, name: str, shape: Shape) -> None:
        options = [f"{name}.fill({self.number(1)})", f"np.copyto({name}, {self.fitting(shape)})",
                   f"{name}.flat[{self.index(min(shape))}] = {self.number(1)}"]
        if len(shape) == 1:
            options += [f"{name}[:] = {name}[::-1]", f"{name}[1:] = {name}[:-1]", f"{name}[:-1] += {name}[1:]",
                        f"np.copyto({name}[1:], {self.array((shape[0],), 0)}[:-1])",
                        f"np.put({name}, [0, -1], [{self.number(1)}, {self.number(1)}])",
                        f"np.multiply({self.array(shape, 0)}, {self.operand(1)}, out={name})",
                        f"np.sin({self.array(shape, 0)}, out={name})", f"{name}.sort()",
                        f"{name}[0], {name}[-1] = {name}[-1], {name}[0]"]
        else:
            options += [f"{name}.reshape(-1)[{self.integer(0, 5)}] = {self.number(1)}",
                        f"{name}[0], {name}[1] = {self.number(1)}, {name}[0] * 0.5",
                        f"{name}.T[{self.index(shape[1])}] = {self.fitting((shape[0],))}",
                        f"{name}[1:][0, ::2] += {self.number(1)}", f"{name}[:, 1:] = {name}[:, :-1]",
                        f"{name}[{self.index(shape[0])}][{self.index(shape[1])}] *= {self.literal()}",
                        f"np.add({name}, {self.fitting(shape)}, out={name})"]
            if shape[0] == shape[1]:
                options.append(f"np.fill_diagonal({name}, {self.number(1)})")
        self.emit(self.pick(options))

    def write_running(self, name: str, shape: Shape) -> None:
        """Slices whose bounds a loop counts."""
        bounded = [k for k, b in self.scope.ints.items() if b is not None and 0 <= b[0] and b[1] < shape[0]]
        if not bounded:
            return self.write_element(name, shape)
        k = self.pick(bounded)
        sign = self.pick(("*=", "+=", "="))
        key = self.pick((f"{name}[{k}:]", f"{name}[:{k}]", f"{name}[{k}:{k} + 1]"))
        self.emit(f"{key} {sign} {self.value(sign, self.number(1))}")

    # --- containers ----------------------------------------------------------------------------------------------

    def container(self) -> None:
        scope = self.scope
        options = [f"{p} = ({p}[1], {self.bounded(self.number(1))})" for p in scope.pairs]
        options += [f"{p} = ({self.bounded(self.number(1))}, {p}[0])" for p in scope.pairs]
        options += [f"{d}['{k}'] {self.pick(('=', '+='))} {self.bounded(self.number(1))}" for d in scope.dicts for k in "ab"]
        options += [f"{d} = dict({d}, a={self.bounded(self.number(1))})" for d in scope.dicts[:1]]
        for name, length in scope.lists.items():
            if length:
                options += [f"{name}[{self.pick(('0', '-1'))}] = {self.bounded(self.number(1))}",
                            f"{name}[0], {name}[1] = {name}[1], {name}[0]"]
                options += [f"{name}[{k} % {length}] = {self.bounded(self.number(1))}" for k in [*scope.ints][:1]]
            elif length is None:
                options += [f"{name}.append({self.bounded(self.number(1))})"] * 2
        for p in scope.pairs if scope.floats else []:
            s = self.pick(scope.floats)
            options.append(f"{s}, {p} = {p}[0], ({s}, {p}[1])")
        if self.depth == 1:
            options += ["list", "pair", "dict"] * 2
        if not options:
            return self.assign()
        text = self.pick(options)
        if text == "list":
            name, grown = self.new("l"), self.chance(50)
            self.emit(f"{name} = [{'' if grown else f'{self.number(1)}, {self.number(1)}'}]")
            scope.lists[name] = None if grown else 2
        elif text == "pair":
            name = self.new("p")
            self.emit(f"{name} = ({self.number(1)}, {self.number(1)})")
            scope.pairs.append(name)
        elif text == "dict":
            name = self.new("d")
            self.emit(f"{name} = {{'a': {self.number(1)}, 'b': {self.number(1)}}}")
            scope.dicts.append(name)
        else:
            self.emit(text)

    # --- branches ------------------------------------------------------------------------------------------------

    def branch(self) -> None:
        self.emit(f"if {self.condition()}:")
        self.block()
        if self.chance(25):
            self.emit(f"elif {self.condition()}:")
            self.block(2)
        if self.chance(50):
            self.emit("else:")
            self.block(2)

    def leave(self) -> None:
        self.emit(f"if {self.condition()}:")
        self.depth += 1
        if self.chance(30):
            self.assign()
        self.emit(self.pick(("break", "continue")))
        self.depth -= 1

    def result(self) -> str:
        return self.number(1)

    def early_return(self) -> None:
        self.emit(f"if {self.condition()}:")
        self.depth += 1
        self.emit("return " + ", ".join((self.pick((self.result(), self.literal())), *self.scope.returns)))
        self.depth -= 1

    # --- loops ---------------------------------------------------------------------------------------------------

    def loop(self) -> None:
        if self.loops >= 5:
            return self.assign()
        self.loops += 1
        outer, was = self.scope, self.in_loop
        self.scope = outer.inner()
        self.weighted([(5, self.counted_header), (4, self.array_header), (2, self.while_header)])()
        self.in_loop = True
        self.block(4)
        self.scope, self.in_loop = outer, was
        if self.chance(12):
            self.emit("else:")
            self.block(1)

    def counted_header(self) -> None:
        k, n = self.new("i"), self.trips
        options: list[tuple[str, tuple[int, int]]] = [
            (f"range({n})", (0, 6)), ("range(3)", (0, 2)), ("range(1, 4)", (1, 3)), (f"range({n}, -1, -1)", (0, 7)),
            (f"range(0, {n}, 2)", (0, 6)), ("range(8)", (0, 7)), (f"range(1, {n})", (1, 6)), (f"range({n} - 1, 0, -2)", (1, 6)),
            ("range(2, -1, -1)", (0, 2)), (f"reversed(range({n}))", (0, 6)), (f"range(-2, {n}, 3)", (-2, 6)),
            ("range(4)[::-1]", (0, 3)), ("range(0)", (0, 0))]
        for name, bounds in self.scope.ints.items():
            if bounds is not None and 0 <= bounds[0] and bounds[1] < LONG:
                options += [(f"range({name})", (0, max(bounds[1] - 1, 0))), (f"range({name} + 1)", (0, bounds[1])),
                            (f"range({name}, 4)", (bounds[0], max(3, bounds[0]))),
                            (f"range({name}, -1, -1)", (0, bounds[1])),
                            (f"range({name} + 1, 8)", (min(bounds[0] + 1, 7), 7))]
        if "q" in self.scope.read_only:
            options += [("q", (-1, 2)), ("range(q[0], q[1])", (-1, 1)), ("range(q[0] + 1)", (0, 2))]
        name = self.some_array()
        options.append((f"range(len({name}))", (0, self.scope.arrays[name][0] - 1)))
        text, bounds = self.pick(options)
        self.emit(f"for {k} in {text}:")
        self.scope.ints[k] = bounds

    def array_header(self) -> None:
        """Over the elements or rows of arrays."""
        name = self.some_array()
        shape = self.scope.arrays[name]
        text, item = name, self.new("e")
        if len(shape) == 1 and self.chance(40):
            text = self.pick((f"{name}[::-1]", f"{name}[1:]", f"{name}[::2]", f"reversed({name})", f"{name} * 0.5",
                              f"[{self.number(1)}, {self.number(1)}]", f"({self.literal()}, {self.number(1)}, 0.5)",
                              f"[v * 0.5 for v in {name}]"))
        form = self.weighted([(4, "one"), (2, "enumerate"), (2, "zip"), (1, "both")])
        other = self.some_array()
        shapes = self.scope.arrays
        k, partner = self.new("i"), self.new("e")
        if form == "one":
            self.emit(f"for {item} in {text}:")
        elif form == "enumerate":
            self.emit(f"for {k}, {item} in enumerate({text}{self.pick(('', ', 1'))}):")
        elif form == "zip":
            self.emit(f"for {item}, {partner} in zip({text}, {other}):")
        else:
            self.emit(f"for {k}, ({item}, {partner}) in enumerate(zip({text}, {other})):")
        if form in ("enumerate", "both"):
            self.scope.ints[k] = (0, shape[0])
        pairs = [(item, shape[1:] if text == name else (), name)]
        pairs += [(partner, shapes[other][1:], other)] if form in ("zip", "both") else []
        for made, left, source in pairs:
            if left:
                self.scope.arrays[made] = left
                if source in self.scope.read_only:
                    self.scope.read_only.add(made)
            else:
                self.scope.fixed.append(made)

    def while_header(self) -> None:
        k = self.new("k")
        self.emit(f"{k} = 0")
        limit = self.pick((self.trips, "3", f"{self.trips} - 1", "2", f"{self.trips} // 2"))
        more = f" and {self.comparison()}" if self.chance(40) else ""
        self.emit(f"while {k} < {limit}{more}:")
        self.depth += 1
        self.emit(f"{k} += 1")
        self.depth -= 1
        self.scope.ints[k] = (0, 7)

    # --- the rest ------------------------------------------------------------------------------------------------

    def odd_statement(self) -> None:
        options = [self.flag, self.swap, self.maximum_so_far, self.call, self.guarded]
        self.pick(options)()

    def flag(self) -> None:
        if self.scope.bools and (self.depth > 1 or self.chance(50)):
            self.emit(f"{self.pick(self.scope.bools)} = {self.condition()}")
        elif self.depth == 1:
            name = self.new("b")
            self.emit(f"{name} = {self.condition()}")
            self.scope.bools.append(name)
        else:
            self.assign()

    def swap(self) -> None:
        """Two arrays change names, or two numbers."""
        pairs = [(a, b) for a, s in self.scope.arrays.items() for b, t in self.scope.arrays.items()
                 if a < b and s == t and not {a, b} & (self.scope.read_only | {"x", "A"})
                 and (self.depth == 1 or self.chance(30))]
        if pairs and self.chance(60):
            a, b = self.pick(pairs)
            self.emit(f"{a}, {b} = {b}, {a}")
        elif len(self.scope.floats) > 1:
            a, b = self.scope.floats[-1], self.scope.floats[0]
            self.emit(f"{a}, {b} = {b}, {self.bounded(self.number(1))}")
        else:
            self.assign()

    def maximum_so_far(self) -> None:
        """A branch that replaces a number by a larger one."""
        if not self.scope.floats:
            return self.assign()
        name, atom = self.pick(self.scope.floats), self.atom()
        self.emit(f"if {bracketed(atom)} > {name}:")
        self.depth += 1
        self.emit(f"{name} = {atom}")
        self.depth -= 1

    def call(self) -> None:
        """A helper that writes into its argument, called for its effect."""
        options = []
        for helper, shape in self.scope.helpers.items():
            views = self.parts(shape, writable=True) if shape is not None else []
            options += [f"{helper}({self.pick(views)}, {self.atom()})"] if views else []
            options += [f"{helper}({self.atom()})"] * 2 if shape is None else []
        if not options:
            return self.write()
        self.emit(self.pick(options))

    def guarded(self) -> None:
        """`try` around what a container decides while transpiling, or an assertion that holds."""
        if self.scope.dicts and self.scope.floats:
            d, s = self.pick(self.scope.dicts), self.pick(self.scope.floats)
            self.emit("try:")
            self.emit(f"    {s} = {d}['{self.pick('acb')}'] * 0.5")
            self.emit("except KeyError:")
            self.emit(f"    {s} = {self.number(1)}")
        else:
            self.emit(f"assert {self.atom()} < 100.0")
