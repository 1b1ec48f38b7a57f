"""Trains linear.train.onnx by its own hand-written step and compares with the exact least-squares solution."""

import pathlib

import numpy as np

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent


def main():
    table = np.loadtxt(HERE / "data.csv", delimiter=",", skiprows=1, dtype=np.float32)
    x, y = table[:, :3], table[:, 3:]

    t = ot.Trainer(HERE / "linear.train.onnx")
    t.initialize()  # runs the file's initialization graph
    print("start     ", *np.round(t.state["weight"][:, 0], 4), *np.round(t.state["bias"], 4))
    for step in range(1, 1001):
        loss = t.step({"x": x, "target": y}).loss
        if step in (1, 10, 100, 1000):
            print(f"step {step:4d}  mean squared error {loss:.5f}")

    exact = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]).astype(np.float64), y[:, 0], rcond=None)[0]
    found = np.append(t.state["weight"][:, 0], t.state["bias"])
    print("trained   ", *np.round(found, 3))
    print("exact     ", *np.round(exact, 3))
    return {"loss": loss, "error": float(np.abs(found - exact).max())}


if __name__ == "__main__":
    main()
