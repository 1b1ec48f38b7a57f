"""Trains gan.train.onnx on points of a ring: discriminator and generator in turn, then measures how close they come."""

import pathlib

import numpy as np

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent


def ring(rng, n):
    """The distribution to learn: a ring of radius 1 with some thickness, moved to the right."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.normal(1, 0.08, n)
    return np.column_stack([0.5 + radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)


def distance(a, b, directions=64):
    """Sliced Wasserstein distance: the mean gap of the sorted shadows of two sets of points."""
    angle = np.pi * np.arange(directions) / directions
    way = np.array([np.cos(angle), np.sin(angle)])
    return float(np.abs(np.sort(a @ way, 0) - np.sort(b @ way, 0)).mean())


def main(steps=3000, batch=128):
    rng = np.random.default_rng(1)
    t = ot.Trainer(HERE / "gan.train.onnx")
    noise = lambda n: rng.standard_normal((n, 4)).astype(np.float32)
    test_noise, test_points = noise(2000), ring(rng, 2000)

    def gap():
        points = ot.Session(t.model()).run({"noise": test_noise}, ["point"])["point"]
        return distance(points, test_points)

    first, floor = gap(), distance(ring(rng, 2000), test_points)
    print(f"step    0                                             distance {first:.3f}")
    for step in range(1, steps + 1):
        d = t.step({"noise": noise(batch), "data": ring(rng, batch)}, which=0).loss
        g = t.step({"noise": noise(batch)}, which=1).loss
        if step % (steps // 5) == 0:
            print(f"step {step:4d}   discriminator {d:.3f}   generator {g:.3f}   distance {gap():.3f}")
    last = gap()
    print(f"two samples of the ring itself                        distance {floor:.3f}")
    return {"first": first, "last": last, "floor": floor}


if __name__ == "__main__":
    main()
