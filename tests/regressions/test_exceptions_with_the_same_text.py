"""Exceptions of several classes whose texts are the same template."""

from __future__ import annotations

import pytest

import gradsmith as gs


class BadError(Exception):
    pass


def checked(x):
    if x > 2.0:
        raise BadError(x)
    if x > 1.0:
        raise ValueError(x)
    return x * x


@pytest.mark.parametrize("transform", [gs.jit, gs.grad, gs.value_and_grad])
def test_each_is_its_own_class(transform):
    made = transform(checked)
    with pytest.raises(BadError) as bad:
        made(3.0)
    assert bad.value.args == (3.0,)
    with pytest.raises(ValueError) as wrong:
        made(1.5)
    assert wrong.value.args == (1.5,)
    made(0.5)
