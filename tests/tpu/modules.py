"""The modules that the TPU compiler is to take: drawn from the operations' samples, the golden cases, the benchmarks'
models, loops over elements and the examples; values, gradients, second derivatives and batches, in float32.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import gradsmith as gs
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.hlo_cast import in_single_precision
from gradsmith.transpiler.emit.stablehlo import emit_stablehlo
from gradsmith.transpiler.errors import RuleError, TranspileError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.registry import OPERATIONS
from gradsmith.transpiler.ir.walk import inline
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

SIZES = (3, 4, 2, 5, 6, 7, 8)           # of what has a name, in the order in which names come up
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Drawn:
    """name: what it is.  text: the module; None where it cannot be written, for the reason."""

    name: str
    text: str | None
    reason: str = ""


def drawn() -> Iterator[Drawn]:
    """All of them, in the same order every time."""
    for group in (operations, second_orders, goldens, models, loops, examples):
        yield from group()


def _drawn(name: str, make: Callable[[], str]) -> Drawn:
    try:
        with np.errstate(over="ignore"):                # constants of float64 that float32 has no number for
            return Drawn(name, make())
    except (RuleError, TranspileError) as refused:
        return Drawn(name, None, str(refused).splitlines()[0])


def _text(fun: Any, *args: Any) -> str:
    return gs.stablehlo(fun, cast="f32", locations=False, max_trips=16)(*args)


# ---------------------------------------------------------------------------------------------------------------
# the table of operations


def _lacks(op: Any, rule: str) -> bool:
    return hasattr(getattr(op, rule), "unsupported")


def _samples() -> Iterator[tuple[str, Any, Any]]:
    ops.load_table()
    for name in sorted(OPERATIONS):
        op = OPERATIONS[name]
        if not _lacks(op, "stablehlo"):
            yield name, op, next((s for s in op.samples() if not s.corner), op.samples()[0])


def _func_of(op: Any, sample: Any) -> Func:
    from gradsmith.transpiler.ir.types import Type
    types = [Type(np.asarray(a).dtype.name, np.shape(a)) for a in sample.args]

    def body(*xs: Any) -> tuple[Any, ...]:
        found = op(*xs, **sample.params)
        return found if isinstance(found, tuple) else (found,)

    return build_func(op.name, [(f"x{k}", t) for k, t in enumerate(types)], body)


def _together(name: str, funcs: Sequence[Func]) -> str:
    """One func that does what each does; the first parameters are the same."""
    longest = max(funcs, key=lambda f: len(f.params))
    params = [(f"a{k}", p.type) for k, p in enumerate(longest.params)]
    for func in funcs:
        params += [(f"b{len(params)}", p.type) for p in func.params[len(funcs[0].params):]]

    def body(*given: Any) -> list[Any]:
        rest = list(given[len(longest.params):])
        shared, results = given[:len(funcs[0].params)], []
        for func in funcs:
            own = [rest.pop(0) for _ in func.params[len(funcs[0].params):]]
            results += inline(func, [*shared, *own])
        return results

    return emit_stablehlo(in_single_precision(build_func(name, params, body)))


def operations() -> Iterator[Drawn]:
    """Each operation with its derivatives in both modes."""
    for name, op, sample in _samples():
        plain = _func_of(op, sample)
        flags = [p.type.is_inexact for p in plain.params]
        funcs = [plain]
        if any(flags) and any(r.type.is_inexact for r in plain.results):
            funcs += [] if _lacks(op, "jvp") else [jvp(plain, flags)]
            funcs += [] if _lacks(op, "vjp") else [vjp(plain, flags)]
        yield _drawn(f"op {name}", lambda: _together(name, funcs))


def second_orders() -> Iterator[Drawn]:
    """The reverse derivative of the reverse derivative, of operations on one array of floats."""
    for name, op, sample in _samples():
        plain = _func_of(op, sample)
        if len(plain.params) != 1 or len(plain.results) != 1 or _lacks(op, "vjp"):
            continue
        if not (plain.params[0].type.is_inexact and plain.results[0].type.is_inexact):
            continue

        def make(plain: Func = plain) -> str:
            once = vjp(plain, [True])
            return emit_stablehlo(in_single_precision(vjp(once, [p.type.is_inexact for p in once.params])))

        yield _drawn(f"second order of {name}", make)


# ---------------------------------------------------------------------------------------------------------------
# programs


def _module(path: Path) -> ModuleType:
    name = f"tpu_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def goldens() -> Iterator[Drawn]:
    """What the golden cases ask for, and the Hessians of what they ask the gradients of."""
    from dataclasses import replace

    from gradsmith.cli.generate import HloOptions
    from gradsmith.cli.hlo import stablehlo_text
    from gradsmith.cli.transform import parse_transform
    golden = importlib.import_module("golden.golden")
    for one in golden.all_goldens():
        if "standalone" in one.file:
            continue
        request = one.request
        specs = _with_numbers(request.specs)
        ask = replace(request, specs=specs, hlo=HloOptions(cast="f32"), standalone=False)
        yield _drawn(f"golden {one.file.removesuffix('.py')}", lambda: stablehlo_text(ask))
        if one.file.endswith(".grad.py"):
            twice = replace(ask, chain=parse_transform("hessian"))
            yield _drawn(f"golden {one.file.removesuffix('.grad.py')}.hessian", lambda: stablehlo_text(twice))


def _with_numbers(specs: Sequence[Any]) -> tuple[Any, ...]:
    """The types of a signature with a number for each named size."""
    from gradsmith.transpiler.signature import with_dims
    sizes: dict[Any, int] = {}

    def number(dim: Any) -> int:
        return dim if isinstance(dim, int) else sizes.setdefault(dim, SIZES[len(sizes) % len(SIZES)])

    return tuple(with_dims(spec, number) for spec in specs)


def models() -> Iterator[Drawn]:
    """The benchmarks' models: values, gradients, Hessian products, and gradients of batches."""
    found = _module(ROOT / "benchmarks" / "models.py")
    for model in found.MODELS.values():
        fun, args = model.make(np), model.inputs()
        first = model.argnums if isinstance(model.argnums, int) else model.argnums[0]
        # A grid of a million numbers tells a compiler no more than one of a thousand.
        args = tuple(a[:1024] if isinstance(a, np.ndarray) and a.size > 100_000 else a for a in args)
        yield _drawn(f"model {model.name}", lambda: _text(fun, *args))
        yield _drawn(f"model {model.name}, value and gradient", lambda: _text(
            gs.value_and_grad(fun, model.argnums), *args))
        yield _drawn(f"model {model.name}, gradient of gradients", lambda: _text(
            gs.grad(lambda *a: np.sum(gs.grad(fun, first)(*a) ** 2), first), *args))
        lanes = tuple(np.stack([np.asarray(a)] * 4) for a in args)
        yield _drawn(f"model {model.name}, gradients of a batch", lambda: _text(gs.vmap(gs.grad(fun, first)), *lanes))


