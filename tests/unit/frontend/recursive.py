"""What tests of recursion ask of a trace and of a function."""

from gradsmith.transpiler.ir.nodes import Module


def calls(trace):
    return isinstance(trace.func, Module)


def difference(fn, n, x, h=1e-4):
    """A central difference of fourth order."""
    return (8 * (fn(n, x + h) - fn(n, x - h)) - (fn(n, x + 2 * h) - fn(n, x - 2 * h))) / (12 * h)
