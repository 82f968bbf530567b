"""Targets of the command line: `FILE.py:FUNC` and `package.module:FUNC`, imported once and not kept.

A file is imported under its own name, with its folder in front of `sys.path`, so that it may import its neighbours;
a file inside a package is imported as the module that it is.  When the target is closed, the path and the list of
modules are what they were.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from gradsmith.transpiler.errors import Location, TranspileError, did_you_mean, error


@dataclass(frozen=True)
class Target:
    """function: what the text names.  shown: the text without the folders of this machine.  files: the files of the
    user's that were imported for it."""

    text: str
    shown: str
    name: str
    function: Callable[..., Any]
    module: ModuleType
    files: tuple[Path, ...] = ()


@contextmanager
def opened(text: str, *, base: Path | None = None) -> Iterator[Target]:
    """Import a target.  Paths are relative to `base`.  TranspileError: E504 for a text that names no function, E505
    for a file or module that cannot be imported."""
    place, name = _split(text)
    with _module(place, text, Path.cwd() if base is None else base) as (module, before, is_file):
        function = _found(module, name, place)
        files = tuple(sorted(_own_files(before, module)))
        yield Target(text, f"{Path(place).name if is_file else place}:{name}", name.rpartition(".")[2], function,
                     module, files)


def imported_value(text: str) -> Any:
    """What a name in a Python file or module holds: for inputs, given as FILE.py:NAME."""
    place, name = _split(text)
    with _module(place, text, Path.cwd()) as (module, _, _is_file):
        return _attribute(module, name, place, "nothing named", list(vars(module)))


@contextmanager
def _module(place: str, text: str, base: Path) -> Iterator[tuple[ModuleType, dict[str, ModuleType], bool]]:
    """The module, the modules that were there before, and whether it is a file."""
    is_file = place.endswith(".py") or "/" in place or "\\" in place
    modules, path, writes_no_bytecode = dict(sys.modules), list(sys.path), sys.dont_write_bytecode
    # Python takes bytecode of a source that was changed within the same second for current: none is left behind.
    sys.dont_write_bytecode = True
    try:
        yield (_import_file(base / place, text) if is_file else _import_module(place, base, text)), modules, is_file
    finally:
        sys.path[:], sys.dont_write_bytecode = path, writes_no_bytecode
        for added in set(sys.modules) - set(modules):
            if _is_users(sys.modules.get(added), added):
                del sys.modules[added]


def _split(text: str) -> tuple[str, str]:
    place, _, name = text.rpartition(":")
    if not place or not name or not all(part.isidentifier() for part in name.split(".")):
        example = f", for example {text}:loss" if text.endswith(".py") else ""
        raise error("E504", f"`{text}` is not a target", help=f"write FILE.py:FUNC or package.module:FUNC{example}")
    return place, name


def _import_file(path: Path, text: str) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else [])
        raise error("E505", f"there is no file {text.rpartition(':')[0]}", help=near)
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        names.insert(0, root.name)
        root = root.parent
    sys.path.insert(0, str(root))
    if names[-1] == "__init__":
        names.pop()
    if len(names) > 1:
        return _import_name(".".join(names), text)
    known = sys.modules.get(names[0])
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    usual = importlib.util.find_spec(names[0]) if known is None else None
    name = names[0] if usual is not None and usual.origin == str(path) else f"target_{names[0]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise error("E505", f"{text.rpartition(':')[0]} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _import_faults(path.name):
        spec.loader.exec_module(module)
    return module


