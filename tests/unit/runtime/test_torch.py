"""NumPy functions as operations of PyTorch: values, derivatives of every order and mode, batches."""

import linecache
import re
import warnings
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from unit.runtime.pendulum import pendulum as program

import gradsmith.torch
from gradsmith.torch import function

F64 = torch.float64
State = namedtuple("State", "x v")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)      # PyTorch's about itself
        yield


def leaf(*shape, dtype=F64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


pendulum = function(program)


def of_torch(x, w):
    y = torch.where(x > 0, torch.sin(x) * w, x)
    return (y**2).sum(), y


def test_values_and_gradients():
    x, w = leaf(4), leaf(4)
    total, y = pendulum(x, w)
    expected, expected_y = of_torch(x, w)
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(y, expected_y)
    mine = torch.autograd.grad(total + y.sum(), (x, w))
    torch.testing.assert_close(mine, torch.autograd.grad(expected + expected_y.sum(), (x, w)))
    assert "pendulum" == pendulum.__name__


def test_every_mode_and_the_second_order():
    x, w = leaf(3), leaf(3)
    assert torch.autograd.gradcheck(pendulum, (x, w), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(pendulum, (x, w), check_fwd_over_rev=True, check_rev_over_rev=True)


def test_third_order():
    cube = function(lambda x: np.sum(x**4))
    x = torch.tensor([1.0, 2.0], dtype=F64, requires_grad=True)
    slope = cube(x)
    for factor in (4.0, 12.0, 24.0):
        (slope,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
        torch.testing.assert_close(slope.detach(), factor * x.detach() ** (3 - [4.0, 12.0, 24.0].index(factor)))


def test_functional_transforms():
    x, w = torch.randn(3, dtype=F64), torch.randn(3, dtype=F64)
    mine, theirs = lambda x, w: pendulum(x, w)[0], lambda x, w: of_torch(x, w)[0]
    batch = torch.randn(5, 3, dtype=F64)
    close = torch.testing.assert_close
    close(torch.func.grad(mine)(x, w), torch.func.grad(theirs)(x, w))
    close(torch.func.hessian(mine)(x, w), torch.func.hessian(theirs)(x, w))
    close(torch.func.jvp(mine, (x, w), (w, x)), torch.func.jvp(theirs, (x, w), (w, x)))
    for of in (lambda f: torch.func.vmap(f, (0, None)), lambda f: torch.func.vmap(torch.func.grad(f), (0, None)),
               lambda f: torch.func.jacrev(torch.func.vmap(f, (0, None)), 1)):
        close(of(mine)(batch, w), of(theirs)(batch, w))
    pairs = torch.func.vmap(torch.func.vmap(mine, (None, 0)), (0, None))
    close(pairs(batch, batch), torch.stack([torch.stack([theirs(a, b) for b in batch]) for a in batch]))
    close(torch.func.jacfwd(pendulum, 1)(x, w)[1], torch.func.jacrev(pendulum, 1)(x, w)[1])
    last = torch.func.vmap(mine, in_dims=(1, None))(batch.T, w)
    close(last, torch.func.vmap(theirs, (0, None))(batch, w))


def test_batches_inside_of_gradients():
    batch = torch.randn(4, 3, dtype=F64)

    def loss(w):
        return torch.func.vmap(lambda x: pendulum(x, w)[0])(batch).sum()

    w = torch.randn(3, dtype=F64)
    expected = torch.func.grad(lambda w: sum(of_torch(x, w)[0] for x in batch))(w)
    torch.testing.assert_close(torch.func.grad(loss)(w), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept(dtype):
    x, w = leaf(3, dtype=dtype), leaf(3, dtype=dtype)
    total, y = function(lambda x, w: (np.sum(x * w), np.exp(x)))(x, w)
    assert [dtype, dtype] == [total.dtype, y.dtype]
    (d_x,) = torch.autograd.grad(total, x)
    assert dtype == d_x.dtype
    torch.testing.assert_close(d_x, w.detach())


def test_complex_gradients_are_conjugated_as_pytorchs():
    z, w = leaf(3, dtype=torch.complex128), leaf(3, dtype=torch.complex128)
    fun = function(lambda z, w: np.sum(np.abs(z * w) ** 2) + np.sum((z * z * w).real))
    value = fun(z, w)
    value.backward()
    mine = z.grad.clone()
    z.grad = None
    ((z * w).abs() ** 2).sum().add((z * z * w).real.sum()).backward()
    torch.testing.assert_close(mine, z.grad)
    product = function(lambda z, w: z * z * w)
    assert torch.autograd.gradcheck(product, (z, w))
    assert torch.autograd.gradgradcheck(product, (z, w))


def test_what_requires_gradients():
    fun = function(lambda x, y, n: (np.sum(x * y) ** 2, np.argmax(x), n))
    x, y = leaf(3), torch.randn(3, dtype=F64)
    value, place, n = fun(x, y, torch.tensor([1, 2]))
    assert value.requires_grad and not place.requires_grad and not n.requires_grad
    assert torch.int64 == place.dtype and int(torch.argmax(x)) == int(place)
    assert not fun(x.detach(), y, 3)[0].requires_grad
    with torch.no_grad():
        assert not fun(x, y, 3)[0].requires_grad
    value, *_ = fun(x, y, 3)
    value.backward()
    torch.testing.assert_close(x.grad, (2 * (x @ y) * y).detach())
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()


def test_one_of_several_results_and_arguments_without_influence():
    fun = function(lambda x, y: (x * 2.0, y * 3.0))
    x, y = leaf(2), leaf(2)
    first, _ = fun(x, y)
    d_x, d_y = torch.autograd.grad(first.sum(), (x, y), allow_unused=True)
    torch.testing.assert_close(d_x, torch.full((2,), 2.0, dtype=F64))
    torch.testing.assert_close(d_y, torch.zeros(2, dtype=F64))


@dataclass
class Model:
    w: object
    b: object


def test_trees_and_other_arguments():
    @function
    def step(state, model, options, n, mode="euler"):
        x, v = state
        for _ in range(n):
            x, v = x + options["dt"] * v, v - options["dt"] * model.w * x
        if mode == "shifted":
            x = x + model.b
        return {"state": State(x, v), "n": n, "mode": mode, "nothing": None}

    x, v, w = leaf(2), leaf(2), leaf(())
    found = step(State(x, v), Model(w, 1.0), {"dt": 0.1}, 3, mode="shifted")
    assert isinstance(found["state"], State) and "shifted" == found["mode"] and found["nothing"] is None
    expected_x, expected_v = x, v
    for _ in range(3):
        expected_x, expected_v = expected_x + 0.1 * expected_v, expected_v - 0.1 * w * expected_x
    torch.testing.assert_close(found["state"].x, expected_x + 1.0)
    mine = torch.autograd.grad(found["state"].x.sum(), (x, v, w))
    torch.testing.assert_close(mine, torch.autograd.grad(expected_x.sum(), (x, v, w)))
    assert 5 == int(step(State(x, v), Model(w, 1.0), {"dt": 0.1}, 5)["n"])


def test_memory_is_shared_on_the_way_in_and_is_not_with_results():
    x = torch.arange(6.0, dtype=F64)
    assert x.data_ptr() == gradsmith.torch._array(x).ctypes.data
    fun = function(lambda x: (x, x[1:], x * 2.0))
    results = fun(x)
    pointers = {r.data_ptr() for r in results} | {x.data_ptr()}
    assert 4 == len(pointers)
    results[0][0] = 9.0
    assert 0.0 == x[0] and 0.0 == fun(x)[0][0]


def test_tensors_are_not_written_to():
    @function
    def fill(x):
        x[0] = 7.0
        return np.sum(x**2)

    x = leaf(3)
    before = x.detach().clone()
    value = fill(x)
    torch.testing.assert_close(value, 49.0 + (before[1:] ** 2).sum())
    torch.testing.assert_close(x.detach(), before)
    value.backward()
    torch.testing.assert_close(x.grad, torch.cat([torch.zeros(1, dtype=F64), 2 * before[1:]]))


def test_tensors_changed_before_the_backward_sweep_are_noticed():
    x = leaf(3)
    y = x * 1.0
    value = function(lambda y: np.sum(y**2))(y)
    y += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


@pytest.mark.parametrize("make", [
    lambda: torch.randn(4, 6, dtype=F64).T, lambda: torch.randn(1, 4, dtype=F64).expand(6, 4),
    lambda: torch.randn(12, 8, dtype=F64)[::2, ::2], lambda: torch.randn(0, 3, dtype=F64),
    lambda: torch.randn(1, 1, dtype=F64), lambda: torch.nn.Parameter(torch.randn(2, 2, dtype=F64)),
])
def test_layouts_and_sizes(make):
    fun = function(lambda x: np.sum(np.tanh(x), axis=0))
    x = make().detach().requires_grad_()
    torch.testing.assert_close(fun(x), torch.tanh(x).sum(0))
    (slope,) = torch.autograd.grad(fun(x).sum(), x)
    torch.testing.assert_close(slope, 1.0 - torch.tanh(x.detach()) ** 2)


def test_numbers():
    fun = function(lambda x, y: x * y)
    x = torch.tensor(3.0, dtype=F64, requires_grad=True)
    found = fun(x, 2.0)
    assert () == found.shape
    found.backward()
    assert 2.0 == float(x.grad)
    assert 6.0 == float(fun(3.0, 2.0))


def test_a_module_is_trained():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(3, dtype=F64))

        def forward(self, x):
            return function(predict)(x, self.w)

    def predict(x, w):
        return x @ w

    torch.manual_seed(1)
    x, truth = torch.randn(20, 3, dtype=F64), torch.tensor([1.0, -2.0, 0.5], dtype=F64)
    layer = Layer()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.3)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(layer(x), x @ truth).backward()
        optimizer.step()
    torch.testing.assert_close(layer.w.detach(), truth, atol=1e-6, rtol=0.0)


def test_compiled_by_pytorch():
    """Its graph is broken at the call, and all is right."""
    @torch.compile(backend="eager")
    def loss(x, w):
        return pendulum(torch.exp(x), w)[0] * 2.0

    x, w = leaf(3), leaf(3)
    expected = of_torch(torch.exp(x), w)[0] * 2.0
    torch.testing.assert_close(loss(x, w), expected)
    mine = torch.autograd.grad(loss(x, w), x)
    torch.testing.assert_close(mine, torch.autograd.grad(expected, x))


def test_what_is_refused():
    fun = function(lambda x: x * 2.0)
    with pytest.raises(TypeError, match=r"bfloat16 has no counterpart in NumPy"):
        fun(torch.zeros(2, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match="layout torch.sparse_coo"):
        fun(torch.zeros(2, dtype=F64).to_sparse())
    with pytest.raises(IndexError, match="out of bounds"):
        function(lambda x, i: x[i])(torch.zeros(2, dtype=F64), 5)
    with pytest.raises(NotImplementedError, match="E202"):
        function(lambda x: np.partition(x, 1, foo=2))(torch.zeros(2, dtype=F64))


def test_the_program_of_the_page():
    text = (Path(__file__).resolve().parents[3] / "docs" / "interoperation.md").read_text()
    (block,) = re.findall(r"^```py\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    file = "<interoperation.md>"
    linecache.cache[file] = (len(block), None, block.splitlines(keepends=True), file)
    space = {"np": np}
    exec(compile(block, file, "exec"), space)
    assert space["x"].grad.shape == (5,)
