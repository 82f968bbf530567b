"""The types of arguments, as written in a signature: `f64[n,m], i64, {w: f64[n], b: f64}` or Numba's `float64[:,::1]`.

    spec       = type [ "[" dims [ ";" layout ] "]" ] | tuple | list | dict
    dims       = dim, ...         a length (3), a name (n; the same name, the same length) or `:` (any length)
    layout     = C | F | A        C if left out; when all dims are `:` or `::1`, what Numba means by that
    tuple, list, dict             as in Python: (f64,)  [f64, f64]  {w: f64, "a b": f64}

Nothing is ever evaluated. What `print` gives for a spec is read back as the same spec.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from gradsmith.transpiler.errors import Location, SourceText, TranspileError, did_you_mean, error

Dim: TypeAlias = "int | str | None"  # a length, a name for one, or any
_Item = TypeVar("_Item")

_SHORT_NAMES = {
    "bool": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
}
_PRINTED_NAMES = {**{dtype: short for short, dtype in _SHORT_NAMES.items()}, "bfloat16": "bf16"}
_OTHER_NAMES = {
    "bool": ("bool_", "boolean"),
    "int64": ("int", "int_", "intp"),
    "uint64": ("uint", "uintp"),
    "float16": ("half",),
    "float32": ("single",),
    "float64": ("float", "double"),
    "complex64": ("csingle",),
    "complex128": ("complex", "cdouble"),
}
DTYPE_NAMES = {
    **_SHORT_NAMES,
    **{dtype: dtype for dtype in _SHORT_NAMES.values()},
    **{name: dtype for dtype, names in _OTHER_NAMES.items() for name in names},
}


@dataclass(frozen=True)
class ScalarSpec:
    """A number. `f64["n", 3]` or `f64[:, ::1]` makes the array type of the same dtype."""

    dtype: str  # NumPy's name

    __iter__ = None  # having `__getitem__` does not make it a sequence

    def __getitem__(self, dims: object) -> "ArraySpec":
        parts = dims if isinstance(dims, tuple) else (dims,)
        inside = ",".join(_written_dim(part) for part in parts)
        spec = parse_spec(f"{self}[{inside}]", halves=True)
        assert isinstance(spec, ArraySpec)
        return spec

    def __str__(self) -> str:
        return _PRINTED_NAMES.get(self.dtype, self.dtype)


@dataclass(frozen=True)
class ArraySpec:
    """An array, with a layout in memory: C, F, or A for any strides."""

    dtype: str
    dims: tuple[Dim, ...]
    layout: str = "C"

    def __post_init__(self) -> None:
        if len(self.dims) < 2 and self.layout == "F":  # F and C are one thing then
            object.__setattr__(self, "layout", "C")

    @property
    def rank(self) -> int:
        return len(self.dims)

    def __str__(self) -> str:
        dims = [":" if dim is None else str(dim) for dim in self.dims]
        suffix = ""
        if dims and all(dim is None for dim in self.dims):
            if self.layout != "A":
                dims[-1 if self.layout == "C" else 0] = "::1"
        elif self.layout != "C":
            suffix = f";{self.layout}"
        return f"{ScalarSpec(self.dtype)}[{','.join(dims)}{suffix}]"


@dataclass(frozen=True)
class TupleSpec:
    items: "tuple[Spec, ...]"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))}{',' if len(self.items) == 1 else ''})"


@dataclass(frozen=True)
class ListSpec:
    items: "tuple[Spec, ...]"

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class DictSpec:
    items: "tuple[tuple[str, Spec], ...]"

    def __str__(self) -> str:
        return "{" + ", ".join(f"{_written_key(key)}: {spec}" for key, spec in self.items) + "}"


Spec = ScalarSpec | ArraySpec | TupleSpec | ListSpec | DictSpec

bool_ = ScalarSpec("bool")
i8, i16, i32, i64 = (ScalarSpec(f"int{bits}") for bits in (8, 16, 32, 64))
u8, u16, u32, u64 = (ScalarSpec(f"uint{bits}") for bits in (8, 16, 32, 64))
f16, f32, f64 = (ScalarSpec(f"float{bits}") for bits in (16, 32, 64))
bf16 = ScalarSpec("bfloat16")
c64, c128 = ScalarSpec("complex64"), ScalarSpec("complex128")


def built(spec: Spec, leaf: Callable[[ScalarSpec | ArraySpec], _Item]) -> Any:
    """Tuples, lists and dicts as the spec says, with what `leaf` makes of each number and array in them."""
    match spec:
        case ScalarSpec() | ArraySpec():
            return leaf(spec)
        case TupleSpec():
            return tuple(built(item, leaf) for item in spec.items)
        case ListSpec():
            return [built(item, leaf) for item in spec.items]
        case DictSpec():
            return {key: built(item, leaf) for key, item in spec.items}
    raise TypeError(spec)


def arrays_in(spec: Spec) -> Iterator[ArraySpec]:
    match spec:
        case ArraySpec():
            yield spec
        case TupleSpec() | ListSpec():
            for item in spec.items:
                yield from arrays_in(item)
        case DictSpec():
            for _, item in spec.items:
                yield from arrays_in(item)


def with_dims(spec: Spec, dim: Callable[[Dim], Dim]) -> Spec:
    """The spec with other lengths in the places of its own, of arrays in C's order."""
    match spec:
        case ArraySpec():
            return ArraySpec(spec.dtype, tuple(map(dim, spec.dims)))
        case TupleSpec() | ListSpec():
            return type(spec)(tuple(with_dims(item, dim) for item in spec.items))
        case DictSpec():
            return DictSpec(tuple((key, with_dims(item, dim)) for key, item in spec.items))
    return spec


