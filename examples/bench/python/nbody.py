"""Floating point: five bodies under gravity, n steps."""

import json
import sys
import time

SOLAR = 39.47841760435743
BODIES = [
    ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], SOLAR),
    ([4.841431442464721, -1.1603200440274284, -0.10362204447112311], [0.606326392995832, 2.81198684491626, -0.02521836165988763], 0.03769367487038949),
    ([8.34336671824458, 4.124798564124305, -0.4035234171143214], [-1.0107743461787924, 1.8256623712304119, 0.008415761376584154], 0.011286326131968767),
    ([12.894369562139131, -15.111151401698631, -0.22330757889265573], [1.0827910064415354, 0.8687130181696082, -0.010832637401363636], 0.0017237240570597112),
    ([15.379697114850917, -25.919314609987964, 0.17925877295037118], [0.979090732243898, 0.5946989986476762, -0.034755955504078104], 0.0020336868699246304),
]


def work(n):
    bodies = [(list(p), list(v), m) for p, v, m in BODIES]
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1 :]]
    dt = 0.001
    for _ in range(n):
        for (p1, v1, m1), (p2, v2, m2) in pairs:
            dx, dy, dz = p1[0] - p2[0], p1[1] - p2[1], p1[2] - p2[2]
            square = dx * dx + dy * dy + dz * dz
            mag = dt / (square * square**0.5)
            v1[0] -= dx * m2 * mag
            v1[1] -= dy * m2 * mag
            v1[2] -= dz * m2 * mag
            v2[0] += dx * m1 * mag
            v2[1] += dy * m1 * mag
            v2[2] += dz * m1 * mag
        for p, v, _ in bodies:
            p[0] += dt * v[0]
            p[1] += dt * v[1]
            p[2] += dt * v[2]
    # Platforms may differ in a last digit of a power.
    return [round(x, 6) for p, _, _ in bodies for x in p]


def main():
    n = json.load(sys.stdin)["input"]["n"]
    began = time.perf_counter_ns()
    result = work(n)
    print(json.dumps({"result": result, "ns": time.perf_counter_ns() - began}))


main()
