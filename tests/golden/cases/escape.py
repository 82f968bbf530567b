# golden: vmap
def escape(x: float, y: float):
    a = b = 0.0
    trips = 0
    while a * a + b * b <= 4.0 and trips < 100:
        a, b = a * a - b * b + x, 2.0 * a * b + y
        trips += 1
    return trips