def loops() -> Iterator[Drawn]:
    """Loops over elements, raised where they can be, and their gradients."""
    kernels = importlib.import_module("unit.raise_loops.kernels")
    for group in (kernels.RAISED, kernels.KEPT):
        for fun, types in group.items():
            args = _sized(types)
            yield _drawn(f"loop {fun.__name__}", lambda: _text(fun, *args))
            if fun in kernels.WITHOUT_GRADIENT:
                continue
            floats = tuple(k for k, a in enumerate(args) if np.asarray(a).dtype.kind == "f")
            yield _drawn(f"loop {fun.__name__}, gradient", lambda: _text(
                gs.grad(lambda *a: _total(fun(*a)), floats), *args))


def _total(x: Any) -> Any:
    if isinstance(x, tuple):
        total = 0.0
        for part in x:
            total = total + np.sum(part)
        return total
    return np.sum(x)


def _sized(types: str) -> tuple[Any, ...]:
    from gradsmith.transpiler.signature import ScalarSpec, parse_signature
    made = []
    for k, spec in enumerate(_with_numbers(parse_signature(types))):
        if isinstance(spec, ScalarSpec):
            made.append(2 if spec.dtype == "int64" else 0.5)
        else:
            grid = np.random.default_rng(k).uniform(0.5, 1.5, spec.dims)
            made.append(grid.astype(spec.dtype))
    return tuple(made)


def examples() -> Iterator[Drawn]:
    """The examples' functions with their first and second derivatives."""
    rng = np.random.default_rng(0)
    model = _module(ROOT / "examples" / "model.py")
    args = (rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(32, 4)), rng.integers(0, 3, 32))
    yield _drawn("example logistic regression", lambda: _text(gs.value_and_grad(model.loss, (0, 1)), *args))
    yield _drawn("example logistic regression, Hessian", lambda: _text(gs.hessian(model.loss), *args))
    yield _drawn("example prediction", lambda: _text(model.predict, *args[:3]))
    spring = _module(ROOT / "examples" / "spring.py")
    motion = (np.array([2.0, 0.3]), rng.normal(size=50))
    yield _drawn("example spring", lambda: _text(spring.misfit, *motion))
    yield _drawn("example spring, gradient", lambda: _text(gs.grad(spring.misfit), *motion))
    yield _drawn("example spring, Hessian", lambda: _text(gs.hessian(spring.misfit), *motion))
