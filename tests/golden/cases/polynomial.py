# golden: jit
# golden: grad
# golden: grad | grad
# golden: jvp
def polynomial(x: float, a: float):
    return a * x ** 3 - 2 * x + 1
