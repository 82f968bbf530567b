"""XLA through jaxlib, which the extra `xla` installs: compile and run StableHLO text, on this machine or for TPU.

    run(text, x, y)                      results of @main on XLA's CPU client, as NumPy arrays
    parses(text)                         None, or the verifier's complaint
    compile_for_tpu(text, "v5e:2x2")     what the TPU compiler says of it; needs libtpu (extra `tpu`), and no TPU
    to_portable_artifact(text)           bytes for StableHLO's consumers of other versions, and back

`jit(f, target="xla")` stands on the same (`specialise.py`).  jax is imported when something here is first called, not
before.
"""

from .ahead import CompiledForTpu, compile_for_tpu
from .artifact import from_portable_artifact, to_portable_artifact
from .bindings import XlaError
from .running import parses, run

__all__ = ["CompiledForTpu", "XlaError", "compile_for_tpu", "from_portable_artifact", "parses", "run",
           "to_portable_artifact"]
