"""The main job, from a NumPy function to a trained model:

    gradsmith build model.py:loss  ─►  loss_value_and_grad.py  ─►  import, train on iris
    gradsmith check model.py:loss

`make run` runs it; `--steps` and `--quiet` make it short for tests.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from types import ModuleType

import model
import numpy as np
from rich.console import Console
from rich.syntax import Syntax

HERE = Path(__file__).resolve().parent
TRANSFORM = "value_and_grad(argnums=(0, 1))"
SIGNATURE = "f64[m,k], f64[k], f64[n,m], i64[n]"
STEP = 0.5


def read_iris() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Measurements, standardised: f64[150,4]; species as numbers: i64[150]; their names."""
    with open(HERE / "data" / "iris.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["species"] for row in rows})
    columns = [c for c in rows[0] if c != "species"]
    x = np.array([[float(row[c]) for c in columns] for row in rows])
    y = np.array([names.index(row["species"]) for row in rows])
    return (x - x.mean(axis=0)) / x.std(axis=0), y, names


def gradsmith(*words: str) -> str:
    """Run the command beside the model, so that what it writes names `model.py` and no machine's folders."""
    done = subprocess.run([sys.executable, "-m", "gradsmith.cli", *words], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def imported(path: Path) -> ModuleType:
    """A generated module is an ordinary file of Python: put its folder on the path and import it."""
    sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def worst_difference(value_and_grad, w, b, x, y) -> float:
    """The gradient against central differences of the NumPy function itself: the largest error of an element."""
    step = 1e-6
    _, gradients = value_and_grad(w, b, x, y)
    worst = 0.0
    for which, gradient in enumerate(gradients):
        for at in np.ndindex(gradient.shape):
            values = []
            for sign in (1, -1):
                moved = [w.copy(), b.copy()]
                moved[which][at] += sign * step
                values.append(model.loss(*moved, x, y))
            worst = max(worst, abs((values[0] - values[1]) / (2 * step) - gradient[at]))
    return worst


def train(value_and_grad, x, y, classes: int, steps: int) -> tuple[np.ndarray, np.ndarray, list[float], float]:
    """Gradient descent; weights, biases, the loss at each step and the seconds that a step took."""
    w, b = np.zeros((x.shape[1], classes)), np.zeros(classes)
    losses = []
    start = perf_counter()
    for _ in range(steps):
        value, (d_w, d_b) = value_and_grad(w, b, x, y)
        w -= STEP * d_w
        b -= STEP * d_b
        losses.append(value)
    return w, b, losses, (perf_counter() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a gradient, show it, check it and train with it.")
    parser.add_argument("--steps", type=int, default=2000, help="of gradient descent")
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "examples", help="folder to write to")
    parser.add_argument("--quiet", action="store_true", help="do not show the generated file")
    options = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)

    path = options.out.resolve() / "loss_value_and_grad.py"
    command = ["build", "model.py:loss", "--transform", TRANSFORM, "--sig", SIGNATURE]
    console.print(f'$ gradsmith build model.py:loss --transform "{TRANSFORM}" --sig "{SIGNATURE}" -o {path.name}',
                  style="bold", markup=False)
    start = perf_counter()
    gradsmith(*command, "-o", str(path))
    console.print(f"written in {perf_counter() - start:.1f} s\n")
    if not options.quiet:
        text = path.read_text()
        console.print(Syntax(text, "python", theme="ansi_dark") if console.is_terminal else text, markup=False)

    console.print(f'$ gradsmith check model.py:loss --argnums "0, 1" --sig "{SIGNATURE}"', style="bold", markup=False)
    console.print(gradsmith("check", "model.py:loss", "--argnums", "0, 1", "--sig", SIGNATURE, "--samples", "1"))

    value_and_grad = imported(path).loss_value_and_grad
    x, y, names = read_iris()
    held = np.arange(len(y)) % 5 == 0
    start = perf_counter()
    value_and_grad(np.zeros((x.shape[1], len(names))), np.zeros(len(names)), x, y)
    console.print(f"compiled by Numba in {perf_counter() - start:.1f} s")

    generator = np.random.default_rng(1)
    worst = worst_difference(value_and_grad, generator.normal(size=(x.shape[1], len(names))),
                             generator.normal(size=len(names)), x, y)
    console.print(f"the file's gradient against central differences of model.loss: largest error {worst:.1e}")
    if not worst < 1e-8:
        sys.exit("the gradient is wrong")

    w, b, losses, seconds = train(value_and_grad, x[~held], y[~held], len(names), options.steps)
    right = model.predict(w, b, x) == y
    console.print(f"{options.steps} steps of gradient descent on {np.sum(~held)} flowers, "
                  f"{1e6 * seconds:.1f} µs a step")
    console.print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    console.print(f"accuracy {np.mean(right[~held]):.1%} in training, {np.mean(right[held]):.1%} on the "
                  f"{np.sum(held)} flowers held out")


if __name__ == "__main__":
    main()
