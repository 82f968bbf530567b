# golden: grad(argnums=1)


def power_by_squaring(n: int, x: float):
    if n == 0:
        return 1.0
    half = power_by_squaring(n // 2, x)
    return half * half if n % 2 == 0 else half * half * x
