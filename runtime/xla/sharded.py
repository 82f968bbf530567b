"""`sharded`: one function on many devices, its arrays divided among them and its work by XLA's partitioner."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments import Described, describe
from ..device_array import DeviceArray
from ..function import making
from ..target import Target, parse_target
from ..to_stablehlo import described as described_by_types
from ..transforms import function
from ..transpiler.emit.stablehlo import Marks
from ..transpiler.errors import error
from ..transpiler.frontend.trace import Trace
from ..transpiler.frontend.values import Leaf
from ..transpiler.ir.nodes import Func
from .ahead import CompiledForTpu, compile_for_tpu
from .bindings import bindings, devices, sixty_four_bits
from .collectives import Collective, collectives_of
from .compiler import Build
from .program import DeviceProgram
from .sharding import LEFT_OPEN, Mesh, Spec, marks, mesh_of, require_fit, specs_of_argument, specs_of_results
from .specialise import DeviceSpecialisation, specialise_for
from .transfer import uploader


class Sharded:
    """What `sharded` returns.  Its results are DeviceArrays whose elements lie on the devices of the mesh."""

    def __init__(self, fun: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, target: Target) -> None:
        functools.update_wrapper(self, fun, updated=())
        self.__gradsmith_transformed__: tuple[Any, ...] = ("jit", fun, (), {})
        self.inner = function("jit", fun)
        self.mesh, self.in_specs, self.out_specs, self.target = mesh, in_specs, out_specs, target
        self._made: list[DeviceSpecialisation] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given, named = self.inner._positional(args, kwargs)
        described = describe(given, named, self.inner.parameters, self.inner._static, exact=True)
        return self._specialised(described).call(described)

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The module for arguments such as these: arrays, or what says their shapes and dtypes ("f32[128,784]")."""
        return self._program(args, kwargs).text

    def collectives(self, *args: Any, **kwargs: Any) -> tuple[Collective, ...]:
        """What the devices tell each other when the module for such arguments runs here."""
        executable = self._program(args, kwargs).executable
        return collectives_of("\n".join(module.to_string() for module in executable.hlo_modules()))

    def compile_for_tpu(self, *args: Any, topology: str, **kwargs: Any) -> CompiledForTpu:
        """Compile ahead of time for the first chips of a topology such as "v5e:4x4"; no TPU is needed."""
        return compile_for_tpu(self._program(args, kwargs).text, topology, partitions=self.mesh.size)

    def _program(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> DeviceProgram:
        given, named = self.inner._positional(tuple(args), dict(kwargs))
        found = described_by_types(given, named, self.inner.parameters, self.inner._static)
        return self._new(Described(found.args, found.kwargs, found.leaves, found.values, None)).program

    def _specialised(self, described: Described) -> DeviceSpecialisation:
        with making:
            for known in self._made:
                if known.serves(described):
                    return known
            self._made.insert(0, self._new(described))
            return self._made[0]

    def _new(self, described: Described) -> DeviceSpecialisation:
        given = dict(self._of_arguments(described))
        by_leaf = {id(leaf): spec for leaf, spec in given.items()}

        def place(found: Trace, func: Func) -> OnMesh:
            params = [by_leaf.get(id(leaf), ()) for leaf in found.leaves] + [()] * len(found.captures)
            results = list(specs_of_results(self.out_specs, found.out_tree, self.mesh))
            results += [params[func.params.index(p)] for p in func.effects]
            shapes = [value.type.shape for value in func.results]
            for k, (spec, shape) in enumerate(zip(results, shapes, strict=True)):
                if spec is not None:
                    require_fit(spec, shape, self.mesh, f"result {k}")
            return OnMesh(self.mesh, self.target, params, results, shapes)

        return specialise_for(self.inner, described, target=self.target, name=self.inner.generated_name(),
                              reason=f"sharded over {dict(self.mesh.axes)}", source=self.inner.source_text, place=place)

    def _of_arguments(self, described: Described) -> Iterator[tuple[Leaf, Spec]]:
        names = [*self.inner.parameters, *(f"argument {k}" for k in range(len(self.inner.parameters),
                                                                          len(described.args)))]
        specs = self.in_specs
        if specs is None or isinstance(specs, str):
            specs = (specs,) * len(described.args)
        if len(specs) != len(described.args):
            raise error("E610", f"in_specs has {len(specs)} entries for {len(described.args)} arguments", None)
        for given, tree, name in zip(specs, described.args, names):
            yield from specs_of_argument(given, tree, self.mesh, name)
        for name, tree in described.kwargs.items():
            yield from specs_of_argument(None, tree, self.mesh, name)


class OnMesh:
    """A place that is a mesh of devices.  results: None where the partitioner chooses.  shapes: of the results."""

    def __init__(self, mesh: Mesh, target: Target, params: Sequence[Spec], results: Sequence[Spec | None],
                 shapes: Sequence[tuple[int, ...]]) -> None:
        self.mesh, self.target, self.params, self.results, self.shapes = mesh, target, params, results, shapes
        self._chosen: dict[Any, list[Any]] = {}
        self.build, self.is_spread = Build(partitions=mesh.size), mesh.size > 1

    def devices(self) -> Sequence[Any]:
        """jax's, in order.  TranspileError (E604): there are fewer."""
        found = devices(self.target.device.platform)
        if len(found) < self.mesh.size:
            raise error("E604", f"the mesh has {self.mesh.size} devices, and there are {len(found)} of "
                        f"{self.target.device.platform}", None, kind=ValueError, help=(
                            f"XLA_FLAGS=--xla_force_host_platform_device_count={self.mesh.size} in the environment "
                            "makes so many of this CPU" if self.target.device.platform == "xla" else
                            "compile ahead of time: compile_for_tpu"))
        return found[:self.mesh.size]

    def marks(self, func: Func, checked: bool) -> Marks:
        results = {k: (spec, value.type.rank) for k, (spec, value) in enumerate(zip(self.results, func.results,
                                                                                    strict=True)) if spec is not None}
        if checked:
            results[len(func.results)] = ((), 0)
        return marks(self.mesh, {k: (spec, param.type.rank) for k, (spec, param) in enumerate(zip(
            self.params, func.params, strict=True))}, results)

    def aliased(self, func: Func) -> Mapping[int, int]:
        """Nothing is given away: what arguments hold is divided anew at each call."""
        return {}

    @functools.cached_property
    def _mesh(self) -> Any:
        found = np.empty(self.mesh.size, object)
        found[:] = self.devices()
        return bindings().jax.sharding.Mesh(found.reshape(self.mesh.shape), self.mesh.names)

    @functools.cached_property
    def shardings(self) -> list[Any]:
        """jax's, one for each parameter."""
        sharding = bindings().jax.sharding
        return [sharding.NamedSharding(self._mesh, sharding.PartitionSpec(*(axes or None for axes in spec)))
                for spec in self.params]

    def put(self, k: int, value: Any, dtype: np.dtype[Any], own: bool, shared: bool) -> Any:
        if isinstance(value, DeviceArray):
            here = value.buffer(uploader(min(value.devices())))
            if here.dtype != dtype:
                here = np.array(value).astype(dtype)
        else:               # a copy: jax reads it later, when its owner may have changed it
            here = np.array(value, dtype)
        with sixty_four_bits():
            return bindings().jax.device_put(here, self.shardings[k])

    def execute(self, executable: Any, buffers: Sequence[Any]) -> list[Any]:
        jax = bindings().jax
        parts = executable.execute_sharded(list(buffers)).disassemble_into_single_device_arrays()
        chosen = self._shardings_of_results(executable)
        return [jax.make_array_from_single_device_arrays(shape, sharding, shards)
                for shards, sharding, shape in zip(parts, chosen, (*self.shapes, ()))]

    def _shardings_of_results(self, executable: Any) -> list[Any]:
        """jax's; the partitioner's choice where a spec was left out."""
        if executable not in self._chosen:
            from jax._src.sharding_impls import GSPMDSharding
            found = executable.get_output_shardings()       # None for a mesh of one device
            sharding = bindings().jax.sharding
            whole = sharding.NamedSharding(self._mesh, sharding.PartitionSpec())
            self._chosen[executable] = [whole] * (len(self.shapes) + 1) if found is None else [
                GSPMDSharding(tuple(self.devices()), one) for one in found]
        return self._chosen[executable]


def sharded(fun: Callable[..., Any] | None = None, *, mesh: Mapping[str, int], in_specs: Any = None,
            out_specs: Any = LEFT_OPEN, target: str = "xla", checked: bool = True, cast: str | None = None,
            max_trips: int | None = None) -> Any:
    """`fun` on the devices of a mesh, such as {"data": 8}: XLA's partitioner divides its work among them.

    in_specs: a tuple with a spec for each argument, or one of None and a string for all.  A spec says for each axis of
    an array along which axis of the mesh it is divided: "data" (the first axis), (None, "model"), (("data", "model"),),
    or None for an array that each device holds whole.  In place of a spec, a dict, list or named tuple of specs for
    such an argument.  out_specs: the same for the result; left out, the partitioner chooses.
    target: "xla" (the CPU's devices, see XLA_FLAGS=--xla_force_host_platform_device_count) or "tpu".  checked, cast,
    max_trips: as for `jit`.

    The meaning of `fun` does not change: sums over a divided axis are summed over devices.  So a data-parallel gradient
    is `sharded(grad(loss), mesh={"data": 8}, in_specs=(None, "data", "data"), out_specs=None)`.  Inside other
    transforms and functions it is `fun` itself.

    The result also has `source`, `collectives` and `compile_for_tpu`.  TranspileError: E610 for specs that do not fit,
    E604 where there are fewer devices; else as `jit`.
    """
    if fun is None:
        return functools.partial(sharded, mesh=mesh, in_specs=in_specs, out_specs=out_specs, target=target,
                                 checked=checked, cast=cast, max_trips=max_trips)
    where = parse_target(target, checked, cast, max_trips)
    if not where.is_xla:
        raise error("E604", "sharded runs on devices of XLA's", None, kind=ValueError, help='target="xla" or "tpu"')
    if in_specs is not None and not isinstance(in_specs, (str, tuple, list)):
        raise error("E610", f"in_specs is a tuple with one spec for each argument, not {in_specs!r}", None)
    return Sharded(fun, mesh_of(mesh), in_specs, out_specs, where)
