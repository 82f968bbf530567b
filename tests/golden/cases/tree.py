# golden: grad
def tree(p: "(f64[n], [f64, {a: f64[n]}])"):
    w, (s, rest) = p
    return s * (w @ rest["a"])
