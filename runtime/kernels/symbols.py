"""The BLAS and LAPACK that SciPy ships, as symbols that compiled code can link to.

SciPy exposes both libraries through two extension modules, `scipy.linalg.cython_blas` and `cython_lapack`, whose
`__pyx_capi__` tables hold a function pointer per routine. An address is good for one process only, so it must never
be written into code that Numba keeps on disk. Instead each routine gets a name in LLVM's symbol table
(`gradsmith_dgemm`), compiled code declares an external function of that name, and the linker of whichever process
loads the code fills in the address. The names must be registered before such code is loaded: importing
`gradsmith.kernels.blas` or `gradsmith.kernels.lapack` does it.
"""

import ctypes
import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import llvmlite.binding

PREFIX = "gradsmith_"

_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@cache
def routines(library: str) -> dict[str, object]:
    """The table of routines, name to capsule, of `library`: "cython_blas" or "cython_lapack".

    The extension module is loaded from its file, which takes some 15 ms; importing `scipy.linalg` takes 200.
    """
    name = f"scipy.linalg.{library}"
    if "scipy.linalg" in sys.modules:
        return importlib.import_module(name).__pyx_capi__
    return _load_alone(name).__pyx_capi__


def _load_alone(name: str) -> ModuleType:
    """The extension module `name` without the package around it, or with it where that does not work."""
    package = importlib.util.find_spec("scipy")
    folders = [f"{folder}/linalg" for folder in package.submodule_search_locations or ()] if package else []
    spec = importlib.machinery.PathFinder.find_spec(name, folders)
    if spec is None or not isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
        return importlib.import_module(name)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return importlib.import_module(name)
    # Cython put the module into sys.modules itself. Taken out again, a later `import scipy.linalg.cython_blas` runs the
    # ordinary way, finds the same module object, and makes it an attribute of its package.
    sys.modules.pop(name, None)
    return module


@cache
def address(library: str, routine: str) -> int:
    """Where `routine` of `library` lies in this process."""
    return pointer_of(routines(library)[routine])


def pointer_of(capsule: object) -> int:
    """What a capsule of a C function points to."""
    return _capsule_pointer(capsule, _capsule_name(capsule))


def signature_of(capsule: object) -> str:
    """The C type of a capsule's function, as Cython writes it."""
    return _capsule_name(capsule).decode()


def register(library: str, names: Iterable[str]) -> None:
    """Let compiled code link to the routines `names` of `library` as `gradsmith_<name>`."""
    for name in names:
        llvmlite.binding.add_symbol(PREFIX + name, address(library, name))
