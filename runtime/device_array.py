"""`DeviceArray`: an array on a device that XLA runs on, there before its elements are computed.

What compiled functions with `target="xla"` return, and `device_put(x, "xla:0")`.  Reading elements waits for them and
brings them here, once: `np.asarray(y)`, `float(y)`, `y[0]`, `print(y)`, NumPy's functions.  Those give arrays of this
machine's.  Given to a compiled function of the same device, nothing is moved.

An error that the program raised (an index out of range) is raised where one of its results is first read.

Arrays are mutable, as NumPy's are: `y[0] = 1`, and functions that write to their arguments.  But what is read of one
is a copy that is read-only, not a view.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .array import Array, as_array, bind_numbers_anew, converted
from .device import Device
from .transpiler.frontend.updates import At

_MUTATING = frozenset({"fill", "partition", "put", "sort"})
_LACKING = frozenset({"resize", "setfield", "setflags", "view"})        # they are about memory


class Outcome:
    """Whether one call failed, which its error flag tells once it has been computed.

    failure: makes the exception of a flag's value; None where it says that all is well.
    """

    __slots__ = ("_error", "_failure", "_flag")

    def __init__(self, flag: Any, failure: Callable[[Any], BaseException | None]) -> None:
        self._flag, self._failure = flag, failure
        self._error: BaseException | None = None

    def require(self) -> None:
        """Wait, and raise what the call raised."""
        if self._flag is not None:
            self._error, self._flag = self._failure(self._flag), None
        if self._error is not None:
            raise self._error

    @property
    def is_settled(self) -> bool:
        """Whether it is known without waiting that all went well; raises where it is known that it did not."""
        if self._flag is not None and not self._flag.is_ready():
            return False
        self.require()
        return True


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of a device; see the module's text.

    buffer: XLA's (a jax.Array), which nobody else may give away.  weak: a Python number stands here, which promotes as
    one.  outcomes: of the calls that it is a result of.
    """

    __slots__ = ("__weakref__", "_buffer", "_device", "_host", "_kind", "_outcomes", "_shared", "_spread", "_weak")
    __array_priority__ = 1000

    def __init__(self, buffer: Any, device: Device, *, weak: bool = False, outcomes: Sequence[Outcome] = (),
                 shared: bool = False, spread: bool = False) -> None:
        self._buffer, self._device, self._weak, self._outcomes = buffer, device, weak, tuple(outcomes)
        self._shared = shared                   # somebody else may hold the buffer
        self._spread = spread                   # over the devices of a mesh
        self._kind: Any = None
        self._host: np.ndarray[Any, Any] | None = None      # where the elements are after they were written to here

    # --- what is known without waiting ---------------------------------------------------------------------------

    @property
    def _here(self) -> Any:
        return self._buffer if self._host is None else self._host

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._here.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._here.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        """Where the elements are: a device, or how they are divided among those of a mesh (a `jax.sharding.Sharding`,
        as JAX's arrays have it)."""
        return self._buffer.sharding if self._spread else self._device

    def devices(self) -> set[Device]:
        """The devices that hold the elements: one, or those of a mesh."""
        if not self._spread:
            return {self._device}
        return {Device(f"{self._device.platform}:{place.id}") for place in self._buffer.devices()}

    @property
    def is_weak(self) -> bool:
        """Whether it stands for a Python number."""
        return self._weak

    @property
    def kind(self) -> Any:
        """Equal for arrays that the same compiled code takes."""
        if self._kind is None:
            self._kind = (DeviceArray, self.dtype, self.shape, self._weak)
        return self._kind

    def is_ready(self) -> bool:
        """Whether the elements are computed."""
        return self._host is not None or bool(self._buffer.is_ready())

    def block_until_ready(self) -> DeviceArray:
        """The array itself, once its elements are computed; raises what computing them raised."""
        if self._host is None:
            self._buffer.block_until_ready()
        self._settle()
        return self

    def _settle(self) -> None:
        for outcome in self._outcomes:
            outcome.require()
        self._outcomes = ()

    # --- the device's side, for compiled functions ---------------------------------------------------------------

    def unsettled(self) -> tuple[Outcome, ...]:
        """The outcomes that are not known yet.  Raises where one of the others was an error."""
        self._outcomes = tuple(outcome for outcome in self._outcomes if not outcome.is_settled)
        return self._outcomes

    def buffer(self, upload: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
        """XLA's buffer; `upload` makes one of elements that were written to here."""
        if self._host is not None:
            self._buffer, self._host, self._shared, self._spread = upload(self._host), None, False, False
        return self._buffer

    def waiting(self, device: Device) -> Any:
        """XLA's buffer where it lies on the device as it is and nothing is outstanding; else None."""
        if self._outcomes or self._spread or self._host is not None or self._device != device:
            return None
        return self._buffer

    def is_on(self, device: Device) -> bool:
        """Whether all of it is there."""
        return self._device == device and not self._spread

    @property
    def is_shared(self) -> bool:
        """Whether somebody else may hold the buffer, so that it must not be given away."""
        return self._shared

    def replace(self, buffer: Any, outcomes: Sequence[Outcome]) -> None:
        """A function has written to it: this is what it holds now."""
        self._buffer, self._host, self._shared, self._outcomes = buffer, None, False, tuple(outcomes)
        self._spread, self._kind = len(buffer.devices()) > 1, None

    # --- reading ---------------------------------------------------------------------------------------------------

    def _read(self) -> np.ndarray[Any, Any]:
        """The elements, read-only."""
        self._settle()
        if self._host is None:
            self._shared = True                 # memory that is this machine's own is not copied
            return np.asarray(self._buffer)
        view = self._host.view()
        view.flags.writeable = False
        return view

    def _written(self) -> np.ndarray[Any, Any]:
        """The elements, here and to be written to."""
        if self._host is None:
            self._settle()
            self._host, self._buffer, self._spread = np.array(self._buffer), None, False
        return self._host

    def __gradsmith_array__(self) -> np.ndarray[Any, Any]:
        """For the transpiler, and for code that runs here."""
        return self._read()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._read(), dtype, copy=copy)

    def __jax_array__(self) -> Any:
        self._settle()
        self._shared = True
        from .xla.transfer import uploader
        return self.buffer(uploader(self._device))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy computes here, and gives Arrays; `out=` may be a DeviceArray."""
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple(x._written() if isinstance(x, DeviceArray) else x for x in out)
        found = getattr(ufunc, method)(*map(_local, inputs), **kwargs)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return converted(found)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return converted(func(*_all_local(args), **{k: _all_local(v) for k, v in kwargs.items()}))

    def __getitem__(self, key: Any) -> Any:
        found = self._read()[_all_local(key)]
        if not isinstance(found, np.ndarray):
            return as_array(found)
        made = as_array(found.copy())
        made.flags.writeable = False
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        self._written()[_all_local(key)] = _local(value)

    def __getattr__(self, name: str) -> Any:
        """NumPy's methods and attributes."""
        if name.startswith("_") or name in _LACKING or not hasattr(np.ndarray, name):
            raise AttributeError(f"a DeviceArray has no attribute {name!r}")
        if name in _MUTATING:
            return getattr(self._written(), name)
        return getattr(as_array(self._read()), name)

    @property
    def T(self) -> Any:
        return as_array(self._read()).T

    @property
    def at(self) -> At:
        """`x.at[i].set(v)` and its kin: a changed copy, here."""
        return At(as_array(self._read()))

    def copy(self) -> DeviceArray:
        """Another array on the same device."""
        return copy.copy(self)

    def __copy__(self) -> DeviceArray:
        from .xla.transfer import put
        self._settle()
        return put(self._here, self._device, weak=self._weak)

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return copy.copy(self)

    def __reduce__(self) -> Any:
        return as_array, (np.array(self._read()),)

    def item(self, *args: Any) -> Any:
        return self._read().item(*args)

    def tolist(self) -> Any:
        return self._read().tolist()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def __contains__(self, x: Any) -> bool:
        return bool(np.any(self._read() == _local(x)))

    def __bool__(self) -> bool:
        return bool(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __index__(self) -> int:
        return self._read().__index__()

    def __float__(self) -> float:
        return float(self._read())

    def __complex__(self) -> complex:
        return complex(self._read())

    def __round__(self, digits: int | None = None) -> Any:
        return round(as_array(self._read()), digits) if digits is not None else round(as_array(self._read()))

    def __format__(self, spec: str) -> str:
        return format(self._read() if self.ndim else self.item(), spec)

    def __str__(self) -> str:
        return str(self._read())

    def __repr__(self) -> str:
        text = repr(as_array(self._read()))
        return f"DeviceArray{text.removeprefix('Array')[:-1]}, device={str(self._device)!r})"

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError(f"unhashable type: {type(self).__name__!r}")


bind_numbers_anew(DeviceArray, np.lib.mixins.NDArrayOperatorsMixin)


def _local(x: Any) -> Any:
    return x._read() if isinstance(x, DeviceArray) else x.view(np.ndarray) if type(x) is Array else x


def _all_local(x: Any) -> Any:
    """Arguments of NumPy's functions: arrays, alone and in tuples, lists and dicts."""
    kind = type(x)
    if kind in (tuple, list):
        return kind(map(_all_local, x))
    if kind is dict:
        return {k: _all_local(v) for k, v in x.items()}
    return _local(x)


def adopted(x: Any) -> Any:
    """One of jax's arrays as a DeviceArray, without a copy; anything else as it is."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(x, jax.Array) or isinstance(x, jax.core.Tracer):
        return x
    if len(x.devices()) > 1:
        return np.asarray(x)
    (place,) = x.devices()
    return DeviceArray(x, Device(f"{'xla' if place.platform == 'cpu' else place.platform}:{place.id}"),
                       weak=bool(x.weak_type), shared=True)