BFLOAT16 = ("bf16", "bfloat16")         # which NumPy lacks


def parse_signature(text: str, *, file: str = "<signature>", halves: bool = False) -> tuple[Spec, ...]:
    """The specs of all arguments, separated by commas. `file` says in errors where the text comes from.  halves: they
    may be of half precision."""
    parser = _Parser(text, file, halves)
    specs = parser.items_until("end", parser.spec)
    return tuple(specs)


def parse_spec(text: str, *, file: str = "<signature>", halves: bool = False) -> Spec:
    """The spec of one argument.  halves: it may be of half precision."""
    parser = _Parser(text, file, halves)
    spec = parser.spec()
    parser.expect("end", "one type was expected, and here is more")
    return spec


def format_signature(specs: tuple[Spec, ...]) -> str:
    """The text that `parse_signature` reads as `specs`."""
    return ", ".join(map(str, specs))


def looks_like_array_spec(text: str) -> bool:
    """Is `text` meant to be a spec, even if it is not a good one?"""
    started = re.match(r"\s*(\w+)\s*\[", text)
    return started is not None and started[1] in (*DTYPE_NAMES, *BFLOAT16)


def meant_spec(text: str) -> Spec | None:
    """What an argument says that is given as a text, if it is meant to be a spec: `f32`, `f32[3,4]`, `{w: f32[4]}`.
    TranspileError for a bad one that cannot be meant as anything else."""
    name = text.strip()
    if (name in _SHORT_NAMES and name != "bool") or name in BFLOAT16:
        return parse_spec(text, halves=True)
    if re.fullmatch(r"\s*\w+\s*\[[^\[\]]*\]\s*", text) or looks_like_array_spec(text):
        return parse_spec(text, halves=True)
    if not name.startswith(("(", "[", "{")):
        return None
    try:
        return parse_spec(text, halves=True)
    except TranspileError:
        return None


def _written_dim(dim: object) -> str:
    match dim:
        case slice(start=None, stop=None, step=None):
            return ":"
        case slice(start=None, stop=None, step=1):
            return "::1"
        case None:
            return ":"
        case int() | str() if not isinstance(dim, bool):
            return str(dim)
        case _:
            raise error("E501", f"{dim!r} is not a dimension", help='f64["n", 3], f64["n,m"] or f64[:, ::1]')


