"""Transform expressions: what they mean, and that nothing in them is evaluated."""

import pytest

from gradsmith.cli.transform import generated_name, parse_option, parse_statics, parse_transform, transform_text
from gradsmith.transpiler.errors import TranspileError


@pytest.mark.parametrize("text, kinds", [
    ("grad", ["grad"]),
    ("jit(grad(vmap))", ["vmap", "grad", "jit"]),
    ("vmap | grad | jit", ["vmap", "grad", "jit"]),
    ("grad(grad)", ["grad", "grad"]),
    ("gradsmith.vmap(gradsmith.grad)", ["grad", "vmap"]),
    ("jit()", ["jit"]),
    (" hessian ", ["hessian"]),
])
def test_steps_apply_from_the_inside_out(text, kinds):
    assert kinds == [step.kind for step in parse_transform(text)]


@pytest.mark.parametrize("text, options", [
    ("grad(argnums=(0, 1))", {"argnums": (0, 1)}),
    ("grad(argnums=[0, 1])", {"argnums": (0, 1)}),
    ("grad(argnums=-1, has_aux=True)", {"argnums": -1, "has_aux": True}),
    ("vmap(in_axes=(0, None), out_axes=1)", {"in_axes": (0, None), "out_axes": 1}),
    ("vmap(in_axes=({'w': None}, 0))", {"in_axes": ({"w": None}, 0)}),
])
def test_options_are_literals(text, options):
    (step,) = parse_transform(text)
    assert options == step.options


@pytest.mark.parametrize("text", [
    "", "grad(", "3", "lambda f: f", "grad + vmap", "grad(vmap, jit)", "gard", "grad(argnum=1)", "grad(argnums=n)",
    "grad(argnums=True)", "grad(argnums=())", "vmap(in_axes='0')", "vmap(axis_size=0)", "grad(1)", "os.getcwd",
    "grad(**{})", "grad(*a)", "jit(argnums=0)", "linearize",
])
def test_anything_else_is_an_error_with_its_place(text):
    with pytest.raises(TranspileError) as caught:
        parse_transform(text)
    assert "E506" == caught.value.code
    assert caught.value.location is not None


def test_text_is_read_back_as_the_same_steps():
    chain = parse_transform("vmap(grad(argnums=(0, 1)), in_axes=(0, None)) | jit")
    assert chain == parse_transform(transform_text(chain))


@pytest.mark.parametrize("text, name", [
    ("grad", "loss_grad"), ("jit", "loss_jit"), ("jit(grad)", "loss_grad"), ("grad(vmap)", "loss_vmap_grad"),
    ("vmap(grad)", "loss_grad_vmap"),
])
def test_generated_names(text, name):
    assert name == generated_name("loss", parse_transform(text))


def test_options_of_the_command_line():
    assert (None, 0) == parse_option("in_axes", "None,0")
    assert 1 == parse_option("argnums", "1")
    with pytest.raises(TranspileError):
        parse_option("in_axes", "__import__('os')")


def test_fixed_arguments():
    assert {"n": 3, "mode": "fast", "shape": (2, None)} == parse_statics("n=3, mode='fast', shape=(2, None)")
    for text in ("3", "n=open('x')", "n=", "n=3)(", "**{}"):
        with pytest.raises(TranspileError) as caught:
            parse_statics(text)
        assert "E501" == caught.value.code
