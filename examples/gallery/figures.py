"""What the gallery's examples share: the look of their figures, and their command line.

    python examples/gallery/kalman_filter.py                 writes kalman_filter.png
    python examples/gallery/kalman_filter.py --small -o x.png
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

matplotlib.use("Agg")

# Colours that people with any colour vision tell apart (Okabe and Ito, Color Universal Design, 2008).
BLACK, ORANGE, BLUE, GREEN, RED, GRAY = "#222222", "#e69f00", "#0072b2", "#009e73", "#d55e00", "#8c8c8c"

plt.rcParams.update({
    "figure.dpi": 100, "savefig.dpi": 160, "figure.constrained_layout.use": True, "font.size": 9.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.titleweight": "bold", "legend.frameon": False, "lines.linewidth": 1.6, "axes.grid": True,
    "grid.alpha": 0.25, "grid.linewidth": 0.6,
})


def panels(*widths: float, height: float = 3.5) -> tuple[Figure, Any]:
    """A figure with axes beside each other."""
    return plt.subplots(1, len(widths), figsize=(9.0, height), gridspec_kw={"width_ratios": widths})


def save(figure: Figure, path: Path) -> None:
    """The same bytes for the same figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def main(solve: Callable[..., Any], draw: Callable[[Any], Figure], small: Mapping[str, Any]) -> None:
    """Solve at full or small size, say what came out, draw it."""
    source = Path(inspect.getfile(solve))
    parser = argparse.ArgumentParser(description=(inspect.getmodule(solve).__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="in a second or two")
    parser.add_argument("-o", "--out", type=Path, default=Path(f"{source.stem}.png"), help="the figure's file")
    options = parser.parse_args()
    found = solve(**(small if options.small else {}))
    print(found)
    save(draw(found), options.out)
