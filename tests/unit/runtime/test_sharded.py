"""`gradsmith.sharded`: equal results on many devices, what they tell each other, and specs that do not fit."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from gradsmith import grad, sharded
from gradsmith.xla.collectives import Collective, collectives_of, summed_up

pytest.importorskip("jax")
pytestmark = pytest.mark.xla


def loss(params, x, y):
    hidden = np.tanh(x @ params["w1"])
    return np.mean((hidden @ params["w2"] - y) ** 2)


SPECS = ({"w1": "f32[784,512]", "w2": "f32[512,16]"}, "f32[4096,784]", "f32[4096,16]")

ON_EIGHT = """
    import numpy as np
    import gradsmith as gs
    from gradsmith import DeviceArray, grad, jit, sharded
    from runtime_sharded import loss

    rng = np.random.default_rng(0)
    p = {"w1": rng.normal(size=(16, 32)), "w2": rng.normal(size=(32, 4))}
    x, y = rng.normal(size=(64, 16)), rng.normal(size=(64, 4))
    expected = grad(loss)(p, x, y)

    def same(got, expected):
        for name in expected:
            assert isinstance(got[name], DeviceArray) and got[name].shape == expected[name].shape
            assert len(got[name].devices()) == 8
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-12, atol=1e-14)

    parallel = sharded(grad(loss), mesh={"data": 8}, in_specs=(None, "data", "data"), out_specs=None)
    same(parallel(p, x, y), expected)
    told = parallel.collectives(p, x, y)
    assert [c.kind for c in told] == ["all-reduce"] and told[0].bytes == 8 * (16 * 32 + 32 * 4), told

    w = {"w1": (None, "model"), "w2": ("model",)}
    for out_specs in (w, ...):
        both = sharded(grad(loss), mesh={"data": 4, "model": 2}, in_specs=(w, "data", "data"), out_specs=out_specs)
        found = both(p, x, y)
        same(found, expected)
        assert found["w1"]._buffer.addressable_shards[0].data.shape == (16, 16)

    # results go into functions of one device, of a mesh, and of this machine
    total = jit(lambda a: a.sum(), target="xla")(found["w1"])
    np.testing.assert_allclose(total, expected["w1"].sum())
    same(both(found, x, y), grad(loss)({k: np.asarray(v) for k, v in found.items()}, x, y))
    np.testing.assert_allclose(jit(np.sum)(found["w1"]), expected["w1"].sum())

    # one axis along two of the mesh, second derivatives, errors, writes, arguments changed after the call
    row = sharded(lambda v: np.sum(v) * v, mesh={"a": 4, "b": 2}, in_specs=((("a", "b"),),), out_specs=((("a", "b"),)))
    v = np.arange(16.0)
    found = row(v)
    v[:] = 0.0
    np.testing.assert_allclose(found, 120.0 * np.arange(16.0))
    hessian = sharded(gs.hessian(lambda v: np.sum(v ** 3)), mesh={"a": 8}, in_specs=("a",), out_specs="a")
    np.testing.assert_allclose(hessian(np.arange(8.0)), np.diag(6.0 * np.arange(8.0)))

    @sharded(mesh={"a": 8}, in_specs=("a", None))
    def add(v, i):
        v += v[i]

    v = np.arange(8.0)
    add(v, 2)
    np.testing.assert_allclose(v, np.arange(8.0) + 2.0)
    try:
        add(v, 8)
    except IndexError:
        pass
    else:
        raise AssertionError("no IndexError")
    np.testing.assert_allclose(v, np.arange(8.0) + 2.0)
    print("all equal")
"""

MODULE = """
    import numpy as np

    def loss(params, x, y):
        hidden = np.tanh(x @ params["w1"])
        return np.mean((hidden @ params["w2"] - y) ** 2)
