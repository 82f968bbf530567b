# golden: value_and_grad(argnums=(0, 1))
# golden: hessian(argnums=(0, 1))
import math


def two_numbers(a: float, b: float):
    return a * b + math.sin(a)
