"""The loop kernels as one table: for people on a terminal, as plain lines in a pipe; and as rows for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from measures import Row
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loops.compare import Times, summary

GROUP = "loops"
NAIVE, HAND = 100.0, 1.3        # bars: times faster than JAX's naive form, times as long as what is written by hand
OVERALL = {"geometric mean of JAX's best / ours": ("≥ 2.5", lambda x: x >= 2.5),
           "least of JAX's best / ours": ("≥ 1", lambda x: x >= 1),
           "median of gradient / primal": ("≤ 4", lambda x: x <= 4)}


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"


def _times(x: float | None, good: bool) -> Text:
    return Text("" if x is None else f"{x:.0f}" if x >= 100 else f"{x:.2f}", "" if good else "red")


HEADS = ("", "primal ms", "gradient ms", "grad/primal", "JAX's best ms", "JAX/ours", "", "naive/ours", "ours/hand")


def _line(t: Times) -> list[str | Text]:
    naive, hand = t.faster_than_naive, t.of_hand
    return [t.kernel, _milliseconds(t.primal), _milliseconds(t.gradient), _times(t.of_primal, t.of_primal <= 4),
            _milliseconds(t.jax[t.best]), _times(t.faster_than_jax, t.faster_than_jax >= 1), t.best,
            _times(naive, naive is None or naive >= NAIVE), _times(hand, hand is None or hand <= HAND)]


def show(console: Console, found: Sequence[Times]) -> None:
    """What misses its bar is red on a terminal, and has a ! in a pipe."""
    lines = [_line(t) for t in found]
    if console.is_terminal:
        table = Table(title="gradients of loop kernels, beside JAX's best and naive forms and Numba by hand")
        for k, head in enumerate(HEADS):
            table.add_column(head, justify="left" if k in (0, 6) else "right")
        for line in lines:
            table.add_row(*line)
        console.print(table)
    else:
        plain = [list(HEADS)] + [[x if isinstance(x, str) else x.plain + ("!" if x.style == "red" else "")
                                  for x in line] for line in lines]
        widths = [max(len(line[k]) for line in plain) for k in range(len(HEADS))]
        for line in plain:
            console.print("  ".join(x.ljust(w) if k in (0, 6) else x.rjust(w)
                                    for k, (x, w) in enumerate(zip(line, widths))).rstrip())
    for what, value in summary(found).items():
        bar, holds = OVERALL[what]
        console.print(Text(f"{what}: {value:.2f}, bar {bar}, {'reached' if holds(value) else 'MISSED'}",
                           "" if holds(value) else "red"))
    console.print()


def rows(found: Iterable[Times]) -> list[Row]:
    result = []
    found = list(found)
    for t in found:
        result.append(Row(GROUP, f"{t.kernel}, JAX's best ({t.best})", t.gradient, t.jax[t.best], "ms", "≤ 1x",
                          t.faster_than_jax >= 1, ", ".join(f"{k} {1e3 * v:.3g} ms" for k, v in t.jax.items())))
        if t.naive is not None and t.naive_ours is not None:
            result.append(Row(GROUP, f"{t.kernel}, JAX's naive form", t.naive_ours, t.naive, "ms", "≤ 0.01x",
                              t.naive >= NAIVE * t.naive_ours))
        if t.hand is not None:
            result.append(Row(GROUP, f"{t.kernel}, by hand", t.gradient, t.hand, "ms", f"≤ {HAND}x",
                              t.gradient <= HAND * t.hand))
        result.append(Row(GROUP, f"{t.kernel}, the function itself", t.gradient, t.primal, "ms"))
    for what, value in summary(found).items():
        bar, holds = OVERALL[what]
        result.append(Row(GROUP, what, value, None, "", bar, holds(value)))
    return result
