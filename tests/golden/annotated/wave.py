# annotate: vjp


def wave(u: "f64[n]", c: "f64[n]", steps: "i64"):
    u = u.copy()
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            u[i] = u[i] + c[i] * (u[i - 1] * u[i + 1])
    return u
