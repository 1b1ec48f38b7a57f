"""Federated averaging: four clients train on their own data; only parameters travel."""

import pathlib

import numpy as np

import onnxtrain as ot

FILE = pathlib.Path(__file__).parent / "model.train.onnx"


def spirals(n, seed):
    """Four classes that lie in each other as the arms of a spiral."""
    rng = np.random.default_rng(seed)
    label, radius = rng.integers(0, 4, n), rng.uniform(0.1, 1, n)
    angle = 2.5 * radius + label * np.pi / 2 + rng.normal(0, 0.1, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32) * 2, label


def average(clients, weights, names):
    """The server's part: the weighted mean of each parameter."""
    return {n: sum(w * c.state[n].astype(np.float64) for c, w in zip(clients, weights)).astype(np.float32)
            for n in names}


def assign(trainer, parameters):
    for name, value in parameters.items():
        trainer.state[name] = value


def accuracy(trainer, x, y):
    return trainer.evaluate(x, y)["accuracy"]


def by_class(x, y):
    """Clients that are not alike: each has rows of two of the four classes, and another number of them."""
    shares = []
    for k, part in enumerate((0.3, 0.5, 0.7, 1.0)):
        rows = np.concatenate([np.flatnonzero(y == k)[::2], np.flatnonzero(y == (k + 1) % 4)[1::2]])
        rows = np.sort(rows)[: int(part * len(rows))]
        shares.append((x[rows], y[rows]))
    return shares


def local_steps(trainer, x, y, steps, rng):
    for _ in range(steps):
        pick = rng.integers(0, len(y), 64)
        trainer.step({"x": x[pick], "label": y[pick]})


def one_step_each(names, x, y):
    """With one step per round and equal shares, averaging parameters is averaging gradients: the central step."""
    central, server = ot.Trainer(FILE), ot.Trainer(FILE)
    clients = [ot.Trainer(FILE) for _ in range(4)]
    for _ in range(20):
        for k, c in enumerate(clients):
            assign(c, {n: server.state[n] for n in names})
            c.step({"x": x[k::4], "label": y[k::4]})
        assign(server, average(clients, [0.25] * 4, names))
        central.step({"x": x, "label": y})
    return max(float(np.abs(server.state[n] - central.state[n]).max()) for n in names)


def main(rounds=40, steps=25):
    x, y = spirals(2000, seed=0)
    test = spirals(1000, seed=1)
    names = list(ot.load(FILE).parameters)
    rng = np.random.default_rng(0)

    gap = one_step_each(names, x, y)
    print(f"one step per round, equal shares: largest difference to central training {gap:.1e}")

    shares = by_class(x, y)
    rows = np.array([len(s[1]) for s in shares])
    print("rows of the clients, two classes each:", *rows)
    server, clients = ot.Trainer(FILE), [ot.Trainer(FILE) for _ in shares]
    for r in range(1, rounds + 1):
        for c, share in zip(clients, shares):
            assign(c, {n: server.state[n] for n in names})
            local_steps(c, *share, steps, rng)
        assign(server, average(clients, rows / rows.sum(), names))
        if r in (1, 10, rounds):
            print(f"round {r:3d}   test accuracy of the averaged model {accuracy(server, *test):.1%}")

    alone = [ot.Trainer(FILE) for _ in shares]
    for c, share in zip(alone, shares):
        local_steps(c, *share, rounds * steps, rng)
    print("clients that never meet:", *[f"{accuracy(c, *test):.1%}" for c in alone])
    central = ot.Trainer(FILE)
    local_steps(central, *map(np.concatenate, zip(*shares)), rounds * steps, rng)
    print(f"central training, {central.step_count} steps on all rows: {accuracy(central, *test):.1%}")
    return {"gap": gap, "federated": accuracy(server, *test), "central": accuracy(central, *test),
            "alone": max(accuracy(c, *test) for c in alone)}


if __name__ == "__main__":
    main()
