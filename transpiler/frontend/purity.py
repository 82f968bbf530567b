"""What may be called while transpiling: code that gradsmith does not interpret, and that is known to do nothing but
compute.

A call whose arguments are all known is run when the function is transpiled, even in a branch that no run takes.  So a
file would be deleted, or a line logged, that Python would not have: whatever is not known to be pure is refused.
"""

from __future__ import annotations

import sys
import sysconfig
import types
from typing import Any

import numpy as np

from ..ops.base import RuleError

# Modules of the standard library all of whose functions, classes and methods compute.  A leading underscore, of the
# parts that are written in C, is left out.
PURE_MODULES = frozenset({
    "abc", "array", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys", "contextlib",
    "copy", "dataclasses", "decimal", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq",
    "inspect", "itertools", "json", "keyword", "math", "numbers", "operator", "re", "sre", "statistics", "string",
    "struct", "textwrap", "types", "typing", "unicodedata", "zlib",
})
PURE_FUNCTIONS = frozenset({
    *(f"{module}.{name}" for module in ("posixpath", "ntpath")
      for name in ("join", "split", "splitext", "basename", "dirname", "normpath")),
    "posix.fspath", "nt.fspath", "sys.getsizeof", "sys.getrecursionlimit", "sys.intern",
})
PURE_BUILTINS = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "classmethod", "complex",
    "dict", "dir", "divmod", "enumerate", "filter", "float", "format", "frozenset", "getattr", "hasattr", "hex", "int",
    "isinstance", "issubclass", "iter", "len", "list", "map", "max", "memoryview", "min", "next", "object", "oct",
    "ord", "pow", "property", "range", "repr", "reversed", "round", "set", "slice", "sorted", "staticmethod", "str",
    "sum", "super", "tuple", "type", "vars", "zip",
})
# Of NumPy and SciPy, whose other functions compute: what reads, writes, prints, sets options or draws numbers.
NUMPYS_EFFECTS = frozenset({
    "DataSource", "NpzFile", "add_docstring", "add_newdoc", "basinhopping", "differential_evolution", "disp",
    "dual_annealing", "dump", "fromfile", "fromregex", "genfromtxt", "info", "kmeans", "kmeans2", "lookfor", "memmap",
    "open_memmap", "printoptions", "rand", "random", "random_array", "rvs", "setbufsize", "seterr", "seterrcall",
    "source", "test", "tofile", "who",
})
NUMPYS_PREFIXES = ("load", "read", "save", "set_", "show", "write")
NUMPYS_OTHERS = ("numpy.ctypeslib", "numpy.distutils", "numpy.f2py", "scipy.datasets", "scipy.io", "scipy.misc",
                 "scipy.stats.qmc", "scipy.stats._qmc")

CALLING_BACK = ("contextlib", "functools")           # their functions, written in Python, call the user's own

# What these give differs from run to run.
UNSTEADY_MODULES = frozenset({"random", "time", "datetime", "secrets", "uuid"})
UNSTEADY_BUILTINS = frozenset({"globals", "input", "locals"})
STANDARD = sysconfig.get_path("stdlib")


def refuse_effects(callee: Any) -> None:
    """RuleError for a function, class or callable object of a library unless it is known to be pure."""
    module, name = module_of(callee), getattr(callee, "__name__", type(callee).__name__)
    top = module.partition(".")[0]
    if top in UNSTEADY_MODULES or module.startswith("numpy.random") or (
            module == "builtins" and name in UNSTEADY_BUILTINS and not _is_method(callee)):
        raise RuleError(f"{module}.{name} gives something else in every run", code="E202", kind=NotImplementedError,
                        help="pass its result in as an argument, or use gradsmith.random")
    if not _is_pure(callee, module, name):
        shown, of = getattr(callee, "__qualname__", name), getattr(callee, "__module__", None) or module
        raise RuleError(f"`{shown if of in ('', 'builtins') else f'{of}.{shown}'}` may have a side effect, "
                        "which is not supported", code="E126", kind=NotImplementedError,
                        help="do it outside of the function, before the call or with what it returns "
                             "(`print` is supported)")


def module_of(callee: Any) -> str:
    """The module that a callable belongs to: a method's is that of its object's class."""
    if isinstance(callee, np.ufunc):
        return _module_of_ufunc(callee)
    if isinstance(callee, types.FunctionType):      # a wrapper claims to be what it wraps
        return str(callee.__globals__.get("__name__", ""))
    owner = getattr(callee, "__self__", None)
    own = getattr(callee, "__module__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        own = own or getattr(owner if isinstance(owner, type) else type(owner), "__module__", None)
    else:
        own = own or getattr(getattr(callee, "__objclass__", None), "__module__", None)
    name = own if isinstance(own, str) else ""
    return name.removeprefix("_") if name.partition(".")[0] in sys.stdlib_module_names else name


def _module_of_ufunc(ufunc: np.ufunc) -> str:
    """A ufunc that somebody made of a Python function belongs to nobody."""
    if getattr(np, ufunc.__name__, None) is ufunc:
        return "numpy"
    special = sys.modules.get("scipy.special")
    return "scipy.special" if getattr(special, ufunc.__name__, None) is ufunc else ""


def _is_pure(callee: Any, module: str, name: str) -> bool:
    top = module.partition(".")[0]
    if top in ("numpy", "scipy"):
        return not (name in NUMPYS_EFFECTS or name.startswith(NUMPYS_PREFIXES) or module.startswith(NUMPYS_OTHERS))
    if module == "builtins":
        return name in PURE_BUILTINS or _is_method(callee) or isinstance(callee, type)
    return top in PURE_MODULES or f"{module}.{name}" in PURE_FUNCTIONS


def _is_method(callee: Any) -> bool:
    """Of a number, a text or a container, or of their classes; not of a function, which it may call."""
    owner = getattr(callee, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        owner = getattr(callee, "__objclass__", None)
    return owner is not None and (isinstance(owner, type) or not callable(owner))


def is_foreign(callee: Any) -> bool:
    """Whether nothing is known about the module that it comes from."""
    top = module_of(callee).partition(".")[0]
    return top not in ("numpy", "scipy") and top not in sys.stdlib_module_names


def is_standard_class(cls: type) -> bool:
    """Whether a class is written in Python in the standard library."""
    return is_standard(getattr(sys.modules.get(cls.__module__), "__file__", None) or "")


def is_standard(file: str) -> bool:
    """Whether what is written in a file is of the standard library, whatever its module is called."""
    return file.startswith("<frozen ") or (file.startswith(STANDARD) and "-packages" not in file)


def may_run(function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Python may run a pure function of the standard library itself, rather than have it interpreted."""
    return module_of(function) not in CALLING_BACK and _is_plain([*args, *kwargs.values()])


def is_constant(value: Any) -> bool:
    """A number, a text, None or a tuple of such."""
    if type(value) is tuple:
        return all(map(is_constant, value))
    return isinstance(value, (bool, int, float, complex, str, type(None)))


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if type(value) in (list, tuple) else is_constant(value)
