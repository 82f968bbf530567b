"""Meshes of devices, and specs that say how arrays are divided among them.

    mesh       {"data": 4, "model": 2}: names and sizes of the axes, eight devices in order
    spec       for each axis of an array the axis of the mesh along which it is divided:
               "data"   ("data", None)   (None, "model")   (("data", "model"),)   None (each device holds it whole)
    in_specs   one for each argument; in place of a spec, a dict, list or named tuple of them for such an argument

In the module they are Shardy's: `sdy.mesh @mesh = <["data"=4, "model"=2]>` and, for a parameter or result,
`sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..transpiler.emit.stablehlo import Marks
from ..transpiler.errors import TranspileError, did_you_mean, error
from ..transpiler.frontend.trees import LeafNode, Structure, TreeNode
from ..transpiler.frontend.values import Leaf

Spec = tuple[tuple[str, ...], ...]              # for each axis of an array, axes of the mesh
LEFT_OPEN: Any = ...                            # the partitioner chooses


@dataclass(frozen=True)
class Mesh:
    """Axes with their sizes, in order."""

    axes: tuple[tuple[str, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.axes)

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.shape)


def mesh_of(given: Any) -> Mesh:
    """A mesh of a dict.  TranspileError (E610)."""
    if not isinstance(given, Mapping) or not given:
        raise _fault(f"a mesh is a dict such as {{'data': 8}}, not {given!r}")
    for name, size in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise _fault(f"an axis of a mesh has a name, and {name!r} is none")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise _fault(f"the axis {name!r} of the mesh has a size of {size!r}")
    return Mesh(tuple(given.items()))


def spec_of(given: Any, mesh: Mesh, what: str) -> Spec:
    """One spec, checked against the mesh.  TranspileError (E610)."""
    entries = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    spec = tuple(() if e is None else (e,) if isinstance(e, str) else tuple(e) for e in entries)
    used: set[str] = set()
    for name in (name for axes in spec for name in axes):
        if name not in mesh.names:
            raise _fault(f"the spec of {what} names {name!r}, which is no axis of the mesh",
                         did_you_mean(str(name), mesh.names) or f"its axes are {', '.join(mesh.names)}")
        if name in used:
            raise _fault(f"the spec of {what} names {name!r} twice")
        used.add(name)
    return spec


def is_spec(given: Any) -> bool:
    """Whether it is one spec, of which there may be many in a tree.  Tuples are; named tuples are trees."""
    jax = sys.modules.get("jax")
    if given is None or isinstance(given, str) or (jax is not None and isinstance(given, jax.sharding.PartitionSpec)):
        return True
    return isinstance(given, tuple) and not hasattr(given, "_fields")


def require_fit(spec: Spec, shape: Sequence[int], mesh: Mesh, what: str) -> None:
    """TranspileError (E610) where an array of this shape cannot be divided so."""
    if len(spec) > len(shape):
        raise _fault(f"the spec of {what} has {len(spec)} entries, and it has {len(shape)} axes")
    sizes = dict(mesh.axes)
    for axis, names in enumerate(spec):
        parts = math.prod(sizes[name] for name in names)
        if shape[axis] % parts:
            raise _fault(f"axis {axis} of {what} has {shape[axis]} elements, which {parts} devices cannot share evenly")


# ---------------------------------------------------------------------------------------------------------------
# trees of specs


def specs_of_argument(given: Any, tree: Any, mesh: Mesh, what: str) -> Iterator[tuple[Leaf, Spec]]:
    """The spec of each array of an argument, which is a tree of Leafs."""
    if isinstance(tree, Leaf):
        if not is_spec(given):
            raise _fault(f"{what} is one array, and its spec is {given!r}")
        spec = spec_of(given, mesh, what)
        require_fit(spec, tree.type.shape, mesh, what)
        yield tree, spec
        return
    for key, child in _children(tree):
        yield from specs_of_argument(given if is_spec(given) else _part(given, key, what), child, mesh,
                                     f"{what}[{key!r}]")


def _children(tree: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(tree, dict):
        yield from tree.items()
    elif isinstance(tree, (tuple, list)):
        yield from enumerate(tree)
    elif hasattr(tree, "__dataclass_fields__"):
        yield from ((name, getattr(tree, name)) for name in tree.__dataclass_fields__)


def _part(given: Any, key: Any, what: str) -> Any:
    try:
        if isinstance(given, dict) or not isinstance(key, str):
            return given[key]
        return getattr(given, key)
    except (LookupError, AttributeError, TypeError):
        raise _fault(f"the spec of {what} has nothing for {key!r}: {given!r}") from None


def specs_of_results(given: Any, structure: Structure, mesh: Mesh, what: str = "the result") -> Iterator[Spec | None]:
    """The spec of each array of the result; None where the partitioner chooses."""
    if isinstance(structure, LeafNode):
        if given is not LEFT_OPEN and not is_spec(given):
            raise _fault(f"{what} is one array, and its spec is {given!r}")
        yield None if given is LEFT_OPEN else spec_of(given, mesh, what)
    elif isinstance(structure, TreeNode):
        for key, child in zip(structure.keys or range(len(structure.children)), structure.children):
            whole = given is LEFT_OPEN or is_spec(given)
            yield from specs_of_results(given if whole else _part(given, key, what), child, mesh, f"{what}[{key!r}]")


# ---------------------------------------------------------------------------------------------------------------
# in the module


def marks(mesh: Mesh, params: Mapping[int, tuple[Spec, int]], results: Mapping[int, tuple[Spec, int]]) -> Marks:
    """Shardy's words.  params, results: specs and ranks, by number."""
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    return Marks(f"mhlo.num_partitions = {mesh.size} : i32, mhlo.num_replicas = 1 : i32",
                 (f"sdy.mesh @mesh = <[{axes}]>",),
                 {k: _written(*given) for k, given in params.items()},
                 {k: _written(*given) for k, given in results.items()})


def _written(spec: Spec, rank: int) -> str:
    padded = (*spec, *[()] * (rank - len(spec)))
    axes = ", ".join("{" + ", ".join(f'"{name}"' for name in names) + "}" for names in padded)
    return f"sdy.sharding = #sdy.sharding<@mesh, [{axes}]>"


def _fault(message: str, help: str | None = None) -> TranspileError:
    return error("E610", message, None, help=help)
