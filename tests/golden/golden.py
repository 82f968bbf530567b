"""Golden files: what `gradsmith build` writes for the cases, made and run.

A case is a module with one typed function of its own name; each of its `# golden:` lines asks for one file:

    # golden: value_and_grad(argnums=(0, 1))          expected/<case>.value_and_grad.py

Transforms are written as for `--transform`; "jit" is the function itself.  "float32" and "standalone" may follow.

Run as a program, it prints all texts as JSON with what is wrong with their results, in plain Python
(NUMBA_DISABLE_JIT=1) against the IR evaluator.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradsmith.cli.generate import Request, generate, traced
from gradsmith.cli.parameters import specs_for
from gradsmith.cli.transform import generated_name, parse_transform
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.signature import format_signature, parse_signature

HERE = Path(__file__).resolve().parent
SIZES = (3, 4, 2, 5, 6, 7, 8)


@dataclass(frozen=True)
class Golden:
    """One expected file and the request that makes it."""

    file: str
    request: Request


def all_goldens() -> list[Golden]:
    return [golden for path in sorted((HERE / "cases").glob("*.py")) for golden in goldens_of(path)]


def goldens_of(path: Path) -> Iterator[Golden]:
    spec = importlib.util.spec_from_file_location(f"golden_case_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, path.stem)
    for line in path.read_text().splitlines():
        if line.startswith("# golden: "):
            yield _golden(function, path, line.removeprefix("# golden: "))


def _golden(function: Any, path: Path, wanted: str) -> Golden:
    options = [word for word in ("float32", "standalone") if wanted.endswith(f" {word}")]
    for option in options:
        wanted = wanted.removesuffix(f" {option}")
    chain = () if wanted == "jit" else parse_transform(wanted)
    shown = f"{path.name}:{path.stem}"
    specs = specs_for(function, None, chain, shown)
    if "float32" in options:
        specs = parse_signature(format_signature(specs).replace("f64", "f32"))
    name = generated_name(path.stem, chain)
    suffix = name.removeprefix(path.stem).strip("_") or "jit"
    request = Request(function, shown, chain, specs, name, standalone="standalone" in options)
    return Golden(".".join([path.stem, suffix, *options, "py"]), request)


# ---------------------------------------------------------------------------------------------------------------
# running


def problem_with(golden: Golden, text: str) -> str | None:
    """How the text's results differ from the evaluator's; None where they agree."""
    found = traced(golden.request)
    sampler = _Sampler()
    args = [sampler.tree(a) for a in found.applied.arguments]
    captures = [capture.get() for _, capture in found.captures]
    flat = [*_leaves(args), *captures]
    with np.errstate(all="ignore"):
        expected = evaluate(found.func, *(_typed(v, p.type.numpy) for v, p in zip(flat, found.func.params, strict=True)))
        namespace: dict[str, Any] = {}
        exec(compile(text.replace("cache=True, ", ""), golden.file, "exec"), namespace)  # the text is our own
        result = list(_leaves(namespace[golden.request.name](*args, *captures)))
    if len(result) != len(expected):
        return f"{len(result)} results instead of {len(expected)}"
    for k, (got, want) in enumerate(zip(result, expected, strict=True)):
        want = np.asarray(want)
        tolerance = 1e-4 if want.dtype in (np.float32, np.complex64) else 1e-9
        if np.shape(got) != want.shape or not np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"result {k} is {got!r} instead of {want!r}"
    return None


class _Sampler:
    """Values for trees of Leafs; a size has the same length everywhere."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        self.sizes: dict[str, int] = {}

    def tree(self, x: Any) -> Any:
        if isinstance(x, Leaf):
            shape = tuple(d if isinstance(d, int) else self.sizes.setdefault(str(d), SIZES[len(self.sizes)])
                          for d in x.type.shape)
            return self._value(x, shape)
        if isinstance(x, dict):
            return {k: self.tree(v) for k, v in x.items()}
        return type(x)(map(self.tree, x)) if isinstance(x, (tuple, list)) else x

    def _value(self, leaf: Leaf, shape: tuple[int, ...]) -> Any:
        if leaf.type.kind in "iub":
            value = self.rng.integers(0, 2, shape)
        else:
            value = self.rng.normal(size=shape)
            value = value + 1j * self.rng.normal(size=shape) if leaf.type.kind == "c" else value
        return np.asarray(value).astype(leaf.type.numpy) if shape else leaf.type.numpy.type(value).item()


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from _leaves(part)
    elif tree is not None:
        yield tree


def _typed(value: Any, dtype: np.dtype[Any]) -> Any:
    return value if isinstance(value, np.ndarray) else dtype.type(value)


def main() -> None:
    made = {}
    for golden in all_goldens():
        text = generate(golden.request)
        made[golden.file] = (text, problem_with(golden, text))
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
