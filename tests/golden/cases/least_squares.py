# golden: grad
# golden: jacfwd
# golden: vmap(grad, in_axes=(None, 0, 0))
def least_squares(w: "f64[m]", x: "f64[m]", y: float):
    return (x @ w - y) ** 2
