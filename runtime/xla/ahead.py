"""Modules compiled ahead of time with the real TPU compiler, where there is no TPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .bindings import XlaError, bindings, parsed, require_libtpu
from .collectives import Collective, collectives_of
from .compiler import Build, options_for


@dataclass(frozen=True)
class CompiledForTpu:
    """costs: the compiler's account ("flops", "bytes accessed", "optimal_seconds", ...).  hlo: the optimised module's
    text, for one device.  memory: bytes for arguments, results, scratch and code, on each."""

    topology: str
    costs: Mapping[str, float]
    hlo: str
    memory: Mapping[str, int]

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """What the chips tell each other."""
        return collectives_of(self.hlo)

    def __getitem__(self, name: str) -> float:
        return self.costs[name]


def compile_for_tpu(text: str, topology: str = "v5e:2x2", *, partitions: int = 1) -> CompiledForTpu:
    """Compile for so many chips of a topology such as "v5e:2x2", "v5e:16x16" or "v4:2x2x1".

    ImportError: jaxlib or libtpu is missing, with the line to install it.  XlaError: the compiler's words.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    require_libtpu()
    client = bindings().client
    from jax.experimental import topologies

    module = parsed(text)
    try:
        found: Any = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    except (ValueError, RuntimeError) as refused:
        raise XlaError(f"no topology {topology!r}: {refused}") from None
    if partitions > len(found):
        raise XlaError(f"{topology} has {len(found)} chips, and the module is for {partitions}")
    try:
        made = found[0].client.compile(module, client.DeviceList(tuple(found[:partitions])),
                                       options_for(Build(partitions=partitions)))
    except bindings().refusals as refused:
        raise XlaError(str(refused)) from None
    costs = made.cost_analysis()
    stats = made.get_compiled_memory_stats()
    memory = {name: getattr(stats, f"{name}_size_in_bytes") for name in
              ("argument", "output", "temp", "alias", "generated_code")}
    return CompiledForTpu(topology, dict(costs[0] if isinstance(costs, list) else costs),
                          "\n".join(m.to_string() for m in made.hlo_modules()), memory)