"""


def test_equal_results_on_eight_devices(tmp_path):
    (tmp_path / "runtime_sharded.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "program.py").write_text(textwrap.dedent(ON_EIGHT))
    import os
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "all equal\n", done.stderr


def test_what_the_module_says():
    text = sharded(grad(loss), mesh={"data": 4, "model": 2},
                   in_specs=({"w1": (None, "model"), "w2": None}, "data", ("data", None))).source(*SPECS)
    assert "mhlo.num_partitions = 8 : i32" in text
    assert 'sdy.mesh @mesh = <["data"=4, "model"=2]>' in text
    head = next(line for line in text.splitlines() if "@main" in line)
    assert '%params_w1: tensor<784x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}' in head
    assert '%params_w2: tensor<512x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}' in head
    assert '%x: tensor<4096x784xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}' in head
    assert head.endswith("-> (tensor<784x512xf32>, tensor<512x16xf32>) {")


def test_specs_of_jax():
    from jax.sharding import PartitionSpec
    first = sharded(grad(loss), mesh={"data": 8}, in_specs=(None, PartitionSpec("data"), PartitionSpec("data", None)))
    second = sharded(grad(loss), mesh={"data": 8}, in_specs=(None, "data", "data"))
    assert first.source(*SPECS) == second.source(*SPECS)


@pytest.mark.parametrize("mesh, in_specs, out_specs, message", [
    ({"data": 8}, (None, "dat", None), None, "names 'dat', which is no axis of the mesh"),
    ({"data": 8}, (None, ("data", "data"), None), None, "names 'data' twice"),
    ({"data": 8}, (None, ("data", None, None), None), None, "has 3 entries, and it has 2 axes"),
    ({"data": 3}, (None, "data", None), None, "axis 0 of x has 4096 elements, which 3 devices cannot share evenly"),
    ({"data": 8}, (None, None), None, "in_specs has 2 entries for 3 arguments"),
    ({"data": 8}, ({"w1": None}, None, None), None, "has nothing for 'w2'"),
    ({"data": 8}, (None, {"x": None}, None), None, "x is one array"),
    ({"data": 8}, (None, None, None), {"w1": None, "w2": (None, None, "data")}, "has 3 entries, and it has 2 axes"),
    ({"data": 0}, None, None, "has a size of 0"),
    ({}, None, None, "a mesh is a dict"),
    ({"data": 8}, 3, None, "in_specs is a tuple"),
])
def test_specs_that_do_not_fit(mesh, in_specs, out_specs, message):
    with pytest.raises(ValueError, match=message) as found:
        sharded(grad(loss), mesh=mesh, in_specs=in_specs, out_specs=out_specs).source(*SPECS)
    assert found.value.problems[0].code == "E610"


def test_fewer_devices_than_the_mesh_has():
    with pytest.raises(ValueError, match="the mesh has 64 devices, and there are"):
        sharded(lambda x: x * 2.0, mesh={"data": 64}, in_specs=("data",))(np.ones(64))
    with pytest.raises(ValueError, match="sharded runs on devices of XLA's"):
        sharded(loss, mesh={"data": 2}, target="cpu")


def test_inside_other_transforms_it_is_the_function_itself():
    found = grad(sharded(cubes, mesh={"data": 64}, in_specs=("data",)))(np.ones(2))
    np.testing.assert_allclose(found, [3.0, 3.0])


def cubes(x):
    return np.sum(x ** 3)


def test_collectives_are_read_off_the_text():
    found = collectives_of("""
      %all-reduce.3 = (f32[784,32]{0,1:T(8,128)}, f32[32,16]{0,1}) all-reduce(%a, %b), replica_groups=[16,16]<=[16,16]T(1,0), to_apply=%add
      ROOT %ag = (bf16[8,4]{1,0}, bf16[64,4]{1,0}) all-gather-start(%c), channel_id=2, replica_groups={{0,1},{2,3}}, dimensions={0}
      %agd = bf16[64,4]{1,0} all-gather-done(%ag)
      %cp = pred[4]{0} collective-permute(%d), source_target_pairs={{0,1}}
      %fusion = f32[4] fusion(%all-reduce.3), calls=%x
    """)
    assert found == (
        Collective("all-reduce", "all-reduce.3", ("f32[784,32]", "f32[32,16]"), 4 * (784 * 32 + 32 * 16),
                   "[16,16]<=[16,16]T(1,0)"),
        Collective("all-gather", "ag", ("bf16[64,4]",), 512, "{{0,1},{2,3}}"),
        Collective("collective-permute", "cp", ("pred[4]",), 4, "all"),
    )
    assert summed_up(found) == "1 all-reduce (102400 bytes), 1 all-gather (512 bytes), 1 collective-permute (4 bytes)"


@pytest.mark.parametrize("chips, topology", [(16, "v5e:4x4"), (256, "v5e:16x16")])
def test_gradients_for_many_chips_are_compiled_ahead_of_time(tmp_path, chips, topology):
    pytest.importorskip("libtpu")
    (tmp_path / "runtime_sharded.py").write_text(textwrap.dedent(MODULE))
    side = int(chips ** 0.5)
    (tmp_path / "program.py").write_text(textwrap.dedent(f"""
        from gradsmith import grad, sharded
        from runtime_sharded import loss
        w = {{"w1": (None, "model"), "w2": ("model", None)}}
        step = sharded(grad(loss), mesh={{"data": {side}, "model": {side}}}, in_specs=(w, "data", "data"),
                       target="tpu")
        made = step.compile_for_tpu({{"w1": "f32[784,512]", "w2": "f32[512,16]"}}, "f32[4096,784]", "f32[4096,16]",
                                    topology="{topology}")
        found = sorted(c.bytes for c in made.collectives if c.kind == "all-reduce")
        part = 512 // {side}
        assert found == sorted([4 * (4096 // {side}) * 16, 4 * (784 * part + part * 16)]), made.collectives
    """))
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
