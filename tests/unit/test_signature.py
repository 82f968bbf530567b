"""Signatures in both spellings, and what their errors point at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsmith.transpiler.signature import (
    ArraySpec,
    DictSpec,
    ListSpec,
    ScalarSpec,
    TupleSpec,
    arrays_in,
    bool_,
    built,
    c64,
    f32,
    f64,
    format_signature,
    i64,
    parse_signature,
    parse_spec,
    u8,
    with_dims,
)

DTYPES = ["bool", "int8", "int64", "uint8", "uint64", "float32", "float64", "complex64", "complex128"]


def array(dtype, *dims, layout="C"):
    return ArraySpec(dtype, dims, layout)


@pytest.mark.parametrize(
    "text, specs",
    [
        ("", ()),
        ("  ", ()),
        ("f64", (f64,)),
        ("f64,", (f64,)),
        (
            "f64[n,m], f32[3,n], i64, f64, bool[n], c128[n]",
            (array("float64", "n", "m"), array("float32", 3, "n"), i64, f64, array("bool", "n"), array("complex128", "n")),
        ),
        (
            "float64[:,:], int64, float64[::1], float32[:, ::1], float32[::1, :]",
            (
                array("float64", None, None, layout="A"),
                i64,
                array("float64", None),
                array("float32", None, None),
                array("float32", None, None, layout="F"),
            ),
        ),
        ("float, int, bool, complex, bool_, boolean", (f64, i64, bool_, ScalarSpec("complex128"), bool_, bool_)),
        ("f64[]", (array("float64"),)),
        ("f64[n,:]", (array("float64", "n", None),)),
        ("f64[n,m;F], f64[n;A]", (array("float64", "n", "m", layout="F"), array("float64", "n", layout="A"))),
        ('f64["n", "m"]', (array("float64", "n", "m"),)),
        ("(f64[n], f64)", (TupleSpec((array("float64", "n"), f64)),)),
        ("(f64,), (f64), ()", (TupleSpec((f64,)), f64, TupleSpec(()))),
        ("[f64, [u8]], []", (ListSpec((f64, ListSpec((u8,)))), ListSpec(()))),
        (
            "{w: f64[n,m], 'b c': f64[m],}\n, i64",
            (DictSpec((("w", array("float64", "n", "m")), ("b c", array("float64", "m")))), i64),
        ),
    ],
)
def test_reading(text, specs):
    assert parse_signature(text) == specs


def test_one_dimension_has_one_order():
    assert parse_spec("f64[n;F]") == parse_spec("f64[n]")


@pytest.mark.parametrize(
    "text, code, message, carets",
    [
        ("f64[n,,m]", "E501", "expected a length, a name for one, or `:`", "      ^"),
        ("f64[n, i64", "E501", "this `[` is never closed", "   ^"),
        ("(f64, {a: f64}", "E501", "this `(` is never closed", "^"),
        ("f64, , i64", "E501", "expected a type", "     ^"),
        ("f64 i64", "E501", "expected a comma or the end", "    ^^^"),
        ("(f64 i64)", "E501", "expected a comma or `)`", "     ^^^"),
        ("f64[n]]", "E501", "expected a comma or the end", "      ^"),
        ("f64[n-1]", "E501", "`-` has no meaning in a signature", "     ^"),
        ("f64[::2]", "E501", "expected a comma, `;` or `]`", "     ^"),
        ("f64[:,::1,:]", "E501", "only the first or the last dimension can be `::1`, and then no layout follows", "      ^^^"),
        ("f64[n;X]", "E501", "`X` is not a layout: C, F or A", "      ^"),
        ("{a f64}", "E501", "expected `:` and the type of the entry", "   ^^^"),
        ("{a:", "E501", "expected a type, but the signature ends", "   ^"),
        ("{a: f64, a: f64}", "E501", "a key is there twice", "^"),
        ('f64["n m"]', "E501", "not the name of a dimension", "    ^^^^^"),
        ("i64, flaot64[n]", "E502", "`flaot64` is not a type", "     ^^^^^^^"),
        ("f64, f16[n]", "E502", "float16 is not supported", "     ^^^"),
        ("f64, bf16[n]", "E502", "bfloat16 is not supported", "     ^^^^"),
        ("__import__('os')", "E502", "`__import__` is not a type", "^^^^^^^^^^"),
        ("f64 @ f64", "E501", "`@` has no meaning in a signature", "    ^"),
    ],
)
def test_errors_point_at_the_place(text, code, message, carets):
    with pytest.raises(ValueError) as caught:
        parse_signature(text)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"error[{code}]: {message}"
    assert lines[3] == f"1 | {text}"
    assert lines[4] == f"  | {carets}"


def test_errors_on_a_later_line_and_from_a_named_place():
    with pytest.raises(ValueError) as caught:
        parse_signature("f64,\n  bad", file="--sig")
    assert str(caught.value).splitlines()[1:5] == [" --> --sig:2:3", "  |", "2 |   bad", "  |   ^^^"]


def test_near_names_are_offered():
    with pytest.raises(ValueError, match="did you mean `float64`"):
        parse_signature("flaot64")
    with pytest.raises(ValueError, match="the types are bool, i8,"):
        parse_signature("spam")


def test_one_spec_alone():
    assert parse_spec("f64") == f64
    with pytest.raises(ValueError, match="one type was expected"):
        parse_spec("f64, f64")


def test_array_specs_by_subscript():
    assert f64["n"] == array("float64", "n")
    assert f64["n", "m"] == f64["n,m"] == array("float64", "n", "m")
    assert f32[3, None] == array("float32", 3, None)
    assert f32[:, :].layout == "A"
    assert c64[:, ::1] == array("complex64", None, None)
    assert c64[::1, :].layout == "F"
    assert f64[()] == array("float64")
    assert f64["n", "m;F"].layout == "F"
    for bad in (2.5, True, slice(1, 2), ...):
        with pytest.raises(ValueError, match="is not a dimension"):
            f64[bad]
    with pytest.raises(TypeError):
        iter(f64)


names = st.from_regex(r"[a-z_é][a-z0-9_]{0,5}", fullmatch=True)
scalars = st.builds(ScalarSpec, st.sampled_from(DTYPES))
dims = st.lists(st.one_of(st.none(), st.integers(0, 10**6), names), max_size=4).map(tuple)
arrays = st.builds(ArraySpec, st.sampled_from(DTYPES), dims, st.sampled_from("CFA"))
specs = st.recursive(
    scalars | arrays,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: TupleSpec(tuple(items))),
        st.lists(inner, max_size=3).map(lambda items: ListSpec(tuple(items))),
        st.dictionaries(names | st.text(max_size=6), inner, max_size=3).map(lambda d: DictSpec(tuple(d.items()))),
    ),
    max_leaves=8,
)


@given(specs)
def test_what_is_printed_is_read_back(spec):
    assert parse_spec(str(spec)) == spec


@given(st.lists(specs, max_size=4).map(tuple))
def test_signatures_are_read_back(signature):
    assert parse_signature(format_signature(signature)) == signature


@given(st.text(alphabet="f64i3nm[](){},:;1 \"'\\@é\n", max_size=20))
def test_any_text_is_read_or_refused_with_a_place(text):
    try:
        parse_signature(text)
    except ValueError as fault:
        assert fault.code in ("E501", "E502")
        assert fault.location is not None
        str(fault)


NESTED = parse_spec("{w: [f64[n,3], i64], b: (f32[:], (f64[n;A],))}")


def test_what_is_built_is_like_the_spec():
    assert {"w": ["f64[n,3]", "i64"], "b": ("f32[:]", ("f64[n;A]",))} == built(NESTED, str)


def test_arrays_in_a_spec_in_order():
    assert ["f64[n,3]", "f32[:]", "f64[n;A]"] == list(map(str, arrays_in(NESTED)))
    assert [] == list(arrays_in(f64))


def test_other_dims_in_a_spec():
    changed = with_dims(NESTED, lambda d: d if isinstance(d, int) else 7)
    assert parse_spec("{w: [f64[7,3], i64], b: (f32[7], (f64[7],))}") == changed
