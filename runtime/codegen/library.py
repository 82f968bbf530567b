"""From a function's text to an overload: LLVM module, optimisation, machine code.

One module holds the function, its wrapper for CPython and the kernels that it calls, and is optimised once.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Mapping
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import config
from numba.core import callconv, cgutils, compiler, typing
from numba.core.base import _load_global_helpers
from numba.core.callwrapper import PyCallWrapper
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.environment import Environment
from numba.core.errors import NumbaError
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.targetconfig import ConfigStack

from . import memory
from .calls import flags, read_registries
from .source import function_tree
from .statements import FunctionCompiler
from .values import NotCovered
from .wrapper import Wrapper, covers, covers_result

SETTINGS: Any = config      # Numba's own hints know only some of its attributes


class CallConvention(callconv.CPUCallConv):  # type: ignore[misc]
    """Numba's; an exception that a kernel raises in the function leaves by the function's own way out."""

    compiling: FunctionCompiler | None = None

    def _is_inside(self, builder: Any) -> bool:
        return self.compiling is not None and builder.function is self.compiling.function

    def return_user_exc(self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None,
                        func_name: Any = None) -> None:
        if self.compiling is not None and self._is_inside(builder):
            builder.branch(self.compiling.raising(exc, exc_args, None))
        else:
            super().return_user_exc(builder, exc, exc_args, loc, func_name)

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        if self.compiling is None or not self._is_inside(builder):
            return super().return_status_propagate(builder, status)
        builder.store(status.excinfoptr, self.compiling.function.args[1])
        builder.branch(self.compiling.exit(status.code))


class Context(CPUContext):  # type: ignore[misc]
    """Numba's context with our calling convention."""

    convention: CallConvention

    @property
    def call_conv(self) -> CallConvention:
        return self.convention


def _context() -> Any:
    context = copy.copy(cpu_target.target_context)
    context.__class__ = Context
    context.convention = CallConvention(context)
    context.enable_nrt = True
    context.__dict__.pop("nrt", None)
    context.error_model = callconv.create_error_model("numpy", context)
    return context


TAG = "$direct"         # of the unique names of functions compiled here
OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy"}
TESTED = ((0, 63), (0, 68))


def is_direct(fndesc: Any) -> bool:
    """Whether the function that Numba has described so was compiled here."""
    return str(fndesc.unique_name).endswith(TAG)


@functools.cache
def is_usable() -> bool:
    """Whether this compiler is to be used: by Numba's version, and unless somebody looks at what Numba does."""
    version = tuple(int(part) for part in numba.__version__.split(".")[:2])
    watched = (SETTINGS.BOUNDSCHECK, SETTINGS.DEBUG_NRT, SETTINGS.DEBUGINFO_DEFAULT, SETTINGS.DUMP_LLVM,
               SETTINGS.DUMP_OPTIMIZED, SETTINGS.DUMP_ASSEMBLY, SETTINGS.DUMP_FUNC_OPT)
    return (TESTED[0] <= version <= TESTED[1] and not any(watched) and SETTINGS.MACHINE_BITS == 64
            and os.environ.get("GRADSMITH_COMPILER", "") != "numba")


@functools.cache
def register_symbols() -> None:
    """Let machine code find the functions of Numba's run-time system, without compiling those that are inlined."""
    _load_global_helpers()
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@global_compiler_lock
def compile_text(text: str, function: Any, signature: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """The compile result, as Numba makes one, of the function whose module has this text.

    function: the Python function.  signature: the types of its arguments.  options: those given to `njit`.
    NotCovered: this is for Numba to compile.
    """
    if not is_usable():
        raise NotCovered("the compiler is turned off")
    if any(value != OPTIONS.get(name) for name, value in options.items() if value):
        raise NotCovered("other options")
    if text.count("\ndef ") > 1:
        raise NotCovered("several functions, for one of which Numba must not make two versions (see emit/calls.py)")
    tree = function_tree(text, function.__name__)
    register_symbols()
    try:
        return _compiled(tree, function, signature)
    except (NumbaError, NotImplementedError):       # a kernel's code asked Numba for something it has not read yet
        pass
    read_registries(cpu_target.target_context)
    with ConfigStack().enter(flags()):
        try:
            return _compiled(tree, function, signature)
        except (NumbaError, NotImplementedError) as problem:
            raise NotCovered(str(problem)) from problem


def _compiled(tree: Any, function: Any, signature: tuple[Any, ...]) -> Any:
    context = _context()
    library = context.codegen().create_library(function.__name__)
    library.enable_object_caching()
    names = tuple(argument.arg for argument in tree.args.args)
    fndesc = _described(function, names, signature, None)
    module = context.create_module(fndesc.unique_name)
    with context.push_code_library(library):
        compiled = _function(context, module, fndesc, tree, function)
        fndesc.restype = compiled.result
        environment = Environment.from_fndesc(fndesc)
        context.declare_env_global(module, context.get_env_name(fndesc))
        _wrap(context, module, compiled.function, fndesc, environment, library)
        memory.define(module)
    _load(library, module)
    entry = context.get_executable(library, fndesc, environment)
    return compiler.compile_result(
        typing_context=cpu_target.typing_context, target_context=cpu_target.target_context, entry_point=entry,
        typing_error=None, type_annotation=None, signature=typing.signature(fndesc.restype, *signature),
        objectmode=False, lifted=(), fndesc=fndesc, library=library, call_helper=None, environment=environment,
        metadata=None, reload_init=[], referenced_envs=[])


def _described(function: Any, names: tuple[str, ...], signature: tuple[Any, ...], result: Any) -> Any:
    return PythonFunctionDescriptor(
        True, function.__module__, function.__qualname__, function.__qualname__ + TAG, function.__doc__ or "",
        None, result, None, names, (), argtypes=signature)


def _function(context: Any, module: Any, fndesc: Any, tree: Any, function: Any) -> FunctionCompiler:
    compiled = FunctionCompiler(context, module, fndesc, tree, function)
    context.convention.compiling = compiled
    compiled.compile()
    context.convention.compiling = None
    return compiled


def _wrap(context: Any, module: Any, function: Any, fndesc: Any, environment: Any, library: Any) -> None:
    """The function for CPython: ours, or Numba's for types that ours does not know and for exceptions that Numba's own
    functions may raise."""
    if all(map(covers, fndesc.argtypes)) and covers_result(fndesc.restype) and not library._linking_libraries:
        Wrapper(context, module, function, fndesc, environment).write()
    else:
        PyCallWrapper(context, module, function, fndesc, environment, None, release_gil=True).build()


def _load(library: Any, module: Any) -> None:
    """Optimise the module, link what Numba compiled for it, and hand it to the engine."""
    parsed = llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))
    parsed.name = cgutils.normalize_ir_text(library.name)
    parsed.verify()
    library._final_module = parsed
    for other in dict.fromkeys(library._linking_libraries):
        library._reload_init.update(other._reload_init)
        parsed.link_in(other._get_module_for_linking(), preserve=True)
    code = library.codegen
    # As Numba does, what is inlined and the branches on one condition come first: scalar loops are up to twice as fast.
    early, builder = code._module_pass_manager(loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap")
    early.run(parsed, builder)
    builder = code._pass_builder()
    builder.getModulePassManager().run(parsed, builder)
    library._finalize_final_module()
