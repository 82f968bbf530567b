# annotate: vjp


def stencil(u: "f64[n]", steps: "i64"):
    u = u.copy()
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            u[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1])
    return u