def _import_module(name: str, base: Path, text: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise error("E504", f"`{name}` is neither a file nor a module",
                    help="write FILE.py:FUNC or package.module:FUNC")
    sys.path.insert(0, str(base))
    return _import_name(name, text)


def _import_name(name: str, text: str) -> ModuleType:
    parts = name.split(".")
    with _import_faults(name):
        for count in range(1, len(parts) + 1):
            part = ".".join(parts[:count])
            try:
                spec = importlib.util.find_spec(part)
            except ModuleNotFoundError:
                spec = None
            if spec is None:
                raise error("E505", f"there is no module {part}",
                            help=f"did you mean the file {name}.py?" if Path(f"{name}.py").is_file() else None)
        return importlib.import_module(name)


@contextmanager
def _import_faults(name: str) -> Iterator[None]:
    """What the user's module raises becomes an error at its line there; what it prints does not mix with our output."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except TranspileError:
        raise
    except SyntaxError as fault:
        line, column = fault.lineno or 1, max((fault.offset or 1) - 1, 0)
        end = max(fault.end_offset - 1 if fault.end_offset and fault.end_lineno == line else column + 1, column + 1)
        raise error("E105", f"{name} is not valid Python", Location(fault.filename or name, line, column, line, end),
                    label=fault.msg) from fault
    except SystemExit as fault:
        raise error("E505", f"{name} cannot be imported: it ends the program (SystemExit: {fault})", _line_of(fault),
                    help='put what is not to run on import below `if __name__ == "__main__":`') from fault
    except Exception as fault:
        raise error("E505", f"{name} cannot be imported: {type(fault).__name__}: {fault}", _line_of(fault)) from fault


def _line_of(fault: BaseException) -> Location | None:
    """The last line of the user's own that was running."""
    import gradsmith
    import gradsmith.transpiler
    modules = (gradsmith.__file__, gradsmith.transpiler.__file__, __file__, importlib.__file__)
    folders = [Path(importlib.__file__).parents[1], *(Path(file).parent for file in modules if file)]
    library = ("<frozen", *map(str, folders))
    frames = [f for f in traceback.extract_tb(fault.__traceback__)
              if not f.filename.startswith(library) and "site-packages" not in Path(f.filename).parts]
    if not frames or frames[-1].lineno is None:
        return None
    frame = frames[-1]
    line = frame.lineno or 1
    end_line = frame.end_lineno or line
    return Location(frame.filename, line, frame.colno or 0, end_line, frame.end_colno or (frame.colno or 0) + 1)


def _found(module: ModuleType, name: str, place: str) -> Callable[..., Any]:
    candidates = [n for n, v in vars(module).items() if callable(v) and not n.startswith("__")]
    value = _attribute(module, name, place, "no function", candidates)
    if not callable(value) or isinstance(value, type):
        raise error("E504", f"`{name}` in {Path(place).name} is not a function but a {type(value).__name__}")
    if _needs_instance(module, name, value):
        cls, _, method = name.rpartition(".")
        message = f"`{name}` in {Path(place).name} is a method, and there is no instance for its `self`"
        raise error("E504", message, help=(
            f"name a method of an instance that the module holds, as in `model = {cls}()` and {place}:model.{method}, "
            "or a function that calls it"))
    found: Callable[..., Any] = value
    return found


def _needs_instance(module: ModuleType, name: str, value: Any) -> bool:
    """Whether the name is of a method as the class has it, with `self` in front."""
    owner: Any = module
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    parameters = value.__code__.co_varnames[:1] if isinstance(value, FunctionType) else ()
    return isinstance(owner, type) and parameters == ("self",)


def _attribute(module: ModuleType, name: str, place: str, lacking: str, candidates: list[str]) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            defined = [n for n in candidates if getattr(vars(module)[n], "__module__", None) == module.__name__]
            help = did_you_mean(name, candidates) or (f"it defines {', '.join(defined[:8])}" if defined else None)
            raise error("E504", f"{Path(place).name} has {lacking} `{name}`", help=help)
        value = getattr(value, part)
    return value


def _is_users(module: ModuleType | None, name: str) -> bool:
    """Neither the standard library's nor installed."""
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == "gradsmith":
        return False
    return "site-packages" not in Path(file).parts and "dist-packages" not in Path(file).parts


def _own_files(before: dict[str, ModuleType], module: ModuleType) -> set[Path]:
    files = {Path(found.__file__) for name, found in sys.modules.items()
             if name not in before and _is_users(found, name) and found.__file__}
    if module.__file__:
        files.add(Path(module.__file__))
    return {file for file in files if file.suffix == ".py"}
