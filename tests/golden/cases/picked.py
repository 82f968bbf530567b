# golden: vmap(in_axes=(None, 0))
def picked(x: "f64[n]", k: int):
    if k > 9:
        raise ValueError(f"{k} is too many")
    return x[k] * x[-k]