def _written_key(key: str) -> str:
    if re.fullmatch(r"[^\W\d]\w*", key):
        return key
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True)
class _Token:
    kind: str  # "name", "number", "string", "end", or the sign itself
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<name>[^\W\d]\w*)
      | (?P<number>\d+)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<sign>::1(?!\w)|[\[\](){},:;])""",
    re.VERBOSE | re.DOTALL,
)


class _Parser:
    def __init__(self, text: str, file: str, halves: bool = False) -> None:
        self.text, self.file, self.halves = text, file, halves
        self.tokens = list(self._tokens())
        self.next = 0

    def _tokens(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.error("E501", f"`{self.text[at]}` has no meaning in a signature", at, at + 1)
            kind = str(found.lastgroup)
            if kind != "space":
                yield _Token(found[0] if kind == "sign" else kind, found[0], found.start(), found.end())
            at = found.end()
        yield _Token("end", "", len(self.text), len(self.text))

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def take(self, *kinds: str) -> _Token | None:
        """The next token, if it is of one of these kinds."""
        token = self.token
        if token.kind not in kinds:
            return None
        self.next += token.kind != "end"
        return token

    def expect(self, kind: str, message: str) -> _Token:
        return self.take(kind) or self.fail(message)

    def fail(self, message: str) -> _Token:
        ended = self.token.kind == "end"
        raise self.at_token("E501", f"{message}, but the signature ends" if ended else message, self.token)

    def at_token(self, code: str, message: str, token: _Token, *, help: str | None = None) -> TranspileError:
        return self.error(code, message, token.start, token.end, help=help)

    def error(self, code: str, message: str, start: int, end: int, *, help: str | None = None) -> TranspileError:
        line, line_start = self.text.count("\n", 0, start), self.text.rfind("\n", 0, start) + 1
        column = start - line_start
        at = Location(self.file, line + 1, column, line + 1, column + max(end - start, 1), SourceText(self.text))
        return error(code, message, at, help=help)

    def items_until(self, closing: str, item: Callable[[], _Item]) -> list[_Item]:
        """Items with commas between them and perhaps after the last, up to `closing`, which is taken too."""
        opening = self.tokens[self.next - 1]
        items: list[_Item] = []
        while not self.take(closing):
            items.append(item())
            if self.take(closing):
                break
            if self.token.kind == "end":
                raise self.at_token("E501", f"this `{opening.text}` is never closed", opening)
            sign = "the end" if closing == "end" else f"`{closing}`"
            self.expect(",", f"expected a comma or {sign}")
        return items

    def spec(self) -> Spec:
        if opening := self.take("("):
            items = self.items_until(")", self.spec)
            is_tuple = len(items) != 1 or self.tokens[self.next - 2].kind == ","
            return TupleSpec(tuple(items)) if is_tuple else items[0]
        if opening := self.take("["):
            return ListSpec(tuple(self.items_until("]", self.spec)))
        if opening := self.take("{"):
            entries = self.items_until("}", self.entry)
            if len({key for key, _ in entries}) < len(entries):
                raise self.at_token("E501", "a key is there twice", opening)
            return DictSpec(tuple(entries))
        name = self.expect("name", "expected a type")
        dtype = DTYPE_NAMES.get(name.text)
        if name.text in BFLOAT16 and self.halves:
            dtype = "bfloat16"
        if not self.halves and (dtype == "float16" or name.text in BFLOAT16):
            short = "f16" if dtype == "float16" else "bf16"
            raise self.at_token("E502", f"{dtype or 'bfloat16'} is not supported", name, help=(
                f"write f32; what is written for XLA may be in half precision: --target stablehlo, or --cast {short}"))
        if dtype is None:
            help = did_you_mean(name.text, DTYPE_NAMES) or "the types are " + ", ".join(
                [*_SHORT_NAMES, *BFLOAT16[:self.halves]])
            raise self.at_token("E502", f"`{name.text}` is not a type", name, help=help)
        return self.array(dtype) if self.take("[") else ScalarSpec(dtype)

    def entry(self) -> tuple[str, Spec]:
        key = self.take("name", "string") or self.fail("expected the name of an entry")
        self.expect(":", "expected `:` and the type of the entry")
        return (_unquoted(key.text) if key.kind == "string" else key.text), self.spec()

    def array(self, dtype: str) -> ArraySpec:
        opening = self.tokens[self.next - 1]
        dims: list[_Token] = []
        layout: str | None = None
        while not self.take("]"):
            if self.token.kind == "end":
                raise self.at_token("E501", "this `[` is never closed", opening)
            if self.take(";"):
                layout = self.layout()
                self.expect("]", "expected `]`")
                break
            if dims:
                self.expect(",", "expected a comma, `;` or `]`")
            expected = "expected a length, a name for one, or `:`"
            dims.append(self.take("name", "number", "string", ":", "::1") or self.fail(expected))
        unit = [number for number, dim in enumerate(dims) if dim.kind == "::1"]
        if unit and (layout or unit not in ([0], [len(dims) - 1])):
            text = "only the first or the last dimension can be `::1`, and then no layout follows"
            raise self.at_token("E501", text, dims[unit[-1]])
        if unit:
            layout = "C" if unit[0] == len(dims) - 1 else "F"
        elif layout is None:
            layout = "A" if dims and all(dim.kind == ":" for dim in dims) else "C"
        return ArraySpec(dtype, tuple(map(self.dim, dims)), layout)

    def layout(self) -> str:
        token = self.expect("name", "expected a layout: C, F or A")
        if token.text not in ("C", "F", "A"):
            raise self.at_token("E501", f"`{token.text}` is not a layout: C, F or A", token)
        return token.text

    def dim(self, token: _Token) -> Dim:
        match token.kind:
            case "number":
                return int(token.text)
            case "name":
                return token.text
            case "string" if re.fullmatch(r"[^\W\d]\w*", inside := _unquoted(token.text)):
                return inside
            case "string":
                raise self.at_token("E501", "not the name of a dimension", token)
            case _:
                return None


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
