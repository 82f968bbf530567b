"""Funcs for the tests of emission: built by hand or drawn at random, emitted, run and compared with the evaluator."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.errors import Location
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At
from gradsmith.transpiler.ir.nodes import Func, Module, Value
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify

ops.load_table()

N, M = symbol("n"), symbol("m")
VECTOR, MATRIX = Type("float64", (N,)), Type("float64", (N, M))


def at(line: int) -> Location:
    return Location("/somewhere/model.py", line, 4, line, 20)


def get(x: Value, *indices: Value) -> Value:
    return ops.load(x, *indices, index=(At(),) * len(indices))


def put(x: Value, v: Any, *indices: Value) -> Value:
    return ops.store(x, v, *indices, index=(At(),) * len(indices))


def add_to(x: Value, v: Any, *indices: Value) -> Value:
    return ops.add_at(x, v, *indices, index=(At(),) * len(indices))


def func(name: str, params: dict[str, Type], body: Any) -> Func:
    made = build_func(name, list(params.items()), body)
    verify(made)
    return made


def source(f: Func | Module, **choices: Any) -> str:
    """The text of the functions alone, plain."""
    return emit(f, **{"decorator": False, "comments": False, **choices})


def body_of(f: Func, **choices: Any) -> str:
    """The text after the imports."""
    text = source(f, **choices)
    return text[text.index("def "):]


def load(text: str, name: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(text, "<emitted>", "exec"), namespace)
    return namespace[name]


def run(f: Func | Module, *args: Any, compiled: bool = False, **choices: Any) -> tuple[Any, ...]:
    """The results of the emitted text, effects included; arguments without effects must not change."""
    main = f.main if isinstance(f, Module) else f
    text = emit(f, **{"standalone": True, "decorator": "@njit(error_model='numpy')" if compiled else False,
                      "imports": ["from numba import njit, prange"], **choices})
    kept = args
    args = tuple(np.array(a) if isinstance(a, np.ndarray) else a for a in args)
    with np.errstate(all="ignore"):
        found = load(text, main.name)(*args)
    for param, before, after in zip(main.params, kept, args):
        if param not in main.effects:
            np.testing.assert_array_equal(before, after)
    found = () if not main.returned else found if isinstance(found, tuple) else (found,)
    for k, one in enumerate(found):
        if isinstance(one, np.ndarray):
            assert not any(np.shares_memory(one, other) for other in (*args, *found[:k]) if isinstance(
                other, np.ndarray)), text
    return (*found, *(args[main.params.index(param)] for param in main.effects))


def agrees(f: Func | Module, *args: Any, compiled: bool = False, exact: bool = True, **choices: Any) -> None:
    """The emitted text gives what the evaluator gives: to the last bit, dtypes of compiled text included."""
    expected = evaluate(f, *args)
    actual = run(f, *args, compiled=compiled, **choices)
    main = f.main if isinstance(f, Module) else f
    assert len(expected) == len(actual)
    for want, have, value in zip(expected, actual, main.results):
        assert np.shape(want) == np.shape(have)
        if isinstance(have, np.ndarray | np.generic):
            assert np.asarray(have).dtype == value.type.numpy
        compare = np.testing.assert_array_equal if exact else np.testing.assert_allclose
        compare(np.asarray(want), np.asarray(have), err_msg=source(f))


def shows(text, f, **choices):
    assert textwrap.dedent(text).strip() == body_of(f, **choices).strip()
