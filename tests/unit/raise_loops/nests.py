"""Random nests of loops over elements, as source: bounds, steps, places, branches, accumulation, in any order.

Every place that is read or written exists; those in branches only where the branch is taken.  The arrays are A and B
(nine elements), M (six by six) and P, whose ints are places in any of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

LENGTH, SIDE = 9, 6


@dataclass
class Index:
    """A loop's index and the least and most that it is."""

    name: str
    low: int
    high: int


@dataclass
class Writer:
    random: Random
    lines: list[str] = field(default_factory=list)
    names: int = 0

    def program(self) -> str:
        self.lines = ["def f(A, B, M, P, c):", "    s = 0.5 * c", "    r = 2.0 * c"]
        for _ in range(self.random.randint(1, 3)):
            self.loop(1, [])
        self.lines.append("    return A, B, M, s, r")
        return "\n".join(self.lines) + "\n"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --- loops -------------------------------------------------------------------------------------------------

    def loop(self, depth: int, around: list[Index]) -> None:
        rng = self.random
        self.names += 1
        index = f"i{self.names}"
        kind = rng.random()
        if kind < 0.2 and around:
            outer = rng.choice(around)
            if rng.random() < 0.5:
                text, low, high = f"range({outer.name} + 1)", 0, outer.high
            else:
                text, low, high = f"range({outer.name}, {SIDE})", outer.low, SIDE - 1
        else:
            low = rng.randint(0, 3)
            count = rng.choice([0, 1, 2, 3, 4, SIDE - low])
            high = min(low + count, SIDE) - 1
            step = rng.choice([1, 1, 1, 2, 3, -1, -1, -2])
            text = f"range({low}, {high + 1}, {step})" if step > 0 else f"range({high}, {low - 1}, {step})"
        if high < low:
            high = low
        self.put(depth, f"for {index} in {text}:")
        inside = [*around, Index(index, max(low, 0), max(high, 0))]
        for _ in range(rng.choice([1, 1, 2, 3])):
            if depth < 3 and rng.random() < 0.45:
                self.loop(depth + 1, inside)
            else:
                self.statement(depth + 1, inside)

    # --- statements --------------------------------------------------------------------------------------------

    def statement(self, depth: int, inside: list[Index], nested: bool = False) -> None:
        rng = self.random
        kind = rng.random()
        if kind < 0.4:
            self.put(depth, f"{self.element(inside)} = {self.expression(inside)}")
        elif kind < 0.65:
            operator = rng.choice(["+=", "+=", "-=", "*="])
            self.put(depth, f"{self.element(inside)} {operator} {self.expression(inside)}")
        elif kind < 0.8:
            name = rng.choice("sr")
            self.put(depth, rng.choice([
                f"{name} += {self.expression(inside)}", f"{name} = {name} - {self.expression(inside)}",
                f"{name} = {self.expression(inside)}", f"{name} = np.maximum({name}, {self.expression(inside)})",
                f"{name} = 0.5 * {name} + {self.expression(inside)}",
                f"{name} = np.minimum({self.expression(inside)}, {name})"]))
        elif kind < 0.86:
            value = self.element(inside)
            self.put(depth, f"if {value} > s:")
            self.put(depth + 1, f"s = {value}")
            if rng.random() < 0.5:
                self.put(depth + 1, f"r = {inside[-1].name} * 1.0")
        elif not nested:
            self.branch(depth, inside)
        else:
            self.put(depth, f"s += {self.expression(inside)}")

    def branch(self, depth: int, inside: list[Index]) -> None:
        rng = self.random
        index = rng.choice(inside)
        if rng.random() < 0.5:                      # places that exist only in the branch
            by = rng.randint(1, 3)
            self.put(depth, rng.choice([f"if {index.name} >= {by}:", f"if {index.name} - {by} >= 0:"]))
            place = f"A[{index.name} - {by}]"
            self.put(depth + 1, rng.choice([f"s += {place}", f"{self.element(inside)} = {place}",
                                            f"{place} += {self.expression(inside)}",
                                            f"{place} = {self.expression(inside)}",
                                            f"B[{index.name}] = np.sqrt({place} * {place})"]))
        else:
            self.put(depth, rng.choice([f"if {self.element(inside)} > {self.number()}:", f"if {index.name} != 2:",
                                        f"if {inside[0].name} <= {inside[-1].name}:"]))
            self.statement(depth + 1, inside, nested=True)
        if rng.random() < 0.4:
            self.put(depth, "else:")
            self.statement(depth + 1, inside, nested=True)

    # --- expressions -------------------------------------------------------------------------------------------

    def number(self) -> str:
        return str(self.random.choice([0.5, -0.25, 1.5, 0.1]))

    def place(self, inside: list[Index], length: int) -> str:
        """An int in range(length), affine in the indices, or one of P."""
        rng = self.random
        if rng.random() < 0.08:
            return f"P[{self.place(inside, LENGTH)}] % {length}"
        chosen = rng.sample(inside, rng.choice([1, 1, 1, min(2, len(inside))]))
        factors = [rng.choice([1, 1, 1, 1, -1, 2]) for _ in chosen]
        low = sum(min(f * i.low, f * i.high) for f, i in zip(factors, chosen))
        high = sum(max(f * i.low, f * i.high) for f, i in zip(factors, chosen))
        if high - low >= length:
            return self.place(inside, length) if len(chosen) > 1 else f"{chosen[0].name} % {length}"
        offset = rng.randint(-low, length - 1 - high)
        if rng.random() < 0.6 and -low <= 0 <= length - 1 - high:
            offset = 0
        terms = " + ".join(i.name if f == 1 else f"{f} * {i.name}" for f, i in zip(factors, chosen))
        return f"{terms} + {offset}" if offset > 0 else f"{terms} - {-offset}" if offset else terms

    def element(self, inside: list[Index]) -> str:
        if self.random.random() < 0.4:
            return f"M[{self.place(inside, SIDE)}, {self.place(inside, SIDE)}]"
        return f"{self.random.choice('AB')}[{self.place(inside, LENGTH)}]"

    def expression(self, inside: list[Index]) -> str:
        rng = self.random
        kind = rng.random()
        if kind < 0.35:
            return self.element(inside)
        if kind < 0.45:
            return self.number()
        if kind < 0.5:
            return f"np.tanh({rng.choice('sr')})"
        if kind < 0.55:
            return f"0.1 * {rng.choice(inside).name}"
        one, other = self.expression(inside), self.expression(inside)
        return rng.choice([f"({one} + {other})", f"({one} - {other})", f"np.tanh({one} * {other})",
                           f"np.sin({one})", f"0.5 * {one} * {other}"])


def nest(seed: int) -> str:
    return Writer(Random(seed)).program()
